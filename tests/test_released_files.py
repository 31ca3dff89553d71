"""Files that the first release wrote are read, and mean what they meant."""

from pathlib import Path

import numpy as np
import pytest
import torch

from longtail import Prior, Scores
from longtail.engine import load_head
from longtail.flows.train.model_file import load_model
from longtail.posthoc import load_adjusters, save_adjusters
from longtail.recipes.catalogue import read_recipe

RELEASED = Path(__file__).parent / "released"


def test_an_adjuster_moves_as_far_as_it_did():
    stored = load_adjusters(RELEASED / "adjuster.json")
    temperature, adjustment = stored.adjusters
    assert (temperature.temperature, adjustment.tau) == (0.6036590797237384, 1.244238186169372)
    choice = adjustment.choice
    assert (choice.criterion, choice.optimum, choice.trust) == (
        "accuracy_under_target",
        adjustment.tau,
        1.0,
    )
    assert choice.value == pytest.approx(1 - 0.13333333333333341)


def test_an_adjuster_that_is_written_anew_is_of_the_format_of_today(tmp_path):
    stored = load_adjusters(RELEASED / "adjuster.json")
    save_adjusters(tmp_path / "a.json", stored.adjusters, stored.carried, stored.classes)
    again = load_adjusters(tmp_path / "a.json")
    assert [a.choice for a in again.adjusters[1:]] == [a.choice for a in stored.adjusters[1:]]


def test_scores_have_their_prior_counts_and_names():
    scores = Scores.load(RELEASED / "scores.safetensors")
    assert scores.classes == ("cat", "dog", "fox", "elk")
    assert scores.carried.is_close(Prior.uniform(4))
    assert np.asarray(scores.counts).tolist() == [60, 30, 12, 6]
    assert len(scores) == 102


def test_a_head_gives_logits():
    stored = load_head(RELEASED / "head.safetensors")
    assert stored.head(torch.zeros(2, 5)).shape == (2, 4)
    assert stored.head.carried is not None


def test_a_model_and_its_recipe_are_read_in_the_words_of_today():
    stored = load_model(RELEASED / "model.safetensors")
    assert stored.model.carried.is_close(Prior.uniform(4))
    assert stored.recipe == read_recipe(RELEASED / "recipe.yaml")
    assert stored.recipe.target.criterion == "accuracy_under_target"
    assert stored.recipe.data.validation_share == 0.2  # which was held_out
    assert stored.recipe.loss.label_smoothing == 0
