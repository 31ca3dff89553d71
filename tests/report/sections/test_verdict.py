"""What the first screen concludes: never more than the numbers bear out."""

import re
from dataclasses import replace

import torch

import longtail as lt
from longtail.metrics import Difference
from longtail.report import Footer, Judged, scores_page
from longtail.report.sections.verdict import gain_in_words, gain_of, next_step, next_step_alone
from report_pages import judged


def backwards() -> Judged:
    """The same samples, the good scores first."""
    samples = judged()
    return replace(samples, before=samples.after, after=samples.before)


def hardly() -> Judged:
    """A change of two samples: one turns right, one wrong."""
    samples = judged()
    logits, right = samples.before.logits.clone(), samples.before.predict() == samples.labels
    for at, way in ((right.nonzero()[0], -99.0), ((~right).nonzero()[0], 99.0)):
        logits[at, samples.labels[at]] += way
    return replace(samples, after=replace(samples.before, logits=logits))


def test_what_to_do_follows_from_the_interval():
    assert next_step(judged().comparison).startswith("Use the scores after")
    assert next_step(backwards().comparison).startswith("Keep the scores before")
    assert next_step(hardly().comparison).startswith("Do not decide yet")
    assert "more than chance" in gain_in_words(judged().comparison)
    assert "a loss" in gain_in_words(backwards().comparison)
    assert "may be chance" in gain_in_words(hardly().comparison)


def test_the_step_calls_the_scores_by_their_names():
    names = ("as trained", "under the target")
    assert next_step(judged().comparison, names).startswith("Use the scores under the target")
    page = scores_page(replace(judged(), names=names), Footer("0", "d", "c"), title="t")
    assert page.next_step.startswith("Use the scores under the target")


def test_calibration_alone_is_judged_by_the_log_loss_and_not_called_chance():
    samples = judged()
    hot = replace(samples.after, logits=3 * samples.after.logits)
    better = replace(samples, before=hot).comparison
    assert gain_in_words(better).startswith("No sample turned right or wrong")
    assert next_step(better).startswith("Use the scores after: right on the same samples")
    worse = replace(samples, before=samples.after, after=hot).comparison
    assert next_step(worse).startswith("Keep the scores before: the others are right on the same")


def test_where_no_sample_changed_but_others_might_the_interval_is_told():
    samples = judged()
    hardly = replace(samples.before, logits=samples.before.logits + 1e-5 * torch.eye(20)[0])
    moved = replace(samples, after=hardly).comparison
    assert not moved.changed.any()
    assert re.search(r"\(95 % interval of the change −\d.* to \+\d", gain_in_words(moved))
    colder = replace(samples.before, logits=2 * samples.before.logits)
    assert "interval" not in gain_in_words(replace(samples, after=colder).comparison)


def test_a_sample_a_class_is_too_few_to_call_a_gain_real():
    right = lt.Scores(2 * torch.eye(4), torch.arange(4), carried=[4, 3, 2, 1])
    wrong = replace(right, logits=2 * torch.eye(4).roll(1, 0))
    both = Judged(wrong, right, lt.Prior.uniform(4)).comparison
    assert gain_of(both)[3].low < gain_of(both)[3].value  # one a class says little
    assert "the interval is rough" in gain_in_words(both)
    assert "at least a few of every class" in next_step(both)


def test_without_a_target_the_gain_is_of_plain_accuracy():
    samples = judged()
    as_they_are = Difference(samples.num_classes)
    as_they_are.add(samples.before.logits, samples.after.logits, samples.labels)
    assert gain_in_words(as_they_are).startswith("Accuracy went from")


def test_bad_calibration_is_told_and_good_is_not():
    samples = judged()
    hot = replace(samples, after=replace(samples.after, logits=5 * samples.after.logits))
    assert "calibrate" in next_step(hot.comparison)
    assert "calibrate" not in next_step(judged().comparison)


def test_an_ece_that_may_be_chance_is_not_told():
    """With 60 samples the ECE of a calibrated model is far above zero."""
    samples = judged()
    before, after = (
        replace(part, logits=part.logits[:60], labels=samples.labels[:60])
        for part in (samples.before, samples.after)
    )
    few = Judged(before, after, samples.target)
    assert few.comparison.after.metrics()["ece"].value > 0.1
    assert "calibrate" not in next_step(few.comparison)


def test_scores_alone_have_their_own_advice():
    samples = judged()
    tally, uniform = samples.comparison.before, lt.Prior.uniform(20)
    assert "longtail fix" in next_step_alone(tally, samples.before.carried, uniform)
    assert "measure" in next_step_alone(tally, None, uniform)
    assert "carry the target already" in next_step_alone(tally, uniform, uniform)


def test_the_advice_does_not_contradict_what_the_labels_say():
    samples = judged()
    wrong = replace(samples.before, carried=lt.Prior.uniform(20))
    page = scores_page(Judged(wrong, wrong, samples.target), Footer("0", "d", "c"), title="t")
    assert "carry the target already" not in page.next_step
    assert "--carried measure" in page.next_step


def test_scores_that_no_file_holds_are_not_advised_without_saying_how_to_get_them():
    comparison = judged().comparison
    assert "longtail fix" not in next_step(comparison)
    assert "No file holds them yet: longtail fix writes" in next_step(comparison, written=False)
