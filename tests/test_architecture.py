"""What keeps the code base as it is meant to be: names, size, one place that moves priors."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import longtail

SOURCE = Path(longtail.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
PUBLIC = [name for name in longtail.__all__ if name not in ("core", "data")]


def name(path):
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_is_short_enough_to_read(path):
    assert len(path.read_text().splitlines()) <= 300


def test_there_is_no_utils():
    assert not [path for path in FILES if path.stem in ("utils", "util", "helpers", "common")]


@pytest.mark.parametrize("path", FILES, ids=name)
def test_only_retarget_subtracts_two_priors(path):
    if name(path) == "core/retarget.py":
        return
    assert not re.search(r"\.log\s*-\s*\w+\.log\b(?!\.max)", path.read_text())


@pytest.mark.parametrize("path", FILES, ids=name)
def test_nothing_is_pickled_or_evaluated(path):
    banned = r"import pickle|pickle\.\w|torch\.load|allow_pickle=True|\beval\(|\bexec\(|yaml\.load"
    found = re.findall(banned, path.read_text().replace(").eval()", ""))
    assert not found


@pytest.mark.parametrize("public", PUBLIC)
def test_the_public_names_are_there_and_found_by_dir(public):
    assert getattr(longtail, public) is not None
    assert public in dir(longtail)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Priors'"):
        longtail.Priors  # noqa: B018


def test_importing_longtail_imports_no_torch_and_using_it_none_of_the_heavy_extras():
    code = (
        "import sys, longtail; assert 'torch' not in sys.modules; longtail.Prior.uniform(3); "
        "heavy = {'sklearn', 'scipy', 'torchmetrics', 'lightning', 'torchvision', 'matplotlib'}; "
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
