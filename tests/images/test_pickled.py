"""Plain data is read from a pickle, and nothing that a pickle could do is done."""

import io
import pickle
import struct

import numpy as np
import pytest

from longtail.data.tables.pickled import ByteArray, read_plain_data
from longtail.images.cifar import read_dictionary, read_meta


def read(pickled):
    return read_plain_data(pickled, "a file")


@pytest.mark.parametrize("protocol", range(6))
def test_plain_data_comes_back_as_it_was(protocol):
    shared = ["a", 2]
    data = {
        "numbers": [0, 255, 65536, -3, 2**40, 1.5],
        "flags": (True, False, None),
        "tuples": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        "nested": {"é": [[], {}], "shared": shared, "again": shared},
        "long": list(range(3000)),
    }
    assert read(pickle.dumps(data, protocol)) == data


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_bytes_come_back_as_they_were(protocol, order):
    array = np.asarray(np.arange(200, dtype=np.uint8).reshape(10, 20), order=order)
    stored = read(pickle.dumps({b"data": array, b"again": array}, protocol))
    assert isinstance(stored[b"data"], ByteArray)
    assert stored[b"data"] is stored[b"again"]
    assert np.array_equal(stored[b"data"].values, array)


def python_2_batch():
    """Byte by byte what cPickle of Python 2 wrote with protocol 2 for a batch of two images."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    pixels = bytes(range(256)) * 24
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x05cnumpy\nndarray\nq\x06K\x00\x85q\x07"
        + text(b"b") + b"\x87q\x08Rq\x09(K\x01K\x02M\x00\x0c\x86q\x0acnumpy\ndtype\nq\x0b"
        + text(b"u1") + b"K\x00K\x01\x87q\x0cRq\x0d(K\x03" + text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T" + struct.pack("<i", 6144)
        + pixels + b"tb"
    )  # fmt: skip
    head = b"\x80\x02}q\x01(" + text(b"batch_label") + b"q\x02" + text(b"batch 1 of 5") + b"q\x03"
    labels = text(b"labels") + b"]q\x04(K\x06K\x09e"
    return head + labels + text(b"data") + array + b"u.", pixels


def test_a_file_of_python_2_is_read():
    pickled, pixels = python_2_batch()
    plain = pickle.loads(pickled, encoding="bytes")  # noqa: S301  ours, and only to see it is one
    assert plain[b"data"].tobytes() == pixels
    images, labels = read_dictionary(pickled, "cifar10", "fine", "data_batch_1")
    assert labels.tolist() == [6, 9]
    assert images.tobytes() == pixels


class Hostile:
    def __init__(self, function, *arguments):
        self.made = (function, arguments)

    def __reduce__(self):
        return self.made


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "function", [open, eval, io.FileIO, np.load, np.frombuffer], ids=lambda f: f.__name__
)
def test_a_pickle_that_calls_something_is_refused_and_nothing_is_called(
    tmp_path, protocol, function
):
    mark = tmp_path / "called"
    argument = f"open({str(mark)!r}, 'w')" if function is eval else str(mark)
    arguments = (argument, "w") if function in (open, io.FileIO) else (argument,)
    pickled = pickle.dumps({"data": Hostile(function, *arguments)}, protocol)
    with pytest.raises(ValueError, match="which is not admitted"):
        read(pickled)
    assert not mark.exists()


@pytest.mark.parametrize(
    "pickled",
    [
        pickle.dumps(np.arange(3, dtype=np.int64)),  # numbers of another type
        pickle.dumps(np.array([{}], dtype=object)),  # objects
        pickle.dumps({(1, 2): 3}),  # a key that is no text
        pickle.dumps({1, 2}),  # a set
        pickle.dumps(slice(1)),
        b"\x80\x02cnumpy\nndarray\n(tR.",  # calls the type itself
        b"\x80\x02c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00utf-7tR.",
        b"\x80\x02}(U\x01a" + pickle.dumps(np.zeros(3, np.uint8), 2)[2:-1] + b"}bu.",
        b"\x80\x02]K\x01b.",  # a state for a list
        b"(iposix\nsystem\n.",  # the oldest way to make an object
        b"\x80\x02K\x01\x82\x01.",  # an extension
        b"Pid\n.",  # a persistent object
        b"\x80\x02K\x01K\x02.",  # two values
        b"\x80\x02.",
        b"\x80\x02a.",
        b"\x80\x02\x86.",
        b"\x80\x02h\x07.",
        b"\x80\x02U\xff.",
        b"",
        b"no pickle",
    ],
)
def test_what_is_not_plain_data_is_refused(pickled):
    with pytest.raises(ValueError, match="a file cannot be read"):
        read(pickled)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ([1], "a dictionary, got list"),
        ({"data": np.zeros((1, 3072), np.uint8)}, "as labels, got data;"),
        ({"data": np.zeros((1, 3071), np.uint8), "labels": [0]}, "rows of 3072 bytes"),
        ({"data": np.zeros(3072, np.uint8), "labels": [0]}, "rows of 3072 bytes"),
        ({"data": "text", "labels": [0]}, "rows of 3072 bytes"),
        ({"data": np.zeros((1, 3072), np.uint8), "labels": [0, 1]}, "a class number for each"),
        ({"data": np.zeros((1, 3072), np.uint8), "labels": ["a"]}, "a class number for each"),
        ({"data": np.zeros((1, 3072), np.uint8), "labels": 0}, "a class number for each"),
    ],
)
def test_a_dictionary_of_something_else_is_told(stored, said):
    with pytest.raises(ValueError, match=said):
        read_dictionary(pickle.dumps(stored, 2), "cifar10", "fine", "a file")


@pytest.mark.parametrize("label", [2**70, 10, -1, 1.5, True, "1"])
def test_a_label_that_is_no_class_is_refused(label):
    data = {"data": np.zeros((1, 3072), np.uint8), "labels": [label]}
    with pytest.raises(ValueError, match="a class number for each"):
        read_dictionary(pickle.dumps(data, 2), "cifar10", "fine", "data_batch_1")


@pytest.mark.parametrize("names", [3, "cat", [1, 2], [["cat"]]])
def test_class_names_that_are_no_texts_are_refused(names):
    with pytest.raises(ValueError, match="a list of texts as label_names"):
        read_meta(pickle.dumps({"label_names": names}, 2), "cifar10", "fine", "batches.meta")
