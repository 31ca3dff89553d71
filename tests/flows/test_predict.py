"""What a command wrote, loaded again, predicts what the command said."""

import numpy as np
import pytest
import torch

from longtail import Prior, Scores
from longtail.engine import save_head
from longtail.engine.training import predict
from longtail.flows.fit import fit
from longtail.flows.predict import load
from longtail.flows.train.building import read_data
from longtail.flows.train.reading import recipe_from
from longtail.flows.train.train import train
from longtail.heads import Linear
from longtail.posthoc import LogitAdjustment, Temperature, save_adjusters

LOGITS = np.array([[2.0, 1.0, 0.0], [0.4, 0.3, 0.5]])
COUNTS = [90, 9, 1]


@pytest.fixture
def fixed(tmp_path):
    adjuster = LogitAdjustment(COUNTS)
    save_adjusters(tmp_path / "adjuster.json", [adjuster], carried=COUNTS, classes=["a", "b", "c"])
    return tmp_path


def test_an_adjuster_moves_logits_to_its_target_or_to_another(fixed):
    for loaded in (load(fixed), load(fixed / "adjuster.json")):
        assert (loaded.kind, loaded.classes) == ("fix", ("a", "b", "c"))
        expected = Scores(LOGITS, carried=COUNTS)
        uniform = expected.under(Prior.uniform(3))
        assert np.allclose(loaded.probs(LOGITS), uniform.probs())
        assert loaded.predict(LOGITS).tolist() == uniform.predict().tolist() == [2, 2]
        moved = loaded.probs(LOGITS, target=[8, 1, 1])
        assert np.allclose(moved, expected.under([8, 1, 1]).probs())
    assert isinstance(load(fixed).logits(LOGITS), np.ndarray)
    assert isinstance(load(fixed).logits(torch.from_numpy(LOGITS)), torch.Tensor)


class Frame:
    """What a DataFrame is seen by."""

    columns = ("c", "b", "a")

    def to_numpy(self):
        return LOGITS


def test_a_loaded_adjuster_names_the_classes_so_that_a_target_may(fixed):
    loaded = load(fixed)
    assert loaded.scores(LOGITS).classes == ("a", "b", "c")
    by_name = loaded.probs(LOGITS, target={"b": 1, "c": 1, "a": 8})
    np.testing.assert_allclose(by_name, loaded.probs(LOGITS, target=[8, 1, 1]))
    with pytest.raises(ValueError, match="same classes"):
        loaded.score(Frame())
    save_adjusters(fixed / "t.json", [Temperature(2.0)], classes=["a", "b"])
    with pytest.raises(ValueError, match="3 without names"):
        load(fixed / "t.json").probs(LOGITS)


@pytest.mark.parametrize("method", ["adjusted", "tau_norm", "learned_ncm"])
def test_a_model_of_fit_gives_the_scores_that_were_judged(method, tmp_path):
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), [40, 20, 10])
    rows = (random.normal(size=(70, 4)) + 2 * np.eye(4)[labels]).astype(np.float32)
    test = (rows[::2] + 0.1, labels[::2])
    result = fit(rows, labels, test=test, classes=["a", "b", "c"], methods=[method], folds=2)
    result.write(tmp_path)
    loaded = load(tmp_path)
    assert (loaded.kind, loaded.classes) == ("fit", ("a", "b", "c"))
    assert np.allclose(loaded.logits(test[0]), np.asarray(result.test.logits), atol=1e-5)
    assert np.array_equal(loaded.predict(test[0]), np.asarray(result.test.predict()))
    assert isinstance(loaded.logits(torch.from_numpy(test[0])), torch.Tensor)


def test_a_model_of_train_gives_the_logits_of_its_images(tmp_path):
    random = np.random.default_rng(0)
    parts = {
        name: value
        for part in ("train", "test")
        for name, value in (
            (f"{part}_images", random.integers(0, 256, (30, 3, 8, 8)).astype(np.uint8)),
            (f"{part}_labels", np.repeat(np.arange(3), [20, 7, 3])),
        )
    }
    np.savez(tmp_path / "images.npz", **parts)
    recipe = recipe_from(
        {
            "data": {"kind": "npz", "path": str(tmp_path / "images.npz"), "validation_share": 0.0},
            "backbone": {"name": "mlp", "inputs": 192, "hidden": [8]},
            "epochs": 1,
        }
    )
    result = train(recipe, tmp_path / "run")
    loaded = load(tmp_path / "run")
    expected = predict(result.model.model, read_data(recipe.data).test, result.model.normalize)
    assert np.allclose(loaded.logits(parts["test_images"]), expected.logits.numpy(), atol=1e-5)
    moved = loaded.scores(parts["test_images"], target=Prior.uniform(3))
    assert moved.carried.is_close(Prior.uniform(3))
    assert loaded.scores(parts["test_images"]).carried.is_close(Prior.of([20, 7, 3]))


def test_nothing_to_load_and_foreign_files_are_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing to load"):
        load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"cannot be read.*safetensors"):
        load(tmp_path)
    Scores(2 * np.eye(3), carried=[2, 1, 1]).save(tmp_path / "scores.safetensors")
    with pytest.raises(ValueError, match=r"Scores\.load"):
        load(tmp_path / "scores.safetensors")
    np.savez(tmp_path / "val.npz", logits=np.eye(3))
    with pytest.raises(ValueError, match=r"adjuster\.json"):
        load(tmp_path / "val.npz")


@pytest.mark.parametrize(
    "about",
    [
        {"method": []},
        {"method": {"linear": 1}},
        {"classes": 1},
        {"classes": "abc"},
        {"classes": [1, 2, 3]},
        {"classes": ["a", "b"]},
        {"method": "linear", "target": "uniform"},
        {"method": "linear", "target": [0.5, 0.5]},
        {"method": "linear", "target": [1, "x", 2]},
        {"method": "linear", "target": [1.0, -1.0, 2.0]},
    ],
)
def test_what_a_head_says_of_itself_is_checked_when_it_is_loaded(about, tmp_path):
    file = tmp_path / "model.safetensors"
    save_head(Linear(4, 3), file, {"method": "linear", "classes": ["a", "b", "c"], "by": "me"})
    assert load(file).predict(torch.zeros(2, 4)).shape == (2,)
    save_head(Linear(4, 3), file, about)
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        load(file)
