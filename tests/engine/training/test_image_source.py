"""Images in memory and from files, of one size and of many; predictions of them."""

from traceback import clear_frames

import numpy as np
import pytest
import torch
from PIL import Image
from torch.testing import assert_close

from engine.training.tiny import CLASSES, NORMALIZE, flat_model, images, model, quick, quick_train
from longtail.engine.training import FixedSize, predict
from longtail.engine.training.image_source import image_source
from longtail.images import ImageArrays, ImageFiles

CPU = torch.device("cpu")


@pytest.fixture
def files(tmp_path):
    """The images of `images()` in files, without loss."""
    return as_files(images(40), tmp_path)


def as_files(data, folder):
    paths = []
    for number, pixels in enumerate(data.images):
        paths.append(str(folder / f"{number}.png"))
        Image.fromarray(pixels.permute(1, 2, 0).numpy()).save(paths[-1])
    return ImageFiles(tuple(paths), data.labels, data.classes)


@pytest.mark.parametrize("workers", [0, 2])
def test_files_and_arrays_train_and_predict_alike(workers, files):
    data, net, other = images(40), flat_model(), flat_model()
    options = quick(num_workers=workers)
    quick_train(net, files, options=options, validation=files)
    quick_train(other, data, validation=data)
    assert torch.equal(net.head.weight, other.head.weight)
    found = predict(net, files, NORMALIZE, batch_size=7, num_workers=workers)
    assert_close(found.logits, predict(other, data, NORMALIZE).logits)


def test_a_batch_is_what_stands_at_its_positions():
    data = images(10)
    batches = list(image_source(data, CPU).batches([3, 1, 9, 3], 3))
    assert [batch.labels.tolist() for batch in batches] == [
        data.labels[[3, 1, 9]].tolist(),
        data.labels[[3]].tolist(),
    ]
    assert torch.equal(batches[0].images, data.images[[3, 1, 9]])
    assert list(image_source(data, CPU).batches([], 3)) == []


def test_images_of_many_sizes_are_refused_with_what_to_do(files, tmp_path):
    Image.new("RGB", (9, 8)).save(tmp_path / "7.png")
    with pytest.raises(ValueError, match=r"one size.*FixedSize"):
        predict(flat_model(), files, NORMALIZE)


def test_a_broken_image_is_named_from_a_worker_too(files, tmp_path):
    (tmp_path / "7.png").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"7\.png cannot be read") as raised:
        predict(flat_model(), files, NORMALIZE, num_workers=1)
    assert "Traceback" not in str(raised.value)
    clear_frames(raised.tb)  # or the loader waits five seconds for its worker when it is collected


def test_the_middle_is_cut_out_of_the_scaled_image():
    pixels = torch.zeros(3, 20, 40, dtype=torch.uint8)
    pixels[:, :, 10:30] = 200
    wide = ImageArrays(pixels[None], [0])
    (image, label) = FixedSize(wide, size=20, resize=20)[0]
    assert torch.equal(image, pixels[:, :, 10:30])
    assert label == 0
    assert FixedSize(wide, size=7)[0][0].shape == (3, 7, 7)  # the shorter side to 8
    tall = ImageArrays(pixels.transpose(1, 2)[None], [0])
    middle = FixedSize(tall, size=10, resize=10)[0][0]
    assert (middle[:, 1:-1] == 200).all()  # at its edges the black beside it shines through


def test_scaling_is_that_of_pillow():
    data = images(4, size=41)
    (ours, _) = FixedSize(data, size=13, resize=13)[0]
    pillow = Image.fromarray(data.images[0].permute(1, 2, 0).numpy())
    theirs = torch.tensor(np.array(pillow.resize((13, 13), Image.Resampling.BILINEAR)))
    assert (ours.long() - theirs.long().permute(2, 0, 1)).abs().max() <= 1


