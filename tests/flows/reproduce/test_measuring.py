"""Numbers of a table: each is what its definition says, and its interval what draws say."""

import sys
from pathlib import Path

import numpy as np
import pytest

import longtail as lt
from longtail.flows.reproduce.experiment import Cell, Column
from longtail.flows.reproduce.inspect import RUN_MEASURES
from longtail.flows.reproduce.kept import Answers, Kept
from longtail.flows.reproduce.measures import EDGES, MEASURES, Edges
from longtail.flows.reproduce.measuring import measured, summed
from longtail.flows.reproduce.ways import OF_ANSWERS, Way, moved, prior_of_test
from longtail.flows.score_measures import SCORE_MEASURES
from longtail.flows.shifted_sets import shifted_sets

sys.path.insert(0, str(Path(__file__).parent))
from worlds import CE, COUNTS, kept, scores

PLAIN = Cell("a", "", CE)


def value(column, run, cell=PLAIN, edges=EDGES["LA"]):
    return summed([(1.0, measured({0: run}, cell, column, edges))]).value


def naive(name, each):
    """Every measure again, with loops."""
    labels, probs = np.asarray(each.labels), np.asarray(lt.core.softmax.softmax(each.logits))
    guess = np.asarray(each.predict())
    right = guess == labels
    recalls = [right[labels == k].mean() for k in range(6)]
    confidence = probs.max(1)
    gaps, by_class = np.zeros(20), np.zeros((6, 20))
    for i in range(len(labels)) if "ece" in name else ():
        at = max(int(np.ceil(confidence[i] * 20)) - 1, 0)
        gaps[at] += right[i] - confidence[i]
        for k in range(6) if name == "classwise_ece" else ():
            by_class[k, max(int(np.ceil(probs[i, k] * 20)) - 1, 0)] += (labels[i] == k) - probs[
                i, k
            ]
    own = probs[np.arange(len(labels)), labels]
    return {
        "accuracy": 100 * np.mean(recalls),
        "balanced_error": 100 - 100 * np.mean(recalls),
        "nll": -np.log(own).mean(),
        "brier": np.mean(((probs - np.eye(6)[labels]) ** 2).sum(1)),
        "ece": np.abs(gaps).sum() / len(labels),
        "classwise_ece": np.abs(by_class).sum() / len(labels) / 6,
        "geometric_mean": 100 * np.prod(np.maximum(recalls, 0.001)) ** (1 / 6),
    }[name]


@pytest.mark.parametrize(
    "name",
    ["accuracy", "balanced_error", "nll", "brier", "ece", "classwise_ece", "geometric_mean"],
)
def test_a_measure_is_what_its_definition_says(name):
    each = scores(2.0)
    assert value(Column("x", name), Kept(each)) == pytest.approx(naive(name, each), rel=1e-6)


@pytest.mark.parametrize("paper", EDGES)
@pytest.mark.parametrize("group", ["many", "medium", "few"])
def test_a_group_is_the_classes_that_the_paper_means(paper, group):
    each, edges = scores(1.0), EDGES[paper]
    mask = {
        "many": edges.many <= COUNTS,
        "few": edges.few >= COUNTS,
        "medium": (edges.many > COUNTS) & (edges.few < COUNTS),
    }[group]
    recalls = np.asarray(lt.metrics.recalls(each))
    column = Column("x", "accuracy", group=group)
    assert value(column, Kept(each), edges=edges) == pytest.approx(100 * recalls[mask].mean())


def test_a_group_without_classes_has_no_number():
    column = Column("x", "accuracy", group="many")
    assert measured({0: kept(1.0)}, PLAIN, column, Edges(10_000, 1)) is None


@pytest.mark.parametrize("variant", ["as trained", "under the target"])
def test_shifted_tests_are_those_of_the_train_page(variant):
    each = scores(1.5)
    cell = Cell("a", "", CE, variant)
    for made in shifted_sets(each, COUNTS):
        column = Column("x", "accuracy", test=f"{made.direction}-{made.ratio}")
        expected = made.as_trained if variant == "as trained" else made.known
        assert value(column, Kept(each), cell) == pytest.approx(100 * expected.value)


def test_from_uniform_moves_what_is_said_to_carry_the_uniform_prior():
    each = scores(1.5, carried=None)
    way = Way("", "from uniform", "forward-10")
    target = prior_of_test(np.asarray(each.labels), COUNTS, "forward-10")
    expected = np.asarray(each.logits) + target.log - np.log(1 / 6)
    got = np.asarray(moved(each, way, None).logits)
    assert (got - got[:, :1]) == pytest.approx(expected - expected[:, :1], abs=1e-4)
    assert moved(each, Way("", "under the target", "balanced"), None) is None  # nobody knows


