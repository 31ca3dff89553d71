"""Fetching: whole or not at all, checked, and clear where there is no network."""

import hashlib
import urllib.error
from dataclasses import replace

import pytest

from longtail.images import cifar_files, download_cifar
from longtail.images.cifar_files import ARCHIVES


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """An archive to fetch from a file instead of the network."""
    place = tmp_path / "site" / "cifar-10-binary.tar.gz"
    place.parent.mkdir()
    place.write_bytes(b"archive" * 1000)
    md5 = hashlib.md5(place.read_bytes(), usedforsecurity=False).hexdigest()
    entry = replace(ARCHIVES["cifar10", "binary"], md5=md5)
    monkeypatch.setitem(ARCHIVES, ("cifar10", "binary"), entry)
    monkeypatch.setattr(cifar_files, "_SITE", place.parent.as_uri())
    return place


def test_the_official_addresses_and_sums_are_known():
    assert {(archive.file_name, archive.md5) for archive in ARCHIVES.values()} == {
        ("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),
        ("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"),
        ("cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"),
        ("cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"),
    }
    assert cifar_files._SITE.startswith("https://www.cs.")


def test_an_archive_is_fetched_once(offered, tmp_path):
    place = download_cifar("cifar10", tmp_path / "new" / "folder")
    assert place.read_bytes() == offered.read_bytes()
    offered.unlink()
    assert download_cifar("cifar10", tmp_path / "new" / "folder") == place


def test_a_damaged_archive_that_is_there_is_fetched_again(offered, tmp_path):
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(b"half")
    assert download_cifar("cifar10", tmp_path).read_bytes() == offered.read_bytes()


def test_what_has_another_sum_is_not_kept(offered, tmp_path):
    offered.write_bytes(b"changed")
    with pytest.raises(ValueError, match="MD5 8977dfac2f8e04cb96e66882235f5aba"):
        download_cifar("cifar10", tmp_path / "data")
    assert not list((tmp_path / "data").iterdir())


@pytest.mark.parametrize(
    "error",
    [urllib.error.URLError("no route"), TimeoutError("no route"), ConnectionError("no route")],
)
def test_without_a_network_the_error_says_where_to_put_the_file(monkeypatch, tmp_path, error):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    with pytest.raises(ConnectionError, match=r"no route.*cifar-100-binary"):
        download_cifar("cifar100", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_set_that_does_not_exist_is_told(tmp_path):
    with pytest.raises(ValueError, match="got 'cifar1000' as 'binary'"):
        download_cifar("cifar1000", tmp_path)
