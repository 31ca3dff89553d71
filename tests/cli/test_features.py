"""`longtail features`: a feature file from a run, and what is refused."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors import safe_open
from safetensors.torch import save_file

from longtail.cli import app
from longtail.data import Features

RECIPE = """
data: {kind: npz, validation_share: 0.2}
backbone: {name: small_cnn, dim: 32}
epochs: 1
batch_size: 32
"""


def write_images(place, classes=3):
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(classes), 10)
    pixels = random.integers(0, 256, (len(labels), 3, 8, 8)).astype(np.uint8)
    parts = {"train_images": pixels, "train_labels": labels}
    np.savez(place, **parts, test_images=pixels[::2], test_labels=labels[::2])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("features")
    write_images(folder / "images.npz")
    write_images(folder / "others.npz", classes=4)
    (folder / "mine.yaml").write_text(RECIPE)
    given = [str(folder / "mine.yaml"), "--data", str(folder / "images.npz")]
    done = CliRunner().invoke(app, ["train", *given, "-o", str(folder / "run")])
    assert done.exit_code == 0, done.output
    return folder


def extracted(folder, source, *arguments, data="images.npz", output="f.safetensors"):
    given = [str(folder / source), str(folder / data), *arguments, "-o", str(folder / output)]
    done = CliRunner().invoke(app, ["features", *given])
    return done, " ".join(done.output.split())


def test_all_parts_of_a_set_are_in_the_file(folder):
    done, printed = extracted(folder, "run")
    assert done.exit_code == 0, done.output
    assert "32 numbers for each of 24 of train, 6 of validation, 15 of test" in printed
    assert Features.load(folder / "f.safetensors").counts.tolist() == [8, 8, 8]


def test_the_model_file_does_as_well_and_the_recipe_can_be_changed(folder):
    done, _ = extracted(folder, "run/model.safetensors", "data.validation_share=0", "--json")
    said = json.loads(done.stdout)
    assert said["parts"] == {"train": 30, "test": 15}


def test_new_batch_norm_statistics_change_the_features(folder):
    extracted(folder, "run", output="keep.safetensors")
    extracted(folder, "run", "--batch-norm", "reestimate", output="new.safetensors")
    kept, new = (Features.load(folder / f"{name}.safetensors") for name in ("keep", "new"))
    difference = np.abs(kept.part("test").features - new.part("test").features).max()
    assert difference > 1e-3
    assert "batch-norm statistics: reestimate" in new.made_by


@pytest.mark.parametrize(
    ("source", "options", "code", "sentence"),
    [
        ("nowhere", {}, 2, "does not exist"),
        ("empty", {}, 2, "there is no model"),
        ("run", {"data": "nowhere.npz"}, 2, "nowhere.npz"),
        ("images.npz", {}, 1, "no safetensors file"),
        ("f.safetensors", {"output": "g.safetensors"}, 1, "no model file"),
        ("run", {"data": "others.npz"}, 1, "knows 3 classes"),
        ("run", {"output": "f.npz"}, 2, "must end in .safetensors"),
    ],
)
def test_what_is_refused_is_told_in_a_sentence(folder, source, options, code, sentence):
    extracted(folder, "run")
    (folder / "empty").mkdir(exist_ok=True)
    done, printed = extracted(folder, source, **options)
    assert done.exit_code == code
    assert sentence in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("data.validation=0", "did you mean validation_share?"),
        ("backbone=mlp", "only data and num_workers can be changed after training"),
    ],
)
def test_a_wrong_setting_exits_with_2(folder, setting, sentence):
    done, printed = extracted(folder, "run", setting)
    assert done.exit_code == 2
    assert sentence in printed


@pytest.mark.parametrize("change", [{"counts": [1, 2]}, {"classes": 3}])
def test_a_model_whose_parts_do_not_agree_is_told_in_a_sentence(folder, change):
    with safe_open(folder / "run" / "model.safetensors", "pt") as file:
        said = json.loads(file.metadata()["longtail_model"])
        state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(state, folder / "odd.safetensors", {"longtail_model": json.dumps(said | change)})
    done, printed = extracted(folder, "odd.safetensors")
    assert done.exit_code == 1
    assert "odd.safetensors" in printed
    assert "`longtail train`" in printed