@pytest.mark.parametrize("variant", ["best tau", "best weight norm"])
def test_a_best_tau_of_each_fifth_of_the_test_samples_is_chosen_on_the_others(variant):
    each, norms = scores(1.0), np.linspace(3.0, 0.5, 6)
    labels = np.asarray(each.labels)
    folds = np.asarray(lt.data.stratified_folds(labels, 5))
    right = np.zeros(len(labels), dtype=bool)
    for fold in range(5):
        rest, own = each.take(folds != fold), each.take(folds == fold)
        if variant == "best tau":
            best = lt.posthoc.tau_curve(rest.logits, rest.labels, COUNTS).best_tau
            adjust = lt.posthoc.LogitAdjustment(COUNTS, best)
        else:
            best = lt.posthoc.weight_norm_curve(rest.logits, rest.labels, norms).best_tau
            adjust = lt.posthoc.WeightNormalization(norms, best)
        right[folds == fold] = np.asarray(adjust(own).predict()) == own.labels
    with_norms, cell = Kept(each, {}, {"weight_norm": norms.tolist()}), Cell("a", "", CE, variant)
    found = value(Column("x", "accuracy"), with_norms, cell)
    assert found == pytest.approx(100 * right.mean())  # the classes have equally many


def test_a_best_tau_can_be_worse_than_one_that_is_fixed():
    """That is what a claim that scaling helps may fail by."""
    gains = []
    for seed in range(12):
        each = Kept(scores(1.0, shared=seed, each=10))
        best, fixed = (
            value(Column("x", "accuracy"), each, Cell("a", "", CE, variant))
            for variant in ("best tau", "under the target")
        )
        gains.append(best - fixed)
    assert min(gains) < 0


def test_norms_of_weights_have_to_be_known():
    cell = Cell("a", "", CE, "best weight norm")
    assert measured({0: Kept(scores(1.0))}, cell, Column("x", "accuracy"), EDGES["LA"]) is None


def difference(column, first, second, edges=EDGES["LA"]):
    one, other = (measured(each, PLAIN, column, edges) for each in (first, second))
    return summed([(1.0, one), (-1.0, other)])


@pytest.mark.parametrize("name", ["accuracy", "nll", "brier", "ece", "geometric_mean"])
def test_the_interval_of_a_paired_difference_is_that_of_samples_drawn_anew(name):
    one, other = scores(3.2, seed=1, each=200), scores(2.8, seed=2, each=200)
    made = difference(Column("x", name), {0: Kept(one)}, {0: Kept(other)})
    random, draws = np.random.default_rng(0), []
    labels = np.asarray(one.labels)
    for _ in range(200):
        at = np.concatenate([random.choice(np.flatnonzero(labels == k), 200) for k in range(6)])
        draws.append(naive(name, one.take(at)) - naive(name, other.take(at)))
    assert made.value == pytest.approx(naive(name, one) - naive(name, other), rel=1e-4)
    assert made.reach() == pytest.approx(1.96 * np.std(draws), rel=0.2)
    assert made.over == "test samples"


def test_a_geometric_mean_with_a_recall_of_zero_has_an_interval_only_over_seeds():
    column, labels = Column("x", "geometric_mean"), np.repeat(np.arange(6), 20)
    right = np.tile([True, True, False, True], 30)
    never = right & (labels > 0)
    runs = [
        Kept(answers={Way.of(PLAIN, column).key: Answers(labels, each, COUNTS)})
        for each in (right, never, right)
    ]
    sure, unsure = (summed([(1.0, measured({0: r}, PLAIN, column, EDGES["LA"]))]) for r in runs[:2])
    assert sure.reach() > 0
    assert unsure.value == pytest.approx(100 * (0.75**5 * 0.001) ** (1 / 6))
    assert unsure.reach() is None
    for order in ((0, 1, 2), (1, 0, 2)):  # whichever is first, no seed is left out
        made = measured({seed: runs[seed] for seed in order}, PLAIN, column, EDGES["LA"])
        assert made.seeds == order
        total = summed([(1.0, made)])
        assert total.over == "seeds"
        assert total.reach() == pytest.approx(4.30265 * np.std(made.values, ddof=1) / 3**0.5)


@pytest.mark.parametrize("group", ["", "few"])
def test_an_interval_holds_where_classes_have_one_test_sample(group):
    random, counts = np.random.default_rng(0), np.repeat([200, 5], 25)
    labels = np.repeat(np.arange(50), np.tile([100, 100, 100, 1, 1], 10))
    chances = random.uniform(0.2, 0.9, 50)
    truth = 100 * chances[25 if group else 0 :].mean()
    column, held = Column("x", "accuracy", group=group), []
    for _ in range(200):
        right = random.random(len(labels)) < chances[labels]
        run = Kept(answers={Way.of(PLAIN, column).key: Answers(labels, right, counts)})
        made = summed([(1.0, measured({0: run}, PLAIN, column, EDGES["LA"]))])
        held.append(abs(made.value - truth) <= made.reach())
    assert 0.9 <= np.mean(held) < 1


