"""Where scikit-learn or torchmetrics have the same metric, the numbers are the same."""

import numpy as np
import pytest
import sklearn.metrics as sk
import torchmetrics.classification as tm

from longtail import metrics as m

each_seed = pytest.mark.parametrize("seed", range(3))


@each_seed
def test_recalls_and_accuracies_are_scikit_learns(seed, draw):
    logits, labels = (array.numpy() for array in draw(seed))
    predictions = logits.argmax(axis=1)
    recall = m.recalls(predictions, labels, 5)
    np.testing.assert_allclose(recall, sk.recall_score(labels, predictions, average=None))
    assert m.balanced_accuracy(predictions, labels, 5) == pytest.approx(
        sk.balanced_accuracy_score(labels, predictions)
    )
    assert m.accuracy(predictions, labels, 5) == pytest.approx(
        sk.accuracy_score(labels, predictions)
    )


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_absent_classes_are_left_out_as_scikit_learn_does(draw):
    logits, labels = (array.numpy() for array in draw())
    predictions, present = logits.argmax(axis=1), labels.clip(max=3)
    assert 4 in predictions
    assert m.balanced_accuracy(predictions, present, 5) == pytest.approx(
        sk.balanced_accuracy_score(present, predictions)
    )


@each_seed
@pytest.mark.parametrize("weighted", [False, True])
def test_proper_scores_are_scikit_learns(seed, weighted, draw):
    logits, labels = draw(seed)
    weights = np.linspace(0, 3, len(labels)) if weighted else None
    probs = logits.softmax(dim=1).numpy()
    every = {"labels": range(5), "sample_weight": weights}
    assert m.nll(logits, labels, weights) == pytest.approx(sk.log_loss(labels, probs, **every))
    assert m.brier(logits, labels, weights) == pytest.approx(
        sk.brier_score_loss(labels, probs, scale_by_half=False, **every)
    )


@each_seed
@pytest.mark.parametrize("bins", [5, 20])
def test_ece_and_macro_accuracy_are_torchmetrics(seed, bins, draw):
    logits, labels = draw(seed)
    reference = tm.MulticlassCalibrationError(5, n_bins=bins, norm="l1")
    # torchmetrics reckons in float32.
    assert m.ece(logits, labels, bins=bins) == pytest.approx(
        float(reference(logits.softmax(dim=1), labels)), abs=1e-6
    )
    macro = tm.MulticlassAccuracy(5, average="macro")
    assert m.balanced_accuracy(logits, labels) == pytest.approx(
        float(macro(logits, labels)), abs=1e-6
    )


@each_seed
def test_classwise_ece_is_the_mean_of_one_class_against_the_rest(seed, draw):
    """Of two classes, one's probability binned is what torchmetrics calls binary calibration."""
    logits, labels = draw(seed)
    one_vs_rest = [
        float(tm.BinaryCalibrationError(n_bins=20, norm="l1")(probs, (labels == one_class).long()))
        for one_class, probs in enumerate(logits.softmax(dim=1).T)
    ]
    assert m.classwise_ece(logits, labels) == pytest.approx(np.mean(one_vs_rest), abs=1e-6)
