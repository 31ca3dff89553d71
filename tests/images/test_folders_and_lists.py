"""Folders and lists as people have them: which images, which labels, and what is amiss."""

import json
import os
import sys

import numpy as np
import pytest
import torch

from longtail.data import read_label_counts
from longtail.images import (
    ImageArrays,
    folders,
    read_image_folder,
    read_image_list,
    read_image_npz,
    read_image_splits,
    split_validation,
)


def touched(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def relative(images, root):
    return [os.path.relpath(path, root).replace(os.sep, "/") for path in images.paths]


def listed(place, *lines):
    place.write_text("\n".join(lines) + "\n")
    return place


def test_a_folder_has_its_classes_sorted_and_its_images_in_the_order_of_torchvision(tmp_path):
    touched(tmp_path, "b/2.jpg", "b/10.JPG", "a/z.png", "a/sub/a.webp", "a/s.tif", "B/1.jpeg")
    images = read_image_folder(tmp_path)
    assert images.classes == ("B", "a", "b")
    # As os.walk, sorted by folder and then by name, gives them.
    assert relative(images, tmp_path) == [
        *("B/1.jpeg", "a/s.tif", "a/z.png", "a/sub/a.webp", "b/10.JPG", "b/2.jpg"),
    ]
    assert images.targets.tolist() == [0, 1, 1, 1, 2, 2]


def test_hidden_files_and_other_files_are_left_out(tmp_path):
    touched(tmp_path, "a/1.jpg", "a/._1.jpg", "a/notes.txt", "a/.cache/2.jpg", ".git/3.jpg")
    images = read_image_folder(tmp_path)
    assert relative(images, tmp_path) == ["a/1.jpg"]
    assert images.classes == ("a",)


def test_a_class_folder_without_images_is_an_error_unless_it_is_allowed(tmp_path):
    touched(tmp_path, "a/1.jpg", "c/1.jpg")
    (tmp_path / "b").mkdir()
    with pytest.raises(ValueError, match=r"1 of the 3 classes .* 'b'; .*allow_empty"):
        read_image_folder(tmp_path)
    assert read_image_folder(tmp_path, allow_empty=True).counts.tolist() == [1, 0, 1]


def test_a_folder_without_images_or_of_parts_or_not_there_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder"):
        read_image_folder(tmp_path / "nowhere")
    touched(tmp_path, "train/a/1.txt")
    with pytest.raises(ValueError, match="read_image_splits"):
        read_image_folder(tmp_path)
    with pytest.raises(ValueError, match="no images in them"):
        read_image_folder(tmp_path / "train")


def test_parts_have_the_classes_of_training_even_where_one_is_missing(tmp_path):
    touched(tmp_path, "train/a/1.jpg", "train/b/1.jpg", "train/c/1.jpg", "val/c/1.jpg")
    touched(tmp_path, "test/b/1.jpg", "test/c/1.jpg")
    splits = read_image_splits(tmp_path)
    assert splits.validation.classes == splits.test.classes == ("a", "b", "c")
    assert splits.validation.targets.tolist() == [2]
    assert splits.test.targets.tolist() == [1, 2]


def test_parts_that_do_not_fit_together_are_told(tmp_path):
    touched(tmp_path, "train/a/1.jpg", "valid/b/1.jpg")
    with pytest.raises(ValueError, match="class 'b'"):
        read_image_splits(tmp_path)
    touched(tmp_path, "val/a/1.jpg")
    with pytest.raises(ValueError, match="validation, val and valid"):
        read_image_splits(tmp_path)
    touched(tmp_path, "half/test/a/1.jpg", "half/other/1.jpg")
    with pytest.raises(ValueError, match="no folder train"):
        read_image_splits(tmp_path / "half")


def test_a_folder_of_classes_without_parts_is_all_for_training(tmp_path):
    touched(tmp_path, "a/1.jpg", "a/2.jpg", "b/1.jpg")
    splits = read_image_splits(tmp_path)
    assert splits.train.classes == ("a", "b")
    assert splits.train.targets.tolist() == [0, 0, 1]
    assert splits.validation is None
    assert splits.test is None


def test_a_text_list_may_have_spaces_in_its_paths(tmp_path):
    touched(tmp_path, "a b/1 2.jpg", "c.jpg")
    place = listed(tmp_path / "list.txt", "a b/1 2.jpg 1", "", "c.jpg\t0")
    images = read_image_list(place, tmp_path)
    assert relative(images, tmp_path) == ["a b/1 2.jpg", "c.jpg"]
    assert images.targets.tolist() == [1, 0]
    assert images.classes == ("0", "1")


def test_labels_beyond_the_classes_are_named_with_image_and_line(tmp_path):
    touched(tmp_path, "a.jpg", "b.jpg")
    place = listed(tmp_path / "list.txt", "a.jpg 0", "", "b.jpg 5")
    with pytest.raises(ValueError, match=r"list\.txt.*b\.jpg in line 3.*'5'.*'0' to '1'"):
        read_image_list(place, tmp_path, num_classes=2)
    listed(place, "a.jpg 0", "b.jpg -1")
    with pytest.raises(ValueError, match=r"b\.jpg in line 2 the label '-1'"):
        read_image_list(place, tmp_path)


def test_classes_without_images_are_an_error_unless_they_are_allowed(tmp_path):
    touched(tmp_path, "a.jpg", "b.jpg")
    place = listed(tmp_path / "list.txt", "a.jpg 0", "b.jpg 5")
    with pytest.raises(ValueError, match=r"4 of the 6 classes .* '1', '2', '3', \.\.\."):
        read_image_list(place, tmp_path)
    images = read_image_list(place, tmp_path, num_classes=8, allow_empty=True)
    assert images.counts.tolist() == [1, 0, 0, 0, 0, 1, 0, 0]


def test_missing_files_are_counted_and_the_first_are_named(tmp_path):
    touched(tmp_path, "a/1.jpg")
    (tmp_path / "a" / "2.jpg").mkdir()
    place = listed(tmp_path / "list.txt", "a/1.jpg 0", *(f"a/{n}.jpg 0" for n in range(2, 7)))
    with pytest.raises(FileNotFoundError, match=r"5 of the 6 .*2\.jpg.*3\.jpg.*4\.jpg, \.\.\.; "):
        read_image_list(place, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"6 of the 6 .* as root"):
        read_image_list(place, tmp_path / "nowhere")


def test_names_for_labels_are_sorted_or_in_the_given_order(tmp_path):
    touched(tmp_path, "1.jpg", "2.jpg")
    place = listed(tmp_path / "list.txt", "1.jpg fox", "2.jpg cat")
    assert read_image_list(place, tmp_path).classes == ("cat", "fox")
    images = read_image_list(place, tmp_path, classes=("fox", "cat"))
    assert images.targets.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"num_classes is 3.*2 names"):
        read_image_list(place, tmp_path, num_classes=3)
    with pytest.raises(ValueError, match="line 2 the label 'cat'"):
        read_image_list(place, tmp_path, classes=("fox", "dog"))
    numbered = listed(tmp_path / "numbers.txt", "1.jpg 1", "2.jpg 0")
    assert read_image_list(numbered, tmp_path, classes=("fox", "cat")).classes == ("fox", "cat")
    with pytest.raises(ValueError, match=r"num_classes is 3.*2 names"):
        read_image_list(numbered, tmp_path, num_classes=3, classes=("fox", "cat"))


