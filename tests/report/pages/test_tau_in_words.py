"""What a page says where the validation samples do not determine tau."""

import numpy as np

from longtail import Scores
from longtail.posthoc import LogitAdjustment
from longtail.report.pages.first_screen import tau_in_words

COUNTS = [90, 10]


def said(logits, labels, criterion="accuracy_under_target", target=None):
    held_out = Scores(np.array(logits), labels, carried=COUNTS)
    choice = LogitAdjustment.fit(held_out, COUNTS, target, criterion).choice
    return tau_in_words(choice), choice


def test_the_same_is_said_of_no_move_and_of_scores_too_confident_to_tell():
    sure = [[9e4, 0.0], [0.0, 9e4]]
    for words, choice in (said(sure, [0, 1], "nll"), said(sure, [0, 1], target=COUNTS)):
        assert (choice.tau, choice.trust, choice.low) == (1, 0, None)
        assert words == (
            " The validation samples do not determine τ, so it is 1, where the move is exact."
        )


def test_where_no_tau_is_better_than_one_that_is_said():
    words, choice = said([[9e4, 0.0], [0.0, 9e4]], [0, 1])
    assert choice.tau == choice.optimum == 1
    between = f"(95 % interval {choice.low:.3g} to {choice.high:.3g})"
    assert f"none does better on them {between}." in words


def test_nothing_is_said_of_a_tau_that_is_determined():
    rng = np.random.default_rng(0)
    labels = np.arange(2000) % 2
    logits = rng.normal(size=(2000, 2)) + 2 * np.eye(2)[labels] + np.log([0.9, 0.1])
    words, choice = said(logits, labels)
    assert choice.is_determined
    assert words == ""
    assert tau_in_words(None) == ""
