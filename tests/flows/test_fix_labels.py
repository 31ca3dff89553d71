"""A fix of yes/no labels: what is moved, what is chosen, and on which samples it is measured."""

import json

import numpy as np
import pytest

import longtail as lt
from longtail import LabelOdds, Scores
from longtail.metrics import per_label


def drawn(samples=600, seed=0, bias=(-2.0, 0.5), **options):
    random = np.random.default_rng(seed)
    z = random.standard_normal((samples, 2)) * 2 + np.array([-1.5, 0.0])
    y = (random.random(z.shape) < 1 / (1 + np.exp(-z))).astype(int)
    return Scores(z + np.array(bias), y, family="sigmoid", **options)


def test_thresholds_are_those_of_a_fit_and_the_gain_is_of_samples_not_fitted_on():
    scores = drawn()
    result = lt.fix_labels(scores)
    fitted = lt.posthoc.Thresholds.fit(scores)
    np.testing.assert_array_equal(result.thresholds.logits, fitted.logits)
    assert result.measured == "cross-fitted"
    np.testing.assert_allclose(result.before.f1, per_label(scores).f1)
    assert (result.after.f1 < fitted.values).any()  # not what was fitted on
    again = lt.fix_labels(scores, drawn())  # the same samples by another name
    assert again.measured == "cross-fitted"
    np.testing.assert_array_equal(again.after.f1, result.after.f1)
    assert result.after.macro()["f1"] > result.before.macro()["f1"]


def test_scores_are_moved_from_what_is_measured_to_the_target():
    validation, new = drawn(4000), drawn(4000, seed=1)
    target = LabelOdds.of([0.5, 0.5])
    result = lt.fix_labels(validation, new, target=target, carried="measure", criterion="f1")
    measured = lt.measure_odds(validation)
    assert result.carried == measured
    assert result.scores.carried == target
    np.testing.assert_allclose(result.scores.logits, lt.retarget(new.logits, measured, target))
    assert result.measured == "applied"
    expected = per_label(result.scores, target, result.thresholds)
    np.testing.assert_allclose(result.after.f1, expected.f1)
    assert (result.after.nll < result.before.nll).all()
    assert (result.after.ece < result.before.ece).all()


def test_what_is_said_to_be_carried_goes_before_what_scores_say_and_that_before_train():
    scores = drawn(200, carried=[0.2, 0.3])
    said = lt.fix_labels(scores, train=[0.4, 0.4], carried=[0.1, 0.6])
    assert said.carried == LabelOdds.of([0.1, 0.6])
    assert lt.fix_labels(scores, train=[0.4, 0.4]).carried == LabelOdds.of([0.2, 0.3])
    assert lt.fix_labels(drawn(200), train=[0.4, 0.4]).carried == LabelOdds.of([0.4, 0.4])


def test_its_files_are_read_again(tmp_path):
    scores = drawn(classes=["a", "b"])
    result = lt.fix_labels(scores, train=[0.3, 0.5], target=[0.1, 0.5], output=tmp_path / "out")
    written = Scores.load(tmp_path / "out" / "scores.safetensors")
    thresholds = lt.posthoc.Thresholds.load(tmp_path / "out" / "thresholds.json")
    np.testing.assert_array_equal(
        written.predict(thresholds=thresholds), result.scores.predict(thresholds=result.thresholds)
    )
    numbers = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert numbers["after"]["per_label"]["f1"] == result.after.f1.tolist()
    assert numbers["target"] == pytest.approx([0.1, 0.5])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"target": [0.5, 0.5]}, "measure_odds"),
        ({"carried": "counts"}, 'must be "measure" or odds'),
        ({"criterion": "recall_at_precision"}, "needs at="),
        ({"apply": Scores([[1.0]], family="sigmoid")}, "of the same model"),
        ({"apply": Scores([[1.0, 2.0]])}, "yes/no labels"),
        (
            {"train": [0.2, 0.3], "apply": drawn(carried=[0.5, 0.5])},
            "adjusted already, or another model",
        ),
    ],
)
def test_what_does_not_fit_is_refused(options, error):
    with pytest.raises(ValueError, match=error):
        lt.fix_labels(drawn(60), **options)


def test_scores_without_labels_are_not_fitted_on():
    with pytest.raises(ValueError, match="labelled scores"):
        lt.fix_labels(Scores([[1.0]], family="sigmoid"))
