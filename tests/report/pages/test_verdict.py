"""What the first screen concludes: never more than the numbers bear out."""

import re
from dataclasses import replace

import torch

import longtail as lt
from longtail.flows.judge import Judgement, judge
from longtail.flows.samples import BeforeAfter
from longtail.metrics import Difference
from longtail.report import Footer, scores_page
from longtail.report.pages.first_screen import gain_in_words, next_step
from report_pages import judged, samples_of


def backwards() -> BeforeAfter:
    """The same samples, the good scores first."""
    samples = samples_of()
    return replace(samples, before=samples.after, after=samples.before)


def hardly() -> BeforeAfter:
    """A change of two samples: one turns right, one wrong."""
    samples = samples_of()
    logits, right = samples.before.logits.clone(), samples.before.predict() == samples.before.labels
    for at, way in ((right.nonzero()[0], -99.0), ((~right).nonzero()[0], 99.0)):
        logits[at, samples.labels[at]] += way
    return replace(samples, after=replace(samples.before, logits=logits))


def test_what_to_do_follows_from_the_interval():
    assert next_step(judged()).startswith("Use the scores after")
    assert next_step(Judgement.of(backwards())).startswith("Keep the scores before")
    assert next_step(Judgement.of(hardly())).startswith("Do not decide yet")
    assert "more than chance" in gain_in_words(judged())
    assert "a loss" in gain_in_words(Judgement.of(backwards()))
    assert "may be chance" in gain_in_words(Judgement.of(hardly()))


def test_the_step_calls_the_scores_by_their_names():
    names = ("as trained", "under the target")
    named = Judgement.of(replace(samples_of(), names=names))
    assert next_step(named).startswith("Use the scores under the target")
    page = scores_page(named, Footer("0", "d", "c"), title="t")
    assert page.next_step.startswith("Use the scores under the target")


def test_calibration_alone_is_judged_by_the_log_loss_and_not_called_chance():
    samples = samples_of()
    hot = replace(samples.after, logits=3 * samples.after.logits)
    better = Judgement.of(replace(samples, before=hot))
    assert gain_in_words(better).startswith("No sample turned right or wrong")
    assert next_step(better).startswith("Use the scores after: right on the same samples")
    worse = Judgement.of(replace(samples, before=samples.after, after=hot))
    assert next_step(worse).startswith("Keep the scores before: the others are right on the same")


def test_where_no_sample_changed_but_others_might_the_interval_is_told():
    samples = samples_of()
    hardly = replace(samples.before, logits=samples.before.logits + 1e-5 * torch.eye(20)[0])
    moved = Judgement.of(replace(samples, after=hardly))
    assert not moved.comparison.changed.any()
    assert re.search(r"\(95 % interval of the change −\d.* to \+\d", gain_in_words(moved))
    colder = replace(samples.before, logits=2 * samples.before.logits)
    assert "interval" not in gain_in_words(Judgement.of(replace(samples, after=colder)))


def test_a_sample_a_class_is_too_few_to_call_a_gain_real():
    right = lt.Scores(2 * torch.eye(4), torch.arange(4), carried=[4, 3, 2, 1])
    wrong = replace(right, logits=2 * torch.eye(4).roll(1, 0))
    both = judge(wrong, right)
    assert both.gain.low < both.gain.value  # one a class says little
    assert "the interval is rough" in gain_in_words(both)
    assert "at least a few of every class" in next_step(both)


def test_without_a_target_the_gain_is_of_plain_accuracy():
    samples = samples_of()
    as_they_are = Difference(samples.num_classes)
    as_they_are.add(samples.before.logits, samples.after.logits, samples.before.labels)
    assert gain_in_words(Judgement(samples, as_they_are)).startswith("Accuracy went from")


def test_bad_calibration_is_told_and_good_is_not():
    samples = samples_of()
    hot = replace(samples, after=replace(samples.after, logits=5 * samples.after.logits))
    assert "calibrate" in next_step(Judgement.of(hot))
    assert "calibrate" not in next_step(judged())


def test_an_ece_that_may_be_chance_is_not_told():
    """With 60 samples the ECE of a calibrated model is far above zero."""
    samples = samples_of()
    before, after = (
        replace(part, logits=part.logits[:60], labels=samples.labels[:60])
        for part in (samples.before, samples.after)
    )
    few = judge(before, after, samples.goal)
    assert few.after["ece"].value > 0.1
    assert "calibrate" not in next_step(few)


def test_scores_alone_have_their_own_advice():
    samples = samples_of()
    unknown = replace(samples.before, carried=None)
    assert "longtail fix" in next_step(judge(samples.before))
    assert "measure" in next_step(judge(unknown))
    assert "carry the target already" in next_step(judge(samples.after))


def test_the_advice_does_not_contradict_what_the_labels_say():
    samples = samples_of()
    wrong = replace(samples.before, carried=lt.Prior.uniform(20))
    page = scores_page(judge(wrong), Footer("0", "d", "c"), title="t")
    assert "carry the target already" not in page.next_step
    assert "--carried measure" in page.next_step


def test_scores_that_no_file_holds_are_not_advised_without_saying_how_to_get_them():
    judgement = judged()
    assert "longtail fix" not in next_step(judgement)
    assert "No file holds them yet: longtail fix writes" in next_step(judgement, written=False)