def test_pairs_of_the_same_samples_are_surer_than_two_tests():
    column = Column("x", "accuracy")
    paired = difference(column, {0: kept(1.6, 1)}, {0: kept(1.2, 2)})
    apart = difference(column, {0: kept(1.6, 1)}, {0: kept(1.2, 2, shared=1, each=51)})
    assert paired.reach() < 0.8 * apart.reach()
    assert len(apart.parts) == 2


def test_several_seeds_widen_the_interval_by_what_they_vary():
    column = Column("x", "accuracy")
    alike = {seed: kept(1.5, seed) for seed in range(4)}
    varied = {seed: kept(1.5 + 0.4 * (seed % 2), seed) for seed in range(4)}
    one, many, wild = (
        summed([(1.0, measured(each, PLAIN, column, EDGES["LA"]))])
        for each in ({0: alike[0]}, alike, varied)
    )
    assert (one.over, many.over) == ("test samples", "seeds and test samples")
    assert wild.reach() > 1.5 * many.reach() > one.reach()
    assert (one.seeds, many.seeds) == (1, 4)


def test_only_seeds_that_both_rows_have_are_compared():
    column = Column("x", "accuracy")
    first = {seed: kept(1.5, seed) for seed in (0, 1)}
    assert difference(column, first, {1: kept(1.0, 7)}).seeds == 1
    assert difference(column, first, {2: kept(1.0, 7)}) is None


def test_numbers_of_classes_are_averaged_over_the_group_with_an_interval_over_classes():
    each = scores(1.0)
    run = Kept(each, {}, {"largest_distance": [1.0, 2.0, 3.0, 4.0, 5.0, 9.0]})
    made = measured({0: run}, PLAIN, Column("x", "largest_distance", group="few"), EDGES["LA"])
    total = summed([(1.0, made)])
    assert (total.value, total.over) == (7.0, "classes")
    assert total.reach() == pytest.approx(12.706 * 2.0, rel=1e-3)
    many = measured({0: run}, PLAIN, Column("x", "largest_distance", group="many"), EDGES["LA"])
    assert not many.is_of_the_samples_of(made)  # as many classes, but others
    alone = measured({0: Kept(each, {}, {"cdnv": 0.5})}, PLAIN, Column("x", "cdnv"), EDGES["LA"])
    assert summed([(1.0, alone)]).reach() is None  # one number of one seed
    two = {seed: Kept(each, {}, {"cdnv": 0.5 + seed}) for seed in (0, 1)}
    both = summed([(1.0, measured(two, PLAIN, Column("x", "cdnv"), EDGES["LA"]))])
    assert (both.value, both.over) == (1.0, "seeds")
    assert both.reach() == pytest.approx(12.706 * 0.5, rel=1e-3)


def test_a_rise_time_is_one_number_of_its_group_whose_interval_is_over_seeds_alone():
    column = Column("x", "rise_time", group="few")
    runs = {seed: Kept(scores(1.0), {}, {"rise_time": [0.1, 0.2, 0.5 + seed]}) for seed in (0, 1)}
    one, two = (
        summed([(1.0, measured(each, PLAIN, column, EDGES["LA"]))]) for each in ({0: runs[0]}, runs)
    )
    assert (one.value, one.reach()) == (0.5, None)
    assert (two.value, two.over) == (1.0, "seeds")
    empty = {0: Kept(scores(1.0), {}, {"rise_time": [0.1, 0.2, np.nan]})}
    assert measured(empty, PLAIN, column, EDGES["LA"]) is None


def test_trials_of_a_drawn_problem_are_paired():
    trials = np.random.default_rng(0).normal(10, 3, 50)
    numbers = {
        "ERM|as trained": {"balanced_error": trials.tolist()},
        "x|as trained": {"balanced_error": (trials + 1).tolist()},
    }
    column, run = Column("x", "balanced_error"), Kept(numbers=numbers)
    # All of what differs is the same in every trial.
    one, other = (
        measured({0: run}, Cell("a", "", CE, head=head), column, EDGES["LA"])
        for head in ("x", "ERM")
    )
    made = summed([(1.0, one), (-1.0, other)])
    assert (made.value, made.over) == (pytest.approx(1.0), "trials")
    # An outlier is a trial like any other: the usual interval of a mean.
    few = np.array([3.0, 4.0, 3.5, 20.0])
    numbers = {"x|as trained": {"balanced_error": few.tolist()}}
    alone = measured({0: Kept(numbers=numbers)}, Cell("a", "", CE, head="x"), column, EDGES["LA"])
    assert summed([(1.0, alone)]).reach() == pytest.approx(3.1824 * few.std(ddof=1) / 2, rel=1e-4)


def test_every_measure_of_a_table_has_a_way_to_be_measured():
    not_results = {"setting", "statistic", "property"}
    assert set(MEASURES) <= {*not_results, *OF_ANSWERS, *SCORE_MEASURES, *RUN_MEASURES}
