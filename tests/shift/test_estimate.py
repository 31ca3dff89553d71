"""estimate_prior at the door: what is carried, what comes back, intervals, corners and errors."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from longtail import Prior, Scores, UnknownPriorError
from longtail.shift import estimate_prior
from longtail.shift.estimate import estimate_prepared
from longtail.shift.prepared import prepare
from longtail.shift.simulated import COUNTING

COUNTS = [60, 30, 10]
CARRIED = [[1, 1, 1], COUNTS, [1, 5, 200]]
LOGITS = np.random.default_rng(0).normal(size=(80, 3), scale=2)


@pytest.mark.parametrize("carried", CARRIED[1:])
def test_what_the_scores_carry_changes_nothing(gaussian_scores, carried):
    validation = gaussian_scores(COUNTS, 300, seed=1)
    moved = validation.under([2, 1, 7])
    for method, options in {
        "em": {},
        "bbse": {"calibrate": False},
        "rlls": {"calibrate": False, "soft": True},
    }.items():
        known = {} if method == "em" else {"validation": validation}
        expected = estimate_prior(gaussian_scores([1, 2, 3], 200, 2), method, **known, **options)
        known = {} if method == "em" else {"validation": moved}
        scores = gaussian_scores([1, 2, 3], 200, 2, carried=carried)
        found = estimate_prior(scores, method, **known, **options)
        for name in ("prior", "low", "high"):
            got, wanted = (np.asarray(getattr(one, name)) for one in (found, expected))
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("calibrate", [True, False])
def test_nor_does_what_validation_scores_carry(gaussian_scores, calibrate):
    validation = gaussian_scores(COUNTS, 300, seed=1)
    expected = estimate_prior(
        gaussian_scores([1, 2, 3], 200, 2), validation=validation, calibrate=calibrate
    )
    found = estimate_prior(
        gaussian_scores([1, 2, 3], 200, 2, carried=COUNTS),
        validation=validation.under([2, 1, 7]),
        calibrate=calibrate,
    )
    # A calibration is fitted until rounding ends it.
    tolerance = 1e-6 if calibrate else 1e-10
    np.testing.assert_allclose(found.prior.probs, expected.prior.probs, atol=tolerance)
    assert found.strength == pytest.approx(expected.strength, rel=1e-3)
    assert found.evidence == expected.evidence


def test_numpy_gives_numpy_and_torch_gives_torch():
    for logits, kind in ((LOGITS, np.ndarray), (torch.tensor(LOGITS), torch.Tensor)):
        estimate = estimate_prior(Scores(logits, carried=[1, 1, 1]))
        assert isinstance(estimate.low, kind)
        assert isinstance(estimate.high, kind)
        assert isinstance(estimate.prior, Prior)


def test_half_precision_scores_are_moved_in_full_precision():
    half = LOGITS.astype(np.float16)
    found = estimate_prior(Scores(half, carried=COUNTS)).prior
    assert found.is_close(estimate_prior(Scores(half.astype(float), carried=COUNTS)).prior, 1e-12)


def test_labels_of_the_scores_are_not_looked_at():
    known = Scores(LOGITS, labels=[0] * 80, carried=COUNTS, split="test")
    assert estimate_prior(known).prior == estimate_prior(replace(known, labels=None)).prior


def test_the_same_seed_gives_the_same_and_the_estimate_does_not_depend_on_intervals(
    gaussian_scores,
):
    validation, scores = gaussian_scores(COUNTS, 300, 1), gaussian_scores([1, 1, 4], 200, 2)
    first, again = (estimate_prior(scores, validation=validation) for _ in range(2))
    assert first.prior == again.prior
    np.testing.assert_array_equal(first.low, again.low)
    bare = estimate_prior(scores, validation=validation, intervals=False)
    assert first.prior == bare.prior
    assert (bare.low, bare.high) == (None, None)
    other = estimate_prior(scores, validation=validation, seed=1)
    assert not np.array_equal(first.low, other.low)


def test_the_result_says_what_was_done(gaussian_scores):
    validation, scores = gaussian_scores(COUNTS, 300, 1), gaussian_scores([1, 1, 4], 200, 2)
    alone = estimate_prior(scores)
    assert alone.converged
    assert alone.iterations > 1
    assert (alone.calibration, alone.strength, alone.effective_samples) == (None, None, None)
    checked = estimate_prior(scores, validation=validation)
    assert checked.calibration.temperature == pytest.approx(1, abs=0.2)
    assert checked.evidence in COUNTING
    assert checked.strength > 0
    counts = np.bincount(validation.labels, minlength=3)
    weights = (checked.prior.probs / counts)[validation.labels]
    assert checked.effective_samples == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert estimate_prior(scores, validation=validation, calibrate=False).calibration is None


def test_calibration_mends_a_model_that_is_too_sure(gaussian_scores):
    truth = np.array([0.1, 0.2, 0.7])
    sure = [
        replace(given, logits=given.logits * 6)
        for given in (gaussian_scores(COUNTS, 3000, 1), gaussian_scores(truth, 3000, 2))
    ]
    off = [
        np.abs(
            estimate_prior(
                sure[1], validation=sure[0], calibrate=calibrate, shrink=False, intervals=False
            ).prior.probs
            - truth
        ).sum()
        for calibrate in (True, False)
    ]
    assert off[0] < 0.5 * off[1]


@pytest.mark.parametrize("method", ["em", "bbse", "rlls"])
def test_intervals_hold_the_truth_about_as_often_as_they_say(gaussian_scores, method):
    truth, inside = np.array([0.15, 0.35, 0.5]), []
    for seed in range(40):
        known = {}
        if method != "em":
            known = {
                "validation": gaussian_scores(COUNTS, 1000, seed=100 + seed),
                "calibrate": False,
            }
        estimate = estimate_prior(gaussian_scores(truth, 300, seed), method, **known, seed=seed)
        inside.append((estimate.low <= truth) & (truth <= estimate.high))
    assert 0.87 <= np.mean(inside) <= 0.995


def test_intervals_of_the_checked_estimate_hold_a_trend_and_a_prior_off_it(gaussian_scores):
    counts = np.round(300 * 30.0 ** (-np.arange(10) / 9)).astype(int)
    off = np.random.default_rng(5).dirichlet(np.full(10, 2.0))
    for truth in (counts[::-1] / counts.sum(), off):
        inside = []
        for seed in range(15):
            estimate = estimate_prior(
                gaussian_scores(truth, 800, seed),
                validation=gaussian_scores(counts, 1500, seed=100 + seed, counts=counts),
                calibrate=False,
            )
            inside.append((estimate.low <= truth) & (truth <= estimate.high))
        assert np.mean(inside) >= 0.87


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_intervals_of_a_few_samples_are_wide_and_hold_the_truth(number):
    truth, train, inside = np.array([0.2, 0.3, 0.5]), np.array([0.9, 0.09, 0.01]), []
    random = np.random.default_rng(0)
    for _ in range(60):
        labels = random.choice(3, number, p=truth)
        rows = random.normal(size=(number, 3)) + 3 * np.eye(3)[labels]  # of exactly known densities
        estimate = estimate_prior(Scores(3 * rows - 4.5 + np.log(train), carried=train))
        inside.append((estimate.low <= truth) & (truth <= estimate.high))
        assert (estimate.high - estimate.low > 0.3).all()
    assert np.mean(inside) > 0.9


def test_a_few_samples_without_a_prior_have_no_interval():
    few = Scores(np.eye(3)[[0, 1]] * 5, carried=[1, 1, 1])
    estimate = estimate_prior(few, pseudo_count=0)
    assert (estimate.low, estimate.high) == (None, None)
    many = estimate_prior(Scores(np.eye(3)[[0, 1, 2] * 10] * 5, carried=[1, 1, 1]), pseudo_count=0)
    assert (many.high > many.low).all()


def test_more_samples_make_narrower_intervals(gaussian_scores):
    widths = [
        np.log(estimate.high / estimate.low).mean()
        for estimate in (estimate_prior(gaussian_scores(COUNTS, n, 1)) for n in (100, 1000, 10_000))
    ]
    assert widths[0] > 2 * widths[1] > 4 * widths[2]


def test_intervals_lie_around_the_estimate_within_zero_and_one(gaussian_scores):
    estimate = estimate_prior(gaussian_scores([1, 0, 0], 10, 1))
    probs = estimate.prior.probs
    assert ((estimate.low > 0) & (estimate.low <= probs)).all()
    assert ((probs <= estimate.high) & (estimate.high <= 1)).all()


@pytest.mark.parametrize("method", ["em", "bbse", "rlls"])
def test_the_corners_one_class_one_sample_and_classes_that_do_not_occur(gaussian_scores, method):
    one_class = Scores(np.zeros((5, 1)), labels=[0] * 5, carried=[1])
    alone = estimate_prior(one_class, method, one_class)
    assert alone.prior.probs.tolist() == [1.0]
    assert (float(alone.low[0]), float(alone.high[0])) == (1.0, 1.0)

    validation = gaussian_scores(COUNTS, 300, seed=1)
    single = gaussian_scores(COUNTS, 1, seed=2)
    absent = gaussian_scores([1, 0, 0], 400, seed=2)
    for scores in (single, absent):
        estimate = estimate_prior(scores, method, validation)
        assert not estimate.prior.has_zeros
        scores.under(Prior.uniform(3)).under(estimate.prior).under(COUNTS)
        assert np.isfinite(estimate.low).all()
        assert np.isfinite(estimate.high).all()
    assert estimate.prior.probs[0] > 0.9


def test_one_sample_alone_moves_em_by_no_more_than_one_sample():
    estimate = estimate_prior(Scores([[50.0, 0.0, 0.0]], carried=[1, 1, 1]))
    assert estimate.prior.is_close(Prior.of([2, 1, 1]), 1e-6)


RULED_OUT = LOGITS.copy()
RULED_OUT[1, 1] = -np.inf
GOOD = Scores(LOGITS, carried=COUNTS)
KNOWN = Scores(LOGITS, labels=[0, 1, 2, 0] * 20, carried=COUNTS, split="validation")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: estimate_prior(GOOD, "mlls"), '"em", "bbse" or "rlls"'),
        (lambda: estimate_prior(GOOD, "bbse"), 'method="bbse" .* give validation scores'),
        (lambda: estimate_prior(GOOD, "rlls"), "cross-fitted"),
        (lambda: estimate_prior(GOOD, pseudo_count=-1), "pseudo_count must be .* 0 or more"),
        (
            lambda: estimate_prior(GOOD, validation=KNOWN, pseudo_count=1),
            "learned: leave pseudo_count out",
        ),
        (lambda: estimate_prior(GOOD, features=LOGITS), "features are for .* validation scores"),
        (
            lambda: estimate_prior(GOOD, validation=KNOWN, features=LOGITS),
            "both features and validation_features",
        ),
        (
            lambda: estimate_prior(
                GOOD, validation=KNOWN, features=LOGITS[:5], validation_features=LOGITS
            ),
            r"features must be .* shape \(80, D\).*got shape \(5, 3\)",
        ),
        (
            lambda: estimate_prior(
                GOOD, validation=KNOWN, features=LOGITS, validation_features=LOGITS[:, :2]
            ),
            "3 numbers a sample but validation_features 2",
        ),
        (lambda: estimate_prior(Scores(LOGITS[:0], carried=COUNTS)), "at least one sample"),
        (lambda: estimate_prior(GOOD, soft=True), 'soft=True is of a confusion matrix, and "em"'),
        (lambda: estimate_prior(GOOD, validation=KNOWN, soft=True), "soft=True is of a confusion"),
        (lambda: estimate_prior(GOOD, shrink=False), "shrink=False is for .* validation scores"),
        (
            lambda: estimate_prior(GOOD, "bbse", KNOWN, shrink=False),
            "shrink=False is for method=.em.",
        ),
        (
            lambda: estimate_prior(GOOD, "rlls", KNOWN, shrink=False),
            "shrink=False is for method=.em.",
        ),
        (lambda: estimate_prior(GOOD, calibrate=False), "calibrate=False is for validation scores"),
        (
            lambda: estimate_prior(GOOD, validation=replace(KNOWN, split="test")),
            r"not be fitted.*split='test'",
        ),
        (
            lambda: estimate_prior(GOOD, validation=replace(KNOWN, labels=None)),
            "these have no labels",
        ),
        (
            lambda: estimate_prior(GOOD, validation=Scores(LOGITS[:, :2], [0] * 80, [1, 1])),
            "have 2 classes but the scores 3",
        ),
        (
            lambda: estimate_prior(
                GOOD, validation=replace(KNOWN, logits=RULED_OUT), calibrate=False
            ),
            r"sample 1.*own label, class 1",
        ),
    ],
)
def test_wrong_input_gives_one_clear_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_scores_of_unknown_prior_are_refused_with_the_remedy():
    with pytest.raises(UnknownPriorError, match="measure_carried"):
        estimate_prior(Scores(LOGITS))
    with pytest.raises(UnknownPriorError, match=r"validation scores.*no known prior"):
        estimate_prior(GOOD, validation=replace(KNOWN, carried=None))


def test_validation_scores_that_are_made_ready_once_serve_any_number_of_estimates(gaussian_scores):
    validation = gaussian_scores(COUNTS, 300, 1)
    ready = prepare(validation, 3)
    for seed, number in ((2, 150), (3, 150), (4, 90)):
        scores = gaussian_scores([1, 1, 4], number, seed)
        found, afresh = estimate_prepared(scores, ready), estimate_prior(scores, "em", validation)
        assert found.prior == afresh.prior
        np.testing.assert_array_equal(found.low, afresh.low)
    assert len(ready.relied) == 2  # once for each number of samples
