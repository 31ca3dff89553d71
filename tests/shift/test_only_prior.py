"""Whether only the prior changed: no alarm for changes of the prior, one for others."""

from dataclasses import replace

import numpy as np
import pytest

from longtail import Prior, Scores, UnknownPriorError
from longtail.posthoc.validation import check_validation
from longtail.shift import check_only_prior_changed
from longtail.shift.only_prior import MOST_CLASSES, _cells, _drawn_mixtures, _misfit

C = 6
TAIL = np.array([400, 200, 100, 50, 25, 12])


def scores_of(seed, counts, sharper=1.0, changed=None):
    """Scores that carry the uniform prior; of a changed class, points nearer to the others."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(C), counts)
    means = 2.0 * np.eye(C)[labels]
    if changed is not None:
        means[labels == changed] *= 0.3
    return Scores(
        sharper * 2.0 * (means + random.normal(size=means.shape)), labels, carried=[1] * C
    )


@pytest.mark.parametrize("counts", [[150] * C, TAIL], ids=["balanced", "long-tailed"])
def test_changes_of_the_prior_alone_are_no_alarm(counts):
    alarms = 0
    for seed in range(40):
        share = np.random.default_rng(seed).dirichlet(np.ones(C))
        new = scores_of(1000 + seed, np.random.default_rng(seed).multinomial(1500, share))
        check = check_only_prior_changed(new, scores_of(seed, counts), resamples=99, seed=seed)
        alarms += check.is_doubtful
    assert alarms <= 3  # of 40, at a level of 1 %


@pytest.mark.parametrize("sharper", [0.7, 1.4])
def test_a_model_that_is_more_or_less_sure_of_new_samples_is_told(sharper):
    validation = scores_of(0, [150] * C)
    for seed in range(1, 6):
        new = scores_of(seed, TAIL, sharper)
        assert check_only_prior_changed(new, validation, resamples=99).is_doubtful


def test_a_class_that_looks_different_is_among_the_worst():
    validation = scores_of(0, [1000] * C)
    check = check_only_prior_changed(scores_of(1, [1000] * C, changed=2), validation)
    assert check.is_doubtful
    assert check.worst[0] == 2


def test_labels_of_the_new_samples_are_not_looked_at():
    validation, new = scores_of(0, [100] * C), scores_of(1, TAIL)
    bare = Scores(new.logits, carried=[1] * C)
    assert check_only_prior_changed(new, validation) == check_only_prior_changed(bare, validation)


@pytest.mark.parametrize("prior", [[1, 2, 3, 4, 5, 6], [50, 20, 10, 5, 2, 1]])
def test_it_makes_no_difference_which_prior_the_scores_were_moved_to_before(prior):
    validation, new = scores_of(0, [150] * C), scores_of(1, TAIL)
    plain = check_only_prior_changed(new, validation)
    assert not plain.is_doubtful
    assert check_only_prior_changed(new.under(prior), validation) == plain
    assert not check_only_prior_changed(new, validation.under(prior)).is_doubtful


def test_scores_of_an_unknown_prior_are_refused():
    validation, new = scores_of(0, [20] * C), scores_of(1, TAIL)
    with pytest.raises(UnknownPriorError, match="the scores carry no known prior"):
        check_only_prior_changed(replace(new, carried=None), validation)
    with pytest.raises(UnknownPriorError, match="the validation scores carry no known prior"):
        check_only_prior_changed(new, replace(validation, carried=None))


def test_classes_by_other_names_are_refused():
    validation, new = scores_of(0, [20] * C), scores_of(1, TAIL)
    named, turned = replace(validation, classes=[*"abcdef"]), replace(new, classes=[*"fedcba"])
    check_only_prior_changed(new, named)
    with pytest.raises(ValueError, match="other names, or are in another order"):
        check_only_prior_changed(turned, named)


def test_counts_and_misfit_are_what_loops_give():
    validation, new = scores_of(0, [20] * C), scores_of(1, TAIL)
    counted, old, said = _cells(new, check_validation(validation, "this"))
    tops = [each.probs().max(axis=1) for each in (validation, new)]
    cuts = np.quantile(np.concatenate(tops), [0.2, 0.4, 0.6, 0.8])
    expected = np.zeros(5 * C)
    for row in new.probs():
        expected[5 * row.argmax() + sum(row.max() > cut for cut in cuts)] += 1
    np.testing.assert_array_equal(counted, expected)
    assert old.sum(axis=0).tolist() == [20] * C
    np.testing.assert_allclose(said.sum(axis=0), 1.0)
    classes, counts = (old + said) / 21, old.sum(axis=0)
    several = np.stack([counted, counted[::-1]], axis=1)
    (total, other), (q, _) = (each.T for each in _misfit(several, classes, counts))
    assert other != total
    naive = 0.0
    for bin in range(5):
        of_bin = [sum(classes[5 * k + bin, y] for k in range(C)) for y in range(C)]
        fitted = sum(q[y] * of_bin[y] for y in range(C))
        noise = sum(q[y] ** 2 * of_bin[y] * (1 - of_bin[y]) / 21 for y in range(C))
        share = sum(counted[5 * k + bin] for k in range(C)) / counted.sum()
        variance = (fitted + 1 / counted.sum()) / counted.sum() + noise
        naive += (share - fitted) ** 2 / variance
    assert total == pytest.approx(naive)
    np.testing.assert_allclose(q.sum(), 1.0)


def test_mixtures_are_drawn_as_from_a_dirichlet_distribution_a_cell_at_a_time():
    random, q = np.random.default_rng(0), np.array([0.7, 0.3])
    open_counts = np.full((10, 2), 0.005)
    open_counts[:3], open_counts[5] = [[20, 3], [4, 5], [0.5, 9]], [0.02, 0.1]
    drawn = _drawn_mixtures(random, open_counts, q, 20_000)
    plain = np.sum([q[k] * random.dirichlet(open_counts[:, k], 20_000) for k in range(2)], axis=0)
    np.testing.assert_allclose(drawn.sum(axis=0), 1.0)
    np.testing.assert_allclose(drawn.mean(axis=1), plain.mean(axis=0), atol=0.002)
    np.testing.assert_allclose(np.cov(drawn)[:6, :6], np.cov(plain.T)[:6, :6], atol=2e-4)


def test_a_class_without_validation_samples_is_no_alarm_by_itself():
    validation = scores_of(0, [100, 100, 100, 100, 100, 0])
    check = check_only_prior_changed(scores_of(1, [100, 100, 100, 100, 100, 5]), validation)
    assert not check.is_doubtful


def test_too_many_classes_and_wrong_scores():
    validation = scores_of(0, [20] * C)
    size = MOST_CLASSES + 1
    many = Scores(np.eye(2, size) - 1.0, labels=[0, 1], carried=Prior.uniform(size))
    assert check_only_prior_changed(many, many) is None
    with pytest.raises(ValueError, match=rf"6 classes.*of {size}"):
        check_only_prior_changed(many, validation)
    with pytest.raises(ValueError, match="0 of 6"):
        check_only_prior_changed(validation.take(np.arange(0)), validation)


def test_four_validation_samples_of_a_class_are_no_alarm():
    share, alarms = np.array([0.98, 0.02]), []
    for seed in range(60):
        rng = np.random.default_rng(seed)

        def drawn(count, prior, rng=rng):
            labels = rng.choice(2, count, p=prior)
            logits = 2 * (rng.normal(size=(count, 2)) + np.eye(2)[labels]) + np.log(share)
            return Scores(logits, labels, carried=share)

        validation, new = drawn(200, share), drawn(3000, rng.dirichlet(np.ones(2)))
        found = check_only_prior_changed(new, validation, resamples=99, seed=seed)
        alarms.append(found.is_doubtful)
    assert np.mean(alarms) <= 0.05