def test_sun397_is_labelled_by_its_folders(tmp_path):
    names = ("/a/abbey", "/a/access_road", "/a/apartment_building/outdoor")
    classes = listed(tmp_path / "ClassName.txt", *names)
    paths = ["/a/apartment_building/outdoor/sun_b.jpg", "/a/abbey/sun_a.jpg"]
    touched(tmp_path / "SUN397", *(path[1:] for path in paths), "a/access_road/sun_c.jpg")
    place = listed(tmp_path / "Training_01.txt", *paths, "/a/access_road/sun_c.jpg")
    images = read_image_list(place, tmp_path / "SUN397", classes=classes)
    assert images.targets.tolist() == [2, 0, 1]
    assert images.classes == names
    assert relative(images, tmp_path / "SUN397")[1] == "a/abbey/sun_a.jpg"
    with pytest.raises(ValueError, match=r"line 1.*path.*ClassName\.txt"):
        read_image_list(place, tmp_path / "SUN397")
    listed(place, "/a/attic/sun_d.jpg")
    with pytest.raises(ValueError, match="label '/a/attic'"):
        read_image_list(place, tmp_path / "SUN397", classes=classes)


def inaturalist(**changes):
    return {
        "info": {"year": 2018},
        "images": [
            {"id": 7, "file_name": "train_val2018/Aves/2/x.jpg", "width": 8, "height": 6},
            {"id": 3, "file_name": "train_val2018/Plantae/0/y.jpg", "license": 1},
        ],
        "annotations": [
            {"id": 1, "image_id": 3, "category_id": 0},
            {"id": 2, "image_id": 7, "category_id": 2},
        ],
        "categories": [
            {"id": 2, "name": "Turdus merula", "supercategory": "Aves"},
            {"id": 0, "name": "Bellis perennis"},
            {"id": 1, "name": "Acer campestre"},
        ],
        **changes,
    }


