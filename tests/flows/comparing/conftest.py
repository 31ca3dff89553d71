"""Run folders as `longtail train`, `fix` and `fit` leave them, without the training."""

import json

import numpy as np
import pytest

from compared_worlds import World
from longtail import Scores
from longtail.flows.train.reading import overridden, plain
from longtail.flows.train.yaml_text import write_yaml
from longtail.recipes.catalogue import read_recipe, recipe_name

COUNTS = [300, 60, 8]
LABELS = np.arange(90) % 3


class Folders:
    """Writes runs into a folder."""

    def __init__(self, place):
        self.place = place
        self.random = np.random.default_rng(0)

    def scores(self, skill=1.0, labels=LABELS, counts=COUNTS, carried=COUNTS, **others):
        logits = self.random.normal(size=(len(labels), 3))
        logits[np.arange(len(labels)), labels] += skill
        return Scores(logits, labels, carried=carried, counts=counts, split="test", **others)

    def train(self, name, *settings, skill=1.0, recipe="cifar100-lt-la-quick", **how):
        folder = self.place / name
        folder.mkdir(parents=True)
        made = overridden(read_recipe(recipe), settings)
        (folder / "recipe.yaml").write_text(write_yaml(plain(made)))
        (folder / "versions.json").write_text(json.dumps({"recipe": recipe_name(recipe)}))
        self.scores(skill, **how).save(folder / "scores-test.safetensors")
        return folder

    def fit(self, name, best="adjusted", seed=0, part="test", target="uniform"):
        folder = self.place / name
        folder.mkdir()
        said = {"best": best, "seed": seed, "methods": {}, "target": target}
        (folder / "metrics.json").write_text(json.dumps(said))
        self.scores().save(folder / f"{part}.safetensors")
        return folder

    def fix(self, name, measured="applied", target="uniform", tau="auto"):
        folder = self.place / name
        folder.mkdir()
        asked = {"target": target, "tau": tau, "seed": 0}
        said = {"steps": ["Temperature"], "measured": measured, "asked": asked}
        (folder / "metrics.json").write_text(json.dumps(said))
        self.scores().save(folder / "scores.safetensors")
        return folder


@pytest.fixture
def folders(tmp_path):
    return Folders(tmp_path)


@pytest.fixture
def world():
    return World()
