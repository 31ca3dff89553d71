"""A client that goes through every door, for type checkers: no cast, no ignore but the last."""

from pathlib import Path
from typing import TYPE_CHECKING, assert_type

import numpy as np
import numpy.typing as npt
from torch import Tensor

import longtail as lt

COUNTS = [70, 25, 5]


def priors() -> lt.Prior:
    prior = lt.Prior.of(COUNTS)
    by_name = lt.Prior.of({"dog": 1, "cat": 3}, classes=["cat", "dog"])
    assert by_name.num_classes == 2
    probs: npt.NDArray[np.float64] = prior.probs
    assert probs.shape == (3,)
    return prior.tempered(0.5).reweighted([1, 1, 2]).smoothed(0.1)


def scores_in_numpy(logits: npt.NDArray[np.float32], labels: list[int]) -> npt.NDArray[np.float32]:
    scores = lt.Scores(logits, labels, carried=COUNTS, split="validation")
    moved = scores.under(lt.Prior.uniform(3))
    first = moved.take([0, 1])
    return lt.Scores.concat([first, moved]).probs()


def scores_in_torch(logits: Tensor) -> Tensor:
    moved = lt.retarget(logits, COUNTS, [1, 1, 1])
    return lt.Scores(moved, carried=[1, 1, 1]).predict()


def scores_of_lists() -> npt.NDArray[np.float64]:
    return lt.Scores([[2.0, 1.0], [0.5, 0.0]]).logits


def labels_of_yes_and_no(logits: npt.NDArray[np.float32], labels: npt.NDArray[np.int8]) -> float:
    odds = lt.LabelOdds.from_labels(labels).reweighted([2.0, 3.0])
    scores = lt.Scores(logits, labels, carried=odds, family="sigmoid")
    exact = lt.core.LabelScores(logits, labels, carried=odds).under([0.5, 0.5])
    carried: lt.LabelOdds | None = exact.carried
    assert carried is not None
    moved = lt.retarget(logits, odds, carried)
    fitted = lt.posthoc.Thresholds.fit(exact, "f1")
    values: dict[str, float | None] = lt.metrics.evaluate(scores, target=carried)
    predicted: npt.NDArray[np.float32] = exact.predict(thresholds=fitted)
    return float(moved.sum() + predicted.sum()) + (values["f1"] or 0.0)


def trained_on_labels(logits: Tensor, labels: Tensor) -> Tensor:
    loss = lt.losses.BinaryLogitAdjusted([0.1, 0.5], pos_weight=[2.0, 1.0])
    carried: lt.LabelOdds | None = loss.carried
    assert carried is not None
    value: Tensor = loss(logits, labels)
    return value


def trained(logits: Tensor, labels: Tensor, features: Tensor) -> Tensor:
    loss = lt.losses.LogitAdjusted(COUNTS, tau=1.0, label_smoothing=0.1)
    value: Tensor = loss(logits, labels)
    carried: lt.Prior | None = loss.carried
    assert carried is not None
    regularized = lt.losses.ELM(COUNTS, lam=0.01)
    return value + regularized(logits, labels, features)


def headed(features: Tensor, labels: Tensor) -> Tensor:
    head = lt.heads.Linear(16, 3)
    lt.fit_head(head, features, labels, loss=lt.losses.CrossEntropy(COUNTS))
    assert_type(head(features), Tensor)
    return head(features)


def adjusted(validation: lt.Scores[npt.NDArray[np.float64]], path: Path) -> float:
    calibration = lt.posthoc.Temperature.fit(validation)
    move = lt.posthoc.LogitAdjustment.fit(calibration(validation))
    lt.posthoc.save_adjusters(path, [calibration, move])
    after = lt.posthoc.load_adjusters(path)(validation)
    labels = np.arange(len(validation)) % 3
    estimate = lt.shift.estimate_prior(after, method="em")
    curve = lt.posthoc.tau_curve(validation.logits, labels, COUNTS)
    return float(estimate.prior.probs.max()) + curve.best_tau + move.tau


def measured(scores: lt.Scores[Tensor]) -> float:
    values: dict[str, float | None] = lt.metrics.evaluate(scores, target=[1, 1, 1])
    sums = lt.metrics.Accumulator.of(scores) + lt.metrics.Accumulator.of(scores)
    of_logits = lt.metrics.evaluate(scores.logits, [0, 1, 2], groups="many=100,few=20")
    assert of_logits.keys() == lt.metrics.evaluate(sums).keys()
    return lt.metrics.accuracy(scores) + lt.metrics.ece(sums) + (values["nll"] or 0.0)


def measured_in_their_kind(scores: lt.Scores[Tensor], rows: npt.NDArray[np.float32]) -> None:
    labels, sums = np.array([0, 1, 2]), lt.metrics.Accumulator.of(scores)
    assert_type(lt.metrics.recalls(scores), Tensor)
    assert_type(lt.metrics.recalls(scores.predict(), labels), Tensor)
    assert_type(lt.metrics.recalls(rows, labels), npt.NDArray[np.float64])
    assert_type(lt.metrics.recalls([0, 1, 1], labels), npt.NDArray[np.float64])
    assert_type(lt.metrics.recalls(sums), npt.NDArray[np.float64])
    assert_type(lt.metrics.false_positives(scores), Tensor)
    assert_type(lt.metrics.reliability(scores).share, Tensor)
    assert_type(lt.metrics.reliability(rows, labels).accuracy, npt.NDArray[np.float64])
    assert_type(lt.metrics.reliability(sums).ece, float)
    assert_type(lt.metrics.class_logits(scores).positive_mean, Tensor)
    assert_type(lt.metrics.class_logits([[2.0, 1.0]], [0]).negative_std, npt.NDArray[np.float64])
    assert_type(lt.metrics.margins(rows, labels), npt.NDArray[np.float64])
    assert_type(lt.metrics.margin_cdf(scores, at=[0.0, 1.0]), Tensor)
    assert_type(lt.metrics.paired_gain(scores, scores, target=COUNTS), lt.metrics.Interval)
    assert_type(lt.metrics.sanity(scores, sums), lt.metrics.Sanity)


def flows(logits: npt.NDArray[np.float64], labels: npt.NDArray[np.int64], folder: Path) -> str:
    fixed = lt.fix((logits, labels), train=COUNTS, target="uniform")
    fitted = lt.fit(logits, labels, methods=["linear"])
    audited = lt.audit(labels)
    compared = lt.compare([folder / "a", folder / "b"])
    lt.report.save(fixed, folder / "fixed")
    gain: float | None = fixed.judgement.gain.value if fixed.judgement is not None else None
    assert gain is None or audited.has_tail or len(compared.sets) > 0
    loaded = lt.load(folder / "fixed")
    loaded.predict(logits, target=[1, 1, 1])
    return fitted.best.name


def drawn() -> lt.report.Chart:
    return lt.figures.counts_chart(COUNTS)


def checked() -> None:
    lt.testing.check_loss(lt.losses.LogitAdjusted)


if TYPE_CHECKING:
    lt.nope  # type: ignore[attr-defined]
    lt.integrations.nope  # type: ignore[attr-defined]
    lt.posthoc.nope  # type: ignore[attr-defined]
