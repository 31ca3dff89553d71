"""One contract in the whole namespace: scores; logits or predictions with labels; sums."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import longtail as lt
from longtail import metrics as m

RANDOM = np.random.default_rng(0)
LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 0])
LOGITS = RANDOM.normal(size=(8, 3)) + 1.5 * np.eye(3)[LABELS]
AFTER = RANDOM.normal(size=(8, 3)) + 1.5 * np.eye(3)[LABELS]
SCORES = lt.Scores(LOGITS, LABELS)
SUMS = m.Accumulator.of(SCORES)


def test_evaluate_takes_logits_with_labels_and_sums_as_every_metric_does():
    values = m.evaluate(SCORES)
    assert m.evaluate(LOGITS, LABELS) == m.evaluate(torch.tensor(LOGITS), LABELS) == values
    assert m.evaluate(SUMS) == pytest.approx(values)
    masks = {"first": [True, False, False]}
    grouped = m.evaluate(LOGITS, labels=LABELS, groups=masks)
    assert grouped["first"] == m.recalls(SCORES)[0]
    assert grouped == m.evaluate(SCORES, groups=masks)
    with pytest.raises(lt.UnknownPriorError):
        m.evaluate(LOGITS, LABELS, target=[1, 1, 1])


@pytest.mark.parametrize("options", [{"target": [1, 1, 1]}, {"groups": {}}, {"labels": LABELS}])
def test_sums_that_are_evaluated_have_their_labels_target_and_groups(options):
    with pytest.raises(ValueError, match="leave them out"):
        m.evaluate(SUMS, **options)


def test_false_positives_are_counted_from_sums_too():
    expected = m.false_positives(SCORES)
    np.testing.assert_array_equal(m.false_positives(SUMS), expected)
    np.testing.assert_array_equal(m.false_positives(LOGITS, LABELS), expected)
    assert expected.sum() > 0


@pytest.mark.parametrize(
    "metric",
    [
        lambda sums: m.group_confusion(sums, groups={"all": [True] * 3}),
        m.most_mistaken,
        m.class_logits,
        m.margins,
        lambda sums: m.margin_cdf(sums, at=[0.0]),
        lambda sums: m.paired_gain(sums, sums, target=[1, 1, 1]),
    ],
)
def test_what_looks_at_each_sample_refuses_sums_and_says_why(metric):
    with pytest.raises(ValueError, match="Accumulator has no samples any more"):
        metric(SUMS)


def test_a_gain_is_measured_on_scores_logits_predictions_and_right_answers():
    after, target = lt.Scores(AFTER, LABELS), [1, 2, 3]
    gain = m.paired_gain(SCORES, after, target=target)
    assert gain.value != 0
    predictions = (SCORES.predict(), after.predict(), LABELS)
    right = tuple(each.predict() == LABELS for each in (SCORES, after))
    assert m.paired_gain(LOGITS, AFTER, LABELS, target=target) == gain
    assert m.paired_gain(*predictions, target=target) == gain
    assert m.paired_gain(*right, LABELS, target=target) == gain


def test_a_gain_needs_the_same_samples_before_and_after():
    with pytest.raises(ValueError, match="labels differ"):
        m.paired_gain(SCORES, lt.Scores(AFTER, LABELS[::-1]), target=[1, 1, 1])
    with pytest.raises(ValueError, match="3 classes but the target has 2"):
        m.paired_gain(SCORES, SCORES, target=[1, 1])


def test_sanity_takes_what_every_metric_takes():
    expected = m.sanity(SUMS, m.Accumulator.of(lt.Scores(AFTER, LABELS)))
    assert m.sanity(SCORES, lt.Scores(AFTER, LABELS)) == expected
    assert m.sanity(LOGITS, AFTER, LABELS) == expected


FOLDERS = ("core", "data", "losses", "heads", "images", "posthoc", "engine", "metrics", "testing")


@pytest.mark.parametrize("folder", FOLDERS)
def test_dir_lists_what_a_folder_gives_away_and_nothing_else(folder):
    code = (
        f"import longtail.{folder} as one, types\n"
        "first = dir(one)\n"
        "import longtail as lt, longtail.flows.fit\n"
        "[getattr(lt, name) for name in lt.__all__]\n"
        "assert dir(one) == first, 'it depends on what was used before'\n"
        "for name in first:\n"
        "    value = getattr(one, name)\n"
        "    public = name in ('augment', 'representations')\n"
        "    assert not name.startswith('_') and name != 'TYPE_CHECKING', name\n"
        "    assert public or not isinstance(value, types.ModuleType), name\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_that_are_imported_late_are_listed():
    assert {"tau_curve", "TauCurve", "weight_norm_curve", "Temperature"} <= set(dir(lt.posthoc))