def test_inaturalist_has_its_classes_by_id(tmp_path):
    place = listed(tmp_path / "train2018.json", json.dumps(inaturalist()))
    touched(tmp_path, "train_val2018/Aves/2/x.jpg", "train_val2018/Plantae/0/y.jpg")
    images = read_image_list(place, tmp_path, allow_empty=True)
    assert images.classes == ("Bellis perennis", "Acer campestre", "Turdus merula")
    assert images.targets.tolist() == [2, 0]
    assert relative(images, tmp_path)[1] == "train_val2018/Plantae/0/y.jpg"
    with pytest.raises(ValueError, match=r"1 of the 3 classes .*'Acer campestre'"):
        read_image_list(place, tmp_path)
    with pytest.raises(ValueError, match="leave classes out"):
        read_image_list(place, tmp_path, classes=("a", "b", "c"))


def test_inaturalist_with_numbers_for_names_keeps_its_order(tmp_path):
    categories = [{"id": at, "name": name} for at, name in enumerate(("2", "0", "1"))]
    place = listed(tmp_path / "a.json", json.dumps(inaturalist(categories=categories)))
    touched(tmp_path, "train_val2018/Aves/2/x.jpg", "train_val2018/Plantae/0/y.jpg")
    assert read_image_list(place, tmp_path, allow_empty=True).targets.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"annotations": []}, r"2 of its 2 images, first train_val2018/Aves"),
        ({"annotations": [{"image_id": 7, "category_id": c} for c in (0, 2)]}, "two categories"),
        ({"annotations": [{"image_id": i, "category_id": 9} for i in (3, 7)]}, "in category 9"),
        ({"categories": [{"id": 0}, {"id": 0}]}, "each category once"),
        ({"images": [{"id": "x"}]}, "JSON annotations"),
        ({"images": []}, "lists no images"),
    ],
)
def test_annotations_that_make_no_sense_are_told(tmp_path, changes, said):
    place = listed(tmp_path / "a.json", json.dumps(inaturalist(**changes)))
    with pytest.raises(ValueError, match=said):
        read_image_list(place, tmp_path)


def test_a_table_has_columns_for_path_and_label(tmp_path):
    touched(tmp_path, "a, b.jpg", "c.jpg")
    place = listed(tmp_path / "list.csv", "id,Label,path", '1,fox,"a, b.jpg"', "2,cat,c.jpg")
    images = read_image_list(place, tmp_path)
    assert relative(images, tmp_path) == ["a, b.jpg", "c.jpg"]
    assert images.targets.tolist() == [1, 0]
    with pytest.raises(ValueError, match="no column 'label'"):
        read_image_list(listed(place, "path,kind", "c.jpg,cat"), tmp_path)
    with pytest.raises(ValueError, match="column 'split'"):
        read_image_list(listed(place, "path,label,split", "c.jpg,cat,test"), tmp_path)
    with pytest.raises(ValueError, match="no label in row 2"):
        read_image_list(listed(place, "path,label", "c.jpg,"), tmp_path)
    with pytest.raises(ValueError, match="1 columns in row 3"):
        read_image_list(listed(place, "path,label", "c.jpg,cat", "c.jpg"), tmp_path)


