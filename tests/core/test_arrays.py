"""Arrays at the door: what torch can hold comes in, anything else gives a sentence."""

import numpy as np
import pytest
import torch

from longtail import Prior, Scores, data, engine, heads, losses, metrics, retarget
from longtail.core.arrays import as_numpy, to_kind
from longtail.core.labels import check_counts
from longtail.core.tensors import as_rows, as_tensor


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ("abc", "got a str of type <U3"),
        (["a", "b"], "got a list of type <U1"),
        (np.array([1, None]), "got a ndarray of type object"),
        ({0: 1}, "got a dict of type object"),
        (None, "got a NoneType of type object"),
        ([[1, 2], [3]], r"a list.*equal length"),
        (np.zeros(2, np.longdouble), "got a ndarray of type float"),
        (np.ma.array([1, 2], mask=[False, True]), "got a masked array"),
    ],
)
def test_what_is_no_array_of_numbers_gives_one_clear_sentence(values, sentence):
    for door in (as_numpy, as_tensor):
        with pytest.raises(ValueError, match=sentence) as caught:
            door(values)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">f2", "<u2", "longlong", "ulonglong", "bool"])
def test_numbers_of_any_byte_order_and_size_keep_their_values(dtype):
    values = np.array([0, 1, 7]).astype(dtype)
    assert as_numpy(values).tolist() == values.tolist()
    assert as_numpy(values).dtype.isnative
    assert as_tensor(values).tolist() == values.tolist()
    assert as_tensor(values[2]).item() == values[2].item()


def test_an_array_is_not_copied_where_none_is_needed_and_a_read_only_one_is():
    values = np.zeros(3)
    as_tensor(values)[0] = 1
    assert values[0] == 1
    values.flags.writeable = False
    as_tensor(values)[0] = 2
    assert values[0] == 1


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 3)])
def test_an_array_keeps_its_shape_in_every_kind(shape):
    for array in (np.zeros(shape), np.broadcast_to(1.5, shape), np.zeros(shape[::-1]).T):
        assert tuple(to_kind(array, torch.zeros(2)).shape) == shape
        assert tuple(as_tensor(array).shape) == shape
        assert to_kind(array, [0.0]) is array


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.int32])
def test_tensors_with_or_without_a_gradient_become_numpy_arrays(dtype):
    numbers = torch.tensor([1, 2, 3]).to(dtype)
    if dtype.is_floating_point:
        numbers.requires_grad_()
    array = as_numpy(numbers)
    assert array.tolist() == [1, 2, 3]
    assert array.dtype.name == {"bfloat16": "float32"}.get(str(dtype)[6:], str(dtype)[6:])


def test_an_array_comes_back_as_the_kind_of_an_example():
    array = np.arange(3)
    for example in (torch.zeros(1), np.zeros(1), [1.0]):
        again = to_kind(array, example)
        assert type(again) is (torch.Tensor if isinstance(example, torch.Tensor) else np.ndarray)
        assert again.tolist() == [0, 1, 2]
    array.flags.writeable = False
    to_kind(array, torch.zeros(1))[0] = 7
    assert array[0] == 0


def test_reversed_arrays_and_tensors_are_taken_as_they_are():
    assert as_tensor(np.arange(3)[::-1]).tolist() == [2, 1, 0]
    tensor = torch.zeros(2)
    assert as_tensor(tensor) is tensor


COMPLEX = np.array([[1 + 2j, 3 + 0j]])


@pytest.mark.parametrize(
    "door",
    [
        as_numpy,
        as_tensor,
        as_rows,
        Scores,
        lambda rows: Prior.of(rows[0]),
        lambda rows: retarget(rows, [1, 1], [2, 1]),
        lambda rows: metrics.representations.class_means(rows, [0], 1),
        lambda rows: heads.class_moments(rows, [0], 1),
        lambda rows: check_counts(rows[0]),
    ],
)
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy, np.complex64])
def test_complex_numbers_are_refused_before_their_imaginary_part_is_lost(door, kind):
    with pytest.raises(ValueError, match="got complex ones"):
        door(kind(COMPLEX))


def test_a_list_of_complex_numbers_is_refused_too():
    with pytest.raises(ValueError, match="got complex ones"):
        Prior.of([1 + 2j, 3])


MASKED = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])


@pytest.mark.parametrize(
    "door",
    [
        as_numpy,
        as_tensor,
        as_rows,
        lambda rows: as_numpy(list(rows)),
        lambda rows: metrics.representations.class_means(rows, [0, 1], 2),
        lambda rows: metrics.representations.intra_class_variance(rows, [0, 1], 2),
        lambda rows: heads.class_moments(rows, [0, 1], 2),
        lambda rows: engine.fit_linear(rows, [0, 1], losses.CrossEntropy([1, 1])),
        lambda rows: engine.fit_head(heads.Linear(2, 2), rows, [0, 1]),
        lambda rows: Scores(rows),
        lambda rows: data.pack_features("none.safetensors", {"train": (rows, [0, 1])}),
    ],
)
def test_a_mask_is_refused_wherever_it_would_be_lost(door):
    with pytest.raises(ValueError, match="an array without a mask"):
        door(MASKED)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize(
    ("tensor", "sentence"),
    [
        (lambda: torch.ones(2, 2, device="meta"), "device meta"),
        (lambda: torch.eye(2).to_sparse(), r"dense.*sparse"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(1)]), "got a nested one"),
        (lambda: torch.eye(2).to(torch.float8_e4m3fn), r"16 bits.*torch\.float8_e4m3fn"),
    ],
)
def test_tensors_without_numbers_to_count_with_are_refused(tensor, sentence):
    for door in (as_numpy, as_tensor, Scores):
        with pytest.raises(ValueError, match=sentence):
            door(tensor())
