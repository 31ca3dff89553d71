"""SUN397's long-tailed split: the counts that EO prints, from a made-up folder."""

import json

import pytest
import torch
from click.testing import CliRunner

from longtail.cli import app
from longtail.flows.train.building import read_data
from longtail.flows.train.reading import overridden
from longtail.images import (
    ImageFiles,
    read_image_list,
    read_image_tree,
    sun397_long_tailed,
    write_image_list,
)
from longtail.recipes.catalogue import named_recipe

SIZES = {"a/abbey": 100, "a/apartment/outdoor": 101, "b/bar": 137, "c/church/indoor": 250}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("sets") / "SUN397"
    for name, number in SIZES.items():
        (root / name).mkdir(parents=True)
        for at in range(number):
            (root / name / f"sun_{at:03}.jpg").touch()
    (root / "ClassName.txt").write_text("".join(f"/{name}\n" for name in SIZES))
    return root


def made_up(counts):
    labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    paths = [f"{label}/{at}.jpg" for at, label in enumerate(labels.tolist())]
    return ImageFiles(tuple(paths), labels, tuple(map(str, range(len(counts)))))


def test_the_counts_are_those_that_the_paper_prints():
    splits = sun397_long_tailed(made_up([100, 2361, 1000, 999]))
    assert splits.train.counts.tolist() == [1, 1132, 451, 451]
    assert splits.validation.counts.tolist() == [1, 227, 91, 90]
    assert splits.test.counts.tolist() == [40, 40, 40, 40]


@pytest.mark.parametrize("number", range(100, 131))
def test_no_image_is_in_two_parts_and_each_class_fills_its_parts(number):
    splits = sun397_long_tailed(made_up([number, 100]))
    parts = [set(part.paths) for part in (splits.train, splits.validation, splits.test)]
    assert len(set.union(*parts)) == sum(map(len, parts))
    half, tenth = -(-number // 2), number // 10
    assert [len(part) for part in parts] == [half - 49 + 1, tenth - 9 + 1, 80]


def test_the_seed_decides_which_images_and_nothing_else():
    images = made_up([180, 140])
    first, again, other = (sun397_long_tailed(images, seed) for seed in (0, 0, 1))
    assert first.train.paths == again.train.paths
    assert first.train.paths != other.train.paths
    assert first.train.counts.tolist() == other.train.counts.tolist()


def test_a_class_of_fewer_images_than_the_split_needs_is_named():
    with pytest.raises(ValueError, match="at least 100 images of each class, but '1' has 99"):
        sun397_long_tailed(made_up([120, 99]))


def test_a_tree_has_a_class_for_every_folder_that_holds_images(folder, tmp_path):
    images = read_image_tree(folder)
    assert images.classes == tuple(SIZES)
    assert images.counts.tolist() == list(SIZES.values())
    assert images.paths[100] == str(folder / "a/apartment/outdoor/sun_000.jpg")
    with pytest.raises(ValueError, match="no images below"):
        read_image_tree(tmp_path)


def test_a_list_that_was_written_is_read_as_it_was(tmp_path):
    (tmp_path / "two words").mkdir()
    paths = [tmp_path / "two words" / "1.jpg", tmp_path / "2.png"]
    for path in paths:
        path.touch()
    images = ImageFiles(tuple(map(str, paths)), torch.tensor([1, 0]), ("x", "y"))
    write_image_list(tmp_path / "list.txt", images, tmp_path)
    again = read_image_list(tmp_path / "list.txt", tmp_path)
    assert (again.paths, again.labels.tolist()) == (images.paths, [1, 0])
    broken = ImageFiles((str(tmp_path / "a\nb.jpg"),), torch.tensor([0]), ("x",))
    with pytest.raises(ValueError, match="cannot be a line"):
        write_image_list(tmp_path / "broken.txt", broken, tmp_path)


def test_the_command_writes_lists_that_the_recipe_of_sun397_reads(folder):
    done = CliRunner().invoke(app, ["split", str(folder), "-o", str(folder), "--json", "--quiet"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["lists"]["train.txt"] == {"images": 99, "largest": 76, "smallest": 1}
    assert told["lists"]["test.txt"] == {"images": 160, "largest": 40, "smallest": 40}
    settings = [f"data.path={folder}", "data.num_classes=4", "data.size=null"]
    off = ["data.resize=null", "data.random_crop=false", "data.validation=val.txt"]
    recipe = overridden(named_recipe("sun397-eo"), [*off, *settings, "data.classes=classes.txt"])
    splits, expected = read_data(recipe.data), sun397_long_tailed(read_image_tree(folder))
    for name in ("train", "validation", "test"):
        ours, theirs = getattr(splits, name), getattr(expected, name)
        assert (ours.paths, ours.classes) == (theirs.paths, theirs.classes)
        assert torch.equal(ours.labels, theirs.labels)
    text = CliRunner().invoke(app, ["split", str(folder), "-o", str(folder)])
    assert "train.txt: 99 images, 1 to 76 a class" in text.output