def test_lists_that_are_none_are_told(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.txt"):
        read_image_list(touched(tmp_path, "a.xml") / "a.xml", tmp_path)
    with pytest.raises(FileNotFoundError, match="no file"):
        read_image_list(tmp_path / "no.txt", tmp_path)
    with pytest.raises(ValueError, match="lists no images"):
        read_image_list(listed(tmp_path / "a.txt", "", ""), tmp_path)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        read_image_list(listed(tmp_path / "a.txt", "a.jpg 0"), tmp_path, num_classes=0)


def linked(place, to):
    place.symlink_to(to, target_is_directory=True)


def test_links_that_go_in_circles_count_no_image_twice(tmp_path):
    touched(tmp_path, "a/1.jpg", "a/sub/2.jpg", "b/1.jpg", "b/2.jpg", "b/3.jpg")
    linked(tmp_path / "a" / "round", tmp_path / "a")
    linked(tmp_path / "a" / "sub" / "up", tmp_path)  # from here one comes to b, which is not a
    linked(tmp_path / "b" / "round", tmp_path / "b")
    linked(tmp_path / "b" / "other", tmp_path / "a")
    assert read_image_folder(tmp_path).counts.tolist() == [2, 3]


def test_a_folder_elsewhere_that_links_lead_to_is_read_once(tmp_path):
    elsewhere = touched(tmp_path / "disk", "more/1.jpg", "more/2.jpg") / "more"
    root = touched(tmp_path / "set", "a/1.jpg", "b/1.jpg")
    linked(root / "a" / "more", elsewhere)
    linked(root / "a" / "again", elsewhere)
    assert read_image_folder(root).counts.tolist() == [3, 1]


@pytest.mark.parametrize("path", ["../x.jpg", "a/../../x.jpg", "/../x.jpg", "..", "a\0b.jpg"])
def test_a_line_that_leaves_the_root_is_refused_with_its_number(tmp_path, path):
    root = touched(tmp_path, "x.jpg", "root/a/1.jpg") / "root"
    place = listed(tmp_path / "list.txt", "a/1.jpg 0", f"{path} 1")
    with pytest.raises(ValueError, match=r"list\.txt.*path.*line 2"):
        read_image_list(place, root)


def test_a_path_may_turn_back_inside_the_root_or_begin_with_a_slash(tmp_path):
    touched(tmp_path, "a/1.jpg", "b/1.jpg")
    images = read_image_list(listed(tmp_path / "l.txt", "a/../b/1.jpg 0", "/a/1.jpg 1"), tmp_path)
    assert len(images) == 2


def test_one_label_of_ten_thousand_millions_makes_no_table_of_so_many_classes(tmp_path):
    touched(tmp_path, "1.jpg")
    place = listed(tmp_path / "list.txt", "1.jpg 0", f"1.jpg {10**10}")
    with pytest.raises(ValueError, match=r"list\.txt.*class indices.*2 samples"):
        read_image_list(place, tmp_path)
    images, labels = np.zeros((2, 3, 2, 2), np.uint8), np.array([0, 10**10])
    np.savez(tmp_path / "i.npz", images=images, labels=labels)
    with pytest.raises(ValueError, match=r"i\.npz.*class indices"):
        read_image_npz(tmp_path / "i.npz")
    with pytest.raises(ValueError, match="labels must be class indices"):
        ImageArrays(torch.from_numpy(images), labels)
    with pytest.raises(ValueError, match="labels must be class indices"):
        split_validation(labels)


def test_images_that_do_not_fit_their_labels_are_refused_before_they_are_unpacked(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(folders, "load_npz", lambda *_: pytest.fail("nothing should be unpacked"))
    for images in (np.zeros((9, 3, 2, 2), np.uint8), np.zeros((2, 3, 2, 2))):
        np.savez(tmp_path / "i.npz", images=images, labels=np.arange(2))
        with pytest.raises(ValueError, match=r"'images'.*i\.npz.*uint8.*N = 2"):
            read_image_npz(tmp_path / "i.npz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_pipes_are_no_images_and_links_that_lead_nowhere_are_told_when_read(tmp_path):
    touched(tmp_path, "a/1.png", "b/1.png")
    os.mkfifo(tmp_path / "a" / "2.png")
    (tmp_path / "b" / "2.png").symlink_to(tmp_path / "a" / "2.png")
    (tmp_path / "b" / "3.png").symlink_to(tmp_path / "nowhere")
    images = read_image_folder(tmp_path)
    assert relative(images, tmp_path) == ["a/1.png", "b/1.png", "b/3.png"]
    assert {name: dict(part.counts) for name, part in read_label_counts(tmp_path).items()} == {
        "all": {"a": 1, "b": 2}
    }


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
@pytest.mark.parametrize("read", [read_image_folder, read_image_splits])
def test_a_class_folder_whose_name_is_no_text_is_named_before_anything_is_trained(tmp_path, read):
    name = os.fsdecode(b"caf\xe9")
    touched(tmp_path, "a/1.png", f"{name}/1.png")
    with pytest.raises(ValueError, match=r"has the class 'caf\\udce9'.*UTF-8"):
        read(tmp_path)


def test_class_names_that_cannot_be_written_are_told_with_their_file(tmp_path):
    images = np.zeros((2, 3, 4, 4), np.uint8)
    np.savez(tmp_path / "a.npz", images=images, labels=[0, 1], classes=np.array(["a", "\ud800"]))
    with pytest.raises(ValueError, match=r"'classes' of .*a\.npz .*UTF-8"):
        read_image_npz(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"has the class .*.*UTF-8"):
        ImageArrays(torch.from_numpy(images), [0, 1], ("a", "\ud800"))
