"""evaluate: every metric at once, under the test prior or a target."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import metrics as m
from longtail.core import Prior, Scores, UnknownPriorError, retarget

CARRIED = [50, 30, 12, 6, 2]


def test_without_target_every_entry_is_the_metric_of_that_name(draw):
    logits, labels = draw()
    scores = Scores(logits, labels, counts=[500, 150, 60, 20, 8])
    predictions = logits.argmax(dim=1)
    recall = m.recalls(predictions, labels, 5)
    assert m.evaluate(scores) == {
        "accuracy": m.accuracy(predictions, labels, 5),
        "accuracy_under_target": None,
        "balanced_accuracy": m.balanced_accuracy(predictions, labels, 5),
        "geometric_mean": m.geometric_mean(predictions, labels, 5),
        "worst_class": m.worst_class(predictions, labels, 5),
        "nll": m.nll(logits, labels),
        "brier": m.brier(logits, labels),
        "ece": m.ece(logits, labels),
        "classwise_ece": m.classwise_ece(logits, labels),
        "classwise_ece_paper": m.classwise_ece(logits, labels, form="paper"),
        "absent_classes": 0.0,
        "many": pytest.approx(float(recall[:2].mean())),
        "medium": pytest.approx(float(recall[2:4].mean())),
        "few": pytest.approx(float(recall[4])),
    }


def test_under_a_target_it_measures_a_population_that_follows_the_target(draw):
    """Samples copied until their labels follow the target, with moved logits, say the same."""
    counts, target = torch.tensor([12, 6, 4, 3, 1]), torch.tensor([1, 1, 2, 3, 3])
    labels = torch.arange(5).repeat_interleave(counts)
    logits, _ = draw(num_samples=len(labels))
    copies = (12 * target // counts)[labels]
    moved = retarget(logits, CARRIED, target).repeat_interleave(copies, 0)
    population = m.evaluate(Scores(moved, labels.repeat_interleave(copies)))
    result = m.evaluate(Scores(logits, labels, carried=CARRIED), target=target)
    # There the samples as they are follow the target.
    population["accuracy_under_target"] = population.pop("accuracy")
    own = {name: result[name] for name in population}
    assert len(own) >= 9
    assert own == pytest.approx(population, rel=1e-9)


def test_the_target_changes_predictions_so_balanced_accuracy_too(draw):
    logits, labels = draw()
    scores = Scores(logits, labels, carried=CARRIED)
    uniform = m.evaluate(scores, target=Prior.uniform(5))
    moved = retarget(logits, CARRIED, Prior.uniform(5)).argmax(dim=1)
    assert uniform["balanced_accuracy"] == m.balanced_accuracy(moved, labels, 5)
    assert uniform["balanced_accuracy"] != m.evaluate(scores)["balanced_accuracy"]
    assert uniform["accuracy_under_target"] == pytest.approx(uniform["balanced_accuracy"])


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_under_the_test_prior_nothing_changes_for_scores_that_carry_it(seed, draw):
    logits, labels = draw(seed, num_samples=60)
    labels[:5] = torch.arange(5)
    test_prior = Prior.from_labels(labels, 5)
    scores = Scores(logits, labels, carried=test_prior, counts=[500, 150, 60, 20, 8])
    under, plain = m.evaluate(scores, target=test_prior), m.evaluate(scores)
    assert under == pytest.approx(plain | {"accuracy_under_target": plain["accuracy"]}, rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), names=st.permutations(range(5)))
def test_renaming_classes_changes_nothing(seed, names, draw):
    logits, labels = draw(seed, num_samples=60)
    back = np.argsort(names)
    target, carried = np.array([1, 2, 3, 4, 5]), np.array(CARRIED)
    plain = m.evaluate(Scores(logits, labels, carried=carried), target=target)
    renamed = Scores(logits[:, back], torch.tensor(names)[labels], carried=carried[back])
    assert m.evaluate(renamed, target=target[back]) == pytest.approx(plain, rel=1e-9)


def test_class_counts_and_a_prior_are_the_same_target(draw):
    scores = Scores(*draw(), carried=CARRIED)
    assert m.evaluate(scores, target=[5, 4, 3, 2, 1]) == m.evaluate(
        scores, target=Prior.of([5, 4, 3, 2, 1])
    )


def test_numpy_and_torch_agree_and_values_are_plain_floats(draw):
    logits, labels = draw()
    arrays = Scores(logits.numpy(), labels.numpy(), carried=CARRIED, counts=np.array(CARRIED))
    tensors = Scores(logits, labels, carried=CARRIED, counts=CARRIED)
    result = m.evaluate(arrays, target=Prior.uniform(5))
    assert result == m.evaluate(tensors, target=Prior.uniform(5))
    assert {type(value) for value in result.values()} == {float, type(None)}


def test_absent_classes_are_counted_and_left_out(draw):
    logits, labels = draw()
    labels = labels.clamp(max=2)
    result = m.evaluate(Scores(logits, labels, carried=CARRIED), target=[1, 1, 2, 50, 50])
    kept = m.recalls(retarget(logits, CARRIED, [1, 1, 2, 50, 50]).argmax(dim=1), labels, 5)[:3]
    assert result["absent_classes"] == 2
    assert result["balanced_accuracy"] == pytest.approx(float(kept.mean()))
    under = float(kept @ torch.tensor([0.25, 0.25, 0.5]).double())
    assert result["accuracy_under_target"] == pytest.approx(under)
    assert np.isfinite(result["nll"])


def test_under_a_target_all_three_accuracies_have_the_one_name_they_have_everywhere(draw):
    logits, labels = draw()
    target = Prior.of([1, 1, 2, 3, 3])
    scores = Scores(logits, labels, carried=CARRIED)
    found, predicted = m.evaluate(scores, target=target), scores.under(target).predict()
    recall = m.recalls(predicted, labels, 5)
    assert found["accuracy"] == pytest.approx(float((predicted == labels).double().mean()))
    assert found["accuracy_under_target"] == pytest.approx(float(np.asarray(recall) @ target.probs))
    assert found["balanced_accuracy"] == pytest.approx(float(recall.mean()))
    assert len({round(found[key], 9) for key in found if "accuracy" in key}) == 3
    measured = m.Accumulator.of(scores.under(target), target).metrics()
    assert measured.keys() == found.keys()
    for key in ("accuracy", "accuracy_under_target", "balanced_accuracy"):
        assert measured[key].value == pytest.approx(found[key])


def test_a_target_may_rule_out_classes_that_the_test_set_has(draw):
    logits, labels = draw()
    target = Prior.of([1, 1, 1, 0, 0], zeros="keep")
    result = m.evaluate(Scores(logits, labels, carried=CARRIED), target=target)
    inside = labels < 3
    small = Scores(logits[inside, :3], labels[inside], carried=CARRIED[:3])
    expected = m.evaluate(small, target=Prior.uniform(3))
    for name in ("accuracy_under_target", "nll", "brier", "ece"):
        assert result[name] == pytest.approx(expected[name], rel=1e-9)
    assert result["worst_class"] == 0.0


def test_a_target_on_absent_classes_only_is_refused(draw):
    logits, labels = draw()
    scores = Scores(logits, labels.clamp(max=2), carried=CARRIED)
    with pytest.raises(ValueError, match="hold all the weight"):
        m.evaluate(scores, target=Prior.of([0, 0, 0, 1, 1], zeros="keep"))


def test_scores_that_carry_no_known_prior_cannot_be_moved_but_can_be_measured(draw):
    scores = Scores(*draw())
    with pytest.raises(UnknownPriorError, match="measure_carried"):
        m.evaluate(scores, target=Prior.uniform(5))
    assert 0 < m.evaluate(scores)["accuracy"] < 1


def test_groups_are_there_if_given_or_if_training_counts_are_known(draw):
    logits, labels = draw()
    bare, counted = Scores(logits, labels), Scores(logits, labels, counts=[500, 400, 300, 200, 150])
    assert not {"many", "medium", "few"} & m.evaluate(bare).keys()
    assert m.evaluate(counted)["many"] == m.evaluate(counted)["balanced_accuracy"]
    assert m.evaluate(counted)["few"] is None
    named = m.evaluate(counted, groups={"animals": np.arange(5) < 2})
    recall = m.recalls(logits.argmax(dim=1), labels, 5)
    assert named["animals"] == pytest.approx(float(recall[:2].mean()))
    assert "many" not in named
    assert "many" not in m.evaluate(counted, groups={})


def test_a_group_named_like_a_metric_is_refused(draw):
    with pytest.raises(ValueError, match=r"\['ece'\].*rename"):
        m.evaluate(Scores(*draw()), groups={"ece": np.ones(5, bool)})


def test_one_sample_is_enough():
    result = m.evaluate(Scores([[2.0, 1.0, 0.0]], [0], carried=[1, 1, 1]), target=[3, 2, 1])
    assert result["accuracy"] == result["accuracy_under_target"] == 1.0
    assert result["balanced_accuracy"] == 1.0
    assert result["absent_classes"] == 2


def test_labels_and_samples_are_needed(draw):
    with pytest.raises(ValueError, match="labels=labels"):
        m.evaluate(Scores(draw()[0]))
    with pytest.raises(ValueError, match="at least one sample"):
        m.evaluate(Scores(np.zeros((0, 3)), np.zeros(0, int)))


def test_another_default_device_changes_no_metric(draw):
    logits, labels = draw()
    scores = Scores(logits, labels, carried=CARRIED, counts=[500, 150, 60, 20, 8])
    expected = m.evaluate(scores, target=[1, 1, 1, 1, 1])
    with torch.device("meta"):
        assert m.evaluate(scores, target=[1, 1, 1, 1, 1]) == expected
        for metric in (m.nll, m.brier, m.ece, m.classwise_ece):
            assert metric(logits, labels) > 0
