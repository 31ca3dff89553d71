"""Shifted test sets: the sizes of the paper, accuracies written out, and a page that shows them."""

import numpy as np
import pytest

import longtail as lt
from longtail.data import exponential_counts, shifted_subset
from longtail.flows.shifted_sets import RATIOS, shifted_sets
from longtail.report import page_of, render_page
from longtail.report.pages.priors import shifted_sections

SIZES = (2486, 2956, 3876, 4932, 7166)
COUNTS = exponential_counts(500, 100, 50)


def scores_of(labels, counts, carried="counts", seed=0):
    """Logits of a model that is right about its samples, and carries the training prior."""
    logits = np.random.default_rng(seed).normal(size=(len(labels), len(counts)))
    logits[np.arange(len(labels)), labels] += 3
    logits = 3 * logits + lt.Prior.of(counts).log
    return lt.Scores(logits, labels, carried=counts if carried == "counts" else None)


@pytest.fixture(scope="module")
def test():
    return scores_of(np.arange(10_000) % 100, COUNTS)


@pytest.fixture(scope="module")
def sets(test):
    return shifted_sets(test, COUNTS)


def test_cifar_100_has_the_ten_sets_of_the_paper_in_its_order(sets):
    assert [(each.direction, each.ratio) for each in sets] == [
        *(("forward", ratio) for ratio in RATIOS),
        *(("backward", ratio) for ratio in reversed(RATIOS)),
    ]
    assert tuple(each.samples for each in sets) == SIZES + SIZES[::-1]


def test_accuracy_is_what_many_draws_of_the_set_have_on_average(test, sets):
    labels, stream = np.asarray(test.labels), np.random.default_rng(0)
    for each in (sets[0], sets[-1]):
        prior = np.bincount(labels[shifted_subset(labels, COUNTS, each.ratio, each.direction)])
        moved = test.logits + np.log(prior / prior.sum()) - lt.Prior.of(COUNTS).log
        right = {"as_trained": test.logits.argmax(1), "known": moved.argmax(1)}
        for name, answers in right.items():
            drawn = []
            for _ in range(40):
                order = stream.permutation(len(labels))
                at = order[shifted_subset(labels[order], COUNTS, each.ratio, each.direction)]
                drawn.append((answers[at] == labels[at]).mean())
            accuracy = getattr(each, name)
            assert accuracy.value == pytest.approx(np.mean(drawn), abs=4e-3)
            assert accuracy.low < accuracy.value < accuracy.high


def test_the_prior_helps_and_most_against_the_training_counts(sets):
    assert sets[0].known.value == pytest.approx(
        sets[0].as_trained.value, abs=0.01
    )  # as in training
    for each in sets[1:]:
        assert each.known.value > each.as_trained.value
        assert each.estimated.value <= each.known.value + 0.01
        assert 0 < each.distance < 0.15
    gains = [each.known.value - each.as_trained.value for each in sets]
    assert gains[-1] == max(gains)
    assert sets[-1].estimated.value > sets[-1].as_trained.value + 0.2


def test_validation_scores_make_the_estimate_better(test, sets):
    validation = scores_of(np.arange(1000) % 100, COUNTS, seed=1)
    checked = shifted_sets(test, COUNTS, validation)
    assert sum(each.distance for each in checked) < 0.8 * sum(each.distance for each in sets)
    assert [each.known for each in checked] == [each.known for each in sets]
    moved = shifted_sets(test, COUNTS, validation.under(lt.Prior.uniform(100)))
    for one, other in zip(checked, moved, strict=True):  # whatever prior they carry
        assert one.distance == pytest.approx(other.distance, abs=1e-6)


def test_the_seed_decides_what_is_drawn_for_the_estimate_and_nothing_else(test, sets):
    assert shifted_sets(test, COUNTS) == sets
    other = shifted_sets(test, COUNTS, seed=1)
    assert [each.known for each in other] == [each.known for each in sets]
    assert [each.estimated for each in other] != [each.estimated for each in sets]


def test_scores_that_do_not_say_what_they_carry_are_not_moved():
    labels = np.arange(200) % 4
    made = shifted_sets(scores_of(labels, [8, 4, 2, 1], carried="nothing"), [8, 4, 2, 1])
    assert len(made) == 10
    assert all(each.known is each.estimated is each.distance is None for each in made)
    (section,) = shifted_sections(made)
    assert section.table.rows[0][3:] == ["none"] * 3
    assert any("not known what" in note for note in section.notes)


@pytest.mark.parametrize(
    ("labels", "ratios"),
    [
        (np.arange(4 * 20) % 4, [10, 5, 2]),  # 20 a class: the smallest of ratio 25 would be none
        (np.repeat(np.arange(4), [30, 20, 10, 5]), []),  # not balanced
        (np.arange(30) % 3, []),  # one class has no sample
    ],
)
def test_only_a_balanced_test_set_has_shifted_ones_and_only_as_far_as_it_goes(labels, ratios):
    made = shifted_sets(scores_of(labels, [8, 4, 2, 1]), [8, 4, 2, 1])
    assert [each.ratio for each in made] == [*ratios, *reversed(ratios)]
    assert bool(shifted_sections(made)) == bool(ratios)


def test_a_fit_reports_them_in_its_json_and_on_its_page():
    labels, tested = np.repeat(np.arange(3), [60, 20, 8]), np.arange(60) % 3
    random = np.random.default_rng(0)
    rows = [
        (random.normal(size=(len(each), 3)) + 2 * np.eye(3)[each]).astype(np.float32)
        for each in (labels, tested)
    ]
    result = lt.fit(rows[0], labels, test=(rows[1], tested), methods=["adjusted"], folds=2)
    told = result.as_json()["shifted_sets"]
    assert [each["ratio"] for each in told] == [10, 5, 2, 2, 5, 10]
    expected = lt.metrics.accuracy_under(result.test, target=[20, 6, 2])
    assert told[0]["as_trained"]["value"] == pytest.approx(expected)
    page = render_page(page_of(result))
    assert "If the labels shift" in page
    assert "backward 10" in page
    alone = lt.fit(rows[0], labels, methods=["adjusted"], folds=2)
    assert alone.shifted_sets == ()
    assert "If the labels shift" not in render_page(page_of(alone))
