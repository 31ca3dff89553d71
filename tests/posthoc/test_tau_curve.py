"""P1, P3, P4: accuracy for every τ, against adjusting and counting at single ones."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score

from longtail import Prior, Scores
from longtail.metrics import recalls
from longtail.metrics.recall import mean_recall
from longtail.posthoc import LogitAdjustment, WeightNormalization, tau_curve, weight_norm_curve
from longtail.posthoc.tau import curve as curve_module
from longtail.posthoc.tau.curve import Piece, best_pieces

COUNTS = np.array([500, 120, 60, 20, 5])


def draw(seed=0, samples=400, classes=5, dtype=np.float64, balanced=False):
    """Logits of a middling model that carries the training prior, and labels."""
    rng = np.random.default_rng(seed)
    counts = COUNTS if classes == 5 else np.geomspace(500, 5, classes).astype(int)
    frequencies = None if balanced else counts / counts.sum()
    labels = rng.choice(classes, samples, p=frequencies)
    logits = rng.normal(size=(samples, classes)) + np.log(counts / counts.sum())
    logits[np.arange(samples), labels] += 2
    return logits.astype(dtype), labels, counts


def by_hand(logits, labels, counts, target, tau):
    """Accuracy under the target of f + τ·(log t − log π), class by class."""
    target, prior = np.array(target) / np.sum(target), counts / counts.sum()
    predicted = (logits + tau * (np.log(target) - np.log(prior))).argmax(axis=1)
    hits = total = 0.0
    for y in np.unique(labels):
        hits += target[y] * np.mean(predicted[labels == y] == y)
        total += target[y]
    return hits / total


TARGETS = [[1, 1, 1, 1, 1], [1, 2, 3, 4, 5], [5, 4, 3, 2, 1]]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_curve_is_what_counting_gives_at_every_tau(target, seed):
    logits, labels, counts = draw(seed)
    curve = tau_curve(logits, labels, counts, target)
    middles = (curve.taus[:-1] + curve.taus[1:]) / 2
    inside = middles[(np.diff(curve.taus) > 1e-9) & (np.abs(middles) < 30)]
    assert len(inside) > 300
    for tau in [*inside[::7], -50.0, 0.0, 1.0, 50.0]:
        assert curve.at(tau) == pytest.approx(
            by_hand(logits, labels, counts, target, tau), abs=1e-11
        )


def test_values_belong_to_the_pieces_between_the_ends():
    logits, labels, counts = draw()
    curve = tau_curve(logits, labels, counts)
    assert len(curve.accuracy) == len(curve.taus) + 1
    assert (np.diff(curve.taus) > 0).all()
    assert curve.at(-np.inf) == curve.accuracy[0]
    assert curve.at(np.inf) == curve.accuracy[-1]
    for k in range(0, len(curve.taus), 25):
        assert curve.at(curve.taus[k]) == curve.accuracy[k + 1]
        assert curve.at(np.nextafter(curve.taus[k], -np.inf)) == curve.accuracy[k]


def test_at_zero_it_is_the_balanced_accuracy_of_the_scores_as_they_are():
    logits, labels, counts = draw()
    curve = tau_curve(logits, labels, counts)
    assert curve.at(0.0) == pytest.approx(balanced_accuracy_score(labels, logits.argmax(axis=1)))
    np.testing.assert_allclose(
        curve.recalls(0.0), recalls(logits.argmax(axis=1), labels, 5), atol=1e-15
    )


def test_under_a_target_balanced_accuracy_is_given_as_well():
    logits, labels, counts = draw()
    curve = tau_curve(logits, labels, counts, target=[1, 2, 3, 4, 5])
    for tau in (0.0, 0.4, 1.3):
        recall = curve.recalls(tau)
        piece = np.searchsorted(curve.taus, tau, side="right")
        assert curve.balanced_accuracy[piece] == pytest.approx(np.mean(recall))
        assert curve.accuracy[piece] == pytest.approx(mean_recall(recall, np.arange(1, 6)))


@pytest.mark.parametrize("target", [None, [1, 2, 3, 4, 5]])
@pytest.mark.parametrize("seed", range(4))
def test_no_tau_of_a_grid_is_better_than_the_best(target, seed):
    logits, labels, counts = draw(seed)
    curve = tau_curve(logits, labels, counts, target)
    goal = [1] * 5 if target is None else target
    grid = max(by_hand(logits, labels, counts, goal, t) for t in np.linspace(-1, 3, 401))
    assert curve.best_accuracy >= grid - 1e-12
    assert curve.best_accuracy == pytest.approx(np.max(curve.accuracy))
    low, high = curve.best_interval
    assert low <= curve.best_tau < high


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("seed", range(6))
def test_applying_the_best_tau_gives_the_accuracy_it_promises(dtype, seed):
    logits, labels, counts = draw(seed, samples=3000, classes=40, dtype=dtype, balanced=True)
    curve = tau_curve(logits, labels, counts)
    adjusted = LogitAdjustment(counts, curve.best_tau)(Scores(logits, labels, carried=counts))
    found = balanced_accuracy_score(labels, adjusted.predict())
    assert curve.best_accuracy == pytest.approx(found, abs=1e-12)
    assert curve.best_accuracy == pytest.approx(curve.at(curve.best_tau), abs=2e-3)
    if dtype != np.float16:
        assert curve.best_accuracy == pytest.approx(np.max(curve.accuracy), abs=1e-12)


def test_pieces_that_rounding_spoils_are_passed_over(monkeypatch):
    def kept(tries):
        monkeypatch.setattr(curve_module, "_TRIES", tries)
        drawn = (draw(k, 1000, 20, np.float16, balanced=True) for k in range(8))
        return np.array([tau_curve(*one).best_accuracy for one in drawn])

    first, best_of_five = kept(1), kept(5)
    assert (best_of_five >= first).all()
    assert (best_of_five > first).any()


def test_towards_the_training_prior_itself_nothing_moves():
    logits, labels, counts = draw()
    curve = tau_curve(logits, labels, counts, target=counts)
    assert (len(curve.taus), curve.best_tau) == (0, 1.0)
    assert curve.at(7.0) == pytest.approx(by_hand(logits, labels, counts, counts, 0.0))


def test_weight_normalisation_has_such_a_curve_too():
    logits, labels, _ = draw(3)
    nu = np.array([2.0, 1.5, 1.1, 0.9, 0.6])
    curve = weight_norm_curve(logits, labels, nu)
    for tau in np.linspace(-3, 3, 41):
        predicted = (logits / nu**tau).argmax(axis=1)
        assert curve.at(tau) == pytest.approx(balanced_accuracy_score(labels, predicted))
    adjusted = WeightNormalization(nu, curve.best_tau)(Scores(logits, labels))
    assert curve.best_accuracy == pytest.approx(balanced_accuracy_score(labels, adjusted.predict()))
    under = weight_norm_curve(logits, labels, nu, target=[1, 2, 3, 4, 5])
    assert under.at(0.5) == pytest.approx(mean_recall(curve.recalls(0.5), np.arange(1, 6)))


@given(st.integers(0, 10_000))
def test_a_constant_added_to_a_row_changes_nothing(seed):
    logits, labels, counts = draw(seed, samples=20)
    shifts = np.random.default_rng(seed).integers(-8, 8, size=(20, 1))  # exact on these numbers
    quantised = np.round(logits * 64) / 64
    before, after = (tau_curve(f, labels, counts) for f in (quantised, quantised + shifts))
    np.testing.assert_array_equal(before.taus, after.taus)
    np.testing.assert_array_equal(before.accuracy, after.accuracy)


@given(st.integers(0, 10_000))
def test_other_names_for_the_classes_change_nothing(seed):
    logits, labels, counts = draw(seed, samples=20)
    names = np.random.default_rng(seed).permutation(5)
    before = tau_curve(logits, labels, counts)
    after = tau_curve(logits[:, names], np.argsort(names)[labels], counts[names])
    # Which of two neighbouring numbers an end is depends on the names, by the ties.
    np.testing.assert_allclose(before.taus, after.taus, rtol=1e-14)
    np.testing.assert_allclose(before.accuracy, after.accuracy, atol=1e-12)
    assert after.best_tau == pytest.approx(before.best_tau, rel=1e-12)


@given(st.integers(0, 10_000), st.sampled_from([0.5, 2.0, 8.0]))
def test_logits_on_another_scale_stretch_the_curve(seed, scale):
    logits, labels, counts = draw(seed, samples=20)
    before, after = tau_curve(logits, labels, counts), tau_curve(scale * logits, labels, counts)
    np.testing.assert_allclose(scale * before.taus, after.taus, rtol=1e-12)
    np.testing.assert_array_equal(before.accuracy, after.accuracy)


def test_a_class_without_samples_is_left_out_but_can_still_win():
    logits, labels, counts = draw()
    kept = labels != 3
    curve = tau_curve(logits[kept], labels[kept], counts)
    assert np.isnan(curve.recalls(1.0)).tolist() == [False, False, False, True, False]
    wanted = by_hand(logits[kept], labels[kept], counts, [1] * 5, 1.0)
    assert curve.at(1.0) == pytest.approx(wanted)


def test_one_class_is_always_right():
    curve = tau_curve(np.zeros((3, 1)), [0, 0, 0], [7])
    assert curve.accuracy.tolist() == [1.0]
    assert (len(curve.taus), curve.best_tau, curve.best_interval) == (0, 1.0, (-np.inf, np.inf))


def test_one_sample_is_right_up_to_where_the_rarer_class_overtakes():
    curve = tau_curve(np.array([[2.0, 1.0]]), [0], [9, 1])
    end = np.nextafter(1 / np.log(9), 1)  # at the end itself the first class still wins
    np.testing.assert_allclose(curve.taus, [end], rtol=1e-15)
    assert curve.accuracy.tolist() == [1.0, 0.0]
    assert curve.best_interval == (-np.inf, curve.taus[0])
    assert curve.best_tau == pytest.approx(end - 1)  # one inside the end


def test_if_nothing_is_ever_right_tau_stays_one():
    curve = tau_curve(np.array([[1.0, -np.inf]]), [1], [9, 1])
    assert (curve.accuracy.tolist(), curve.best_tau) == ([0.0], 1.0)


def test_with_equal_priors_tau_makes_no_difference():
    logits, labels, _ = draw()
    curve = tau_curve(logits, labels, [1, 1, 1, 1, 1])
    assert len(curve.taus) == 0
    assert curve.accuracy[0] == pytest.approx(
        balanced_accuracy_score(labels, logits.argmax(axis=1))
    )


def test_of_equal_best_pieces_the_nearest_to_one_is_taken():
    # In units of log 9: right below -3 and above -2, below 2 and above 3: two pieces as good.
    step = np.log(9)
    logits = np.array([[step * t, 0.0] for t in (-3, -2, 2, 3)])
    curve = tau_curve(logits, [0, 1, 0, 1], [9, 1])
    assert curve.accuracy.tolist() == [0.5, 0.25, 0.5, 0.25, 0.5]
    assert curve.best_interval == pytest.approx((-2, 2))


def test_a_best_value_at_a_single_tau_is_found():
    """Both samples are right at zero alone, where the tie goes to the first of the two."""
    tied = np.array([[1.0, 1.0, -9.0], [-9.0, 1.0, 1.0]])
    prior = [1, 4, 1]
    curve = tau_curve(tied, [0, 1], prior)
    assert (curve.best_tau, curve.best_accuracy, curve.at(0.0)) == (0.0, 1.0, 1.0)
    assert curve.best_interval == (0.0, np.nextafter(0.0, 1.0))
    assert curve.at(-0.1) == curve.at(0.1) == 0.5


def test_pieces_are_ranked_by_value_then_width_then_nearness_to_one():
    taus = np.array([-5.0, -3.0, 0.0, np.nextafter(0.0, 1.0), 4.0])
    values = np.array([0.2, 0.5, 0.1, 0.5, 0.1, 0.5])  # the fourth holds at zero alone
    pieces = best_pieces(taus, values, most=3)
    assert [(p.low, p.high) for p in pieces] == [(4.0, np.inf), (-5.0, -3.0), (0.0, taus[3])]
    assert [p.inner for p in pieces] == [5.0, -4.0, 0.0]
    joined = best_pieces(np.array([1.0, 2.0]), np.array([0.1, 0.7, 0.7]), most=5)
    assert joined[0] == (1.0, np.inf, 0.7)
    assert len(joined) == 2


@pytest.mark.parametrize(
    ("low", "high", "inner"),
    [
        (-210.0, 210.0, 1.0),
        (0.9, np.inf, 1.0),
        (-np.inf, np.inf, 1.0),
        (1.0, 1.5, 1.0),
        (0.5, 1.0, 0.75),  # a piece does not hold its upper end
        (2.0, 4.0, 3.0),
        (2.0, np.inf, 3.0),
        (-np.inf, 0.5, -0.5),
    ],
)
def test_of_a_best_piece_one_is_taken_if_it_lies_inside_and_else_the_middle(low, high, inner):
    assert Piece(low, high, 0.5).inner == inner


def test_torch_gives_torch_and_numpy_numpy():
    logits, labels, counts = draw()
    plain = tau_curve(logits, labels, counts)
    tensors = tau_curve(torch.tensor(logits, requires_grad=True), torch.tensor(labels), counts)
    assert isinstance(plain.taus, np.ndarray)
    assert isinstance(plain.recalls(0.0), np.ndarray)
    for name in ("taus", "accuracy", "balanced_accuracy"):
        tensor = getattr(tensors, name)
        assert isinstance(tensor, torch.Tensor)
        np.testing.assert_array_equal(tensor.numpy(), getattr(plain, name))
    assert tensors.at(0.3) == plain.at(0.3)
    assert isinstance(tensors.recalls(0.0), torch.Tensor)
    with torch.inference_mode():
        assert tau_curve(torch.tensor(logits), labels, counts).best_tau == plain.best_tau


def test_a_target_that_rules_classes_out_leaves_their_samples_out():
    logits, labels, counts = draw()
    target = Prior.of([1, 1, 0, 1, 0], zeros="keep")
    curve = tau_curve(logits, labels, counts, target)
    possible = target.probs > 0
    for tau in (-1.0, 0.0, 0.5, 1.0, 2.0):
        moved = np.where(possible, logits - tau * np.log(counts / counts.sum()), -np.inf)
        recall = recalls(moved.argmax(axis=1), labels, 5)
        assert curve.at(tau) == pytest.approx(np.mean(recall[possible]))


def test_the_curve_says_in_one_line_what_it_found():
    logits, labels, counts = draw()
    assert repr(tau_curve(logits, labels, counts)).startswith("TauCurve(400 samples, ")


LOGITS = np.zeros((2, 3))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: tau_curve(LOGITS, [0], [1, 1, 1]), "2 rows of logits but 1 labels"),
        (lambda: tau_curve(LOGITS[:0], [], [1, 1, 1]), "needs samples and their labels"),
        (lambda: tau_curve(LOGITS, [0, 3], [1, 1, 1]), "labels must lie in 0 to 2"),
        (lambda: tau_curve(LOGITS, [0, 1], [1, 1]), r"3 classes.*training prior has 2"),
        (lambda: tau_curve(LOGITS, [0, 1], [1, 0, 1]), "zeros='smooth'"),
        (lambda: tau_curve(LOGITS, [0, 1], [1, 1, 1], [1, 1]), "target prior has 2"),
        (lambda: tau_curve(LOGITS * np.nan, [0, 1], [1, 1, 1]), "got nan in row 0, class 0"),
        (lambda: tau_curve(LOGITS + np.inf, [0, 1], [1, 1, 1]), "got inf in row 0, class 0"),
        (lambda: tau_curve(LOGITS - np.inf, [0, 1], [1, 1, 1]), "finite value in every row"),
        (lambda: tau_curve(LOGITS.astype(int), [0, 1], [1, 1, 1]), "floating type"),
        (lambda: tau_curve(LOGITS[0], [0, 1], [1, 1, 1]), r"shape \(samples, classes\)"),
        (
            lambda: tau_curve(LOGITS, [0, 1], [1, 1, 1], Prior.of([0, 0, 1], zeros="keep")),
            "no sample counts",
        ),
        (lambda: weight_norm_curve(LOGITS, [0, 1], [1, 0, 1]), "nu must be positive"),
        (lambda: weight_norm_curve(LOGITS, [0, 1], [1, 1]), "3 classes"),
        (lambda: weight_norm_curve(LOGITS, [0, 1], [1, 1, 1], [1, 1]), "target prior has 2"),
        (lambda: tau_curve(LOGITS, [0, 1], [1, 1, 1]).bootstrap(1), "at least 2 replicates"),
    ],
)
def test_wrong_input_gives_one_clear_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("curve", [tau_curve, weight_norm_curve])
def test_probabilities_are_refused_as_logits(curve):
    probs = np.array([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8]])
    with pytest.raises(ValueError, match="these logits are probabilities"):
        curve(probs, [0, 1, 0], [9, 1])