def test_random_rectangles_cover_the_image_and_follow_the_generator():
    ramp = torch.arange(64, dtype=torch.uint8).mul(4).expand(3, 48, 64)
    data = FixedSize(ImageArrays(ramp[None].clone(), [0]), size=16, random=True)
    drawn = [data.drawn(0, torch.Generator().manual_seed(s))[0].double() for s in range(150)]
    again = data.drawn(0, torch.Generator().manual_seed(0))[0]
    assert torch.equal(drawn[0], again.double())
    assert {tuple(image.shape) for image in drawn} == {(3, 16, 16)}
    # The width of a rectangle shows in the slope; its share of the area is 8 to 100 %.
    widths = torch.stack([(i[0, 0, -1] - i[0, 0, 0]) / 4 * 16 / 15 for i in drawn])
    assert widths.min() > 0.9 * (0.08 * 48 * 64 * 3 / 4) ** 0.5
    assert widths.max() > 50
    assert min(float(i.min()) for i in drawn) < 8
    assert max(float(i.max()) for i in drawn) > 244
    assert torch.equal(data[0][0], FixedSize(data.images, size=16)[0][0])  # to predict: the middle


def test_an_image_too_narrow_for_any_rectangle_is_cut_in_the_middle():
    thin = ImageArrays(torch.zeros(1, 3, 2, 200, dtype=torch.uint8), [0])
    data = FixedSize(thin, size=4, random=True)
    assert data.drawn(0, torch.Generator().manual_seed(0))[0].shape == (3, 4, 4)


def test_random_rectangles_are_the_same_when_a_run_goes_on(tmp_path):
    data = FixedSize(images(40, size=12), size=8, random=True)
    net, other = flat_model(), flat_model()
    quick_train(net, data)
    plain = flat_model()
    quick_train(plain, FixedSize(images(40, size=12), size=8))
    assert not torch.equal(net.head.weight, plain.head.weight)
    while not quick_train(other, data, run=tmp_path, stop_after=2).finished:
        other = flat_model()
    assert torch.equal(net.head.weight, other.head.weight)


def test_a_subset_keeps_size_and_classes():
    data = FixedSize(images(20), size=4).subset([5, 2])
    assert (len(data), data.num_classes, data.size) == (2, CLASSES, 4)
    assert data.labels.tolist() == images(20).labels[[5, 2]].tolist()


@pytest.mark.parametrize("sizes", [(0, None), (8, 7)])
def test_sizes_that_make_no_sense_are_refused(sizes):
    with pytest.raises(ValueError, match="size must be"):
        FixedSize(images(4), *sizes)


def test_predicting_leaves_the_model_training_and_its_statistics_alone():
    net, data = model().train(), images(10)
    before = {key: value.clone() for key, value in net.state_dict().items()}
    outputs = predict(net, data, NORMALIZE, batch_size=4)
    assert net.training
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    assert_close(outputs.logits, net.eval()(NORMALIZE(data.images)).logits)
    assert not outputs.logits.requires_grad


def test_no_images_cannot_be_predicted():
    with pytest.raises(ValueError, match="at least one image"):
        predict(model(), images(10).subset([]), NORMALIZE)


@pytest.mark.parametrize(("height", "width"), [(40, 24), (24, 40), (24, 24)])
def test_a_random_place_is_a_square_of_the_middle_one_and_every_place_is_drawn(height, width):
    pixels = torch.arange(height * width).reshape(1, 1, height, width).to(torch.uint8)
    pixels = torch.cat([pixels, (pixels.long() * 7 % 251).to(torch.uint8)], dim=1)
    images = FixedSize(ImageArrays(pixels, [0]), size=22, resize=24, random="place")
    top, left = (height - 24) // 2, (width - 24) // 2
    places = {
        (down, right): pixels[0, :, top + down : top + down + 22, left + right : left + right + 22]
        for down in range(3)
        for right in range(3)
    }
    seen = set()
    for seed in range(80):
        drawn, _ = images.drawn(0, torch.Generator().manual_seed(seed))
        at = [place for place, square in places.items() if torch.equal(square, drawn)]
        assert len(at) == 1
        seen.add(at[0])
    assert seen == set(places)
    assert torch.equal(images[0][0], places[1, 1])  # to predict: the middle
    with pytest.raises(ValueError, match="place"):
        FixedSize(images.images, size=22, random="places")
