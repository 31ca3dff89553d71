"""`longtail doctor`: what works, what is broken and how to mend it, and the exit code."""

import json
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from longtail.cli import app
from longtail.flows import doctor
from longtail.flows.doctor import (
    EXTRAS,
    NEEDED,
    Checkup,
    Folder,
    Machine,
    Package,
    Torch,
    look_at_machine,
    look_at_package,
)

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
PACKAGE = Package("numpy", "all", None, True, "2.13.0+cpu", "2.6")
TORCH = Torch("2.13.0", 2, "AVX2", (), None, False, ("gloo",), "/usr/bin/g++")
FINE = Folder("temporary", "/tmp", 2**40, True)
MACHINE = Machine(2, 2**34, 2**33, 2**32, FINE, replace(FINE, role="current"))
WELL = Checkup("0.1", "3.11", "Linux", (PACKAGE,), TORCH, MACHINE, {"OMP_WAIT_POLICY": None})


def printed(found, monkeypatch, *arguments):
    monkeypatch.setattr(doctor, "check_up", lambda progress: found)
    done = CliRunner().invoke(app, ["doctor", *arguments])
    return done.exit_code, done.stdout


def test_here_all_that_is_needed_works():
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 0
    said = json.loads(done.stdout)
    assert said["ok"]
    states = {package["name"]: package["state"] for package in said["packages"]}
    assert {states[name] for name in NEEDED} == {"works"}
    assert said["torch"]["threads"] >= 1
    assert said["machine"]["temporary"]["can_write"]


def test_a_machine_that_is_well_has_nothing_to_mend(monkeypatch):
    code, text = printed(WELL, monkeypatch)
    assert code == 0
    for words in ("Nothing to mend", "AVX2", "gloo", "/usr/bin/g++", "16.0 GB, 8.0 GB free"):
        assert words in text


BROKEN = replace(PACKAGE, error="ImportError: libc10.so")
EXTRA = replace(PACKAGE, name="pyarrow", extra="parquet", is_needed=False, floor="15")
VISION = replace(EXTRA, name="torchvision", extra=None, error="no operator nms")


@pytest.mark.parametrize(
    ("package", "code", "what", "remedy"),
    [
        (BROKEN, 1, "does not import: ImportError: libc10.so", "--force-reinstall numpy"),
        (replace(PACKAGE, version=None), 1, "numpy is not installed", "--upgrade numpy"),
        (replace(PACKAGE, version="2.5.1"), 1, "numpy 2.5.1 is older than 2.6", "--upgrade numpy"),
        (replace(EXTRA, version="9.0"), 0, "pyarrow 9.0 is older than 15", "'longtail[parquet]'"),
        (VISION, 0, "torchvision 2.13.0+cpu is installed but", "built for your torch"),
    ],
)
def test_a_package_that_is_wrong_is_told_with_what_to_do(package, code, what, remedy, monkeypatch):
    found = replace(WELL, packages=(package,), torch=None if package is BROKEN else TORCH)
    assert found.is_well is (code == 0)
    given, text = printed(found, monkeypatch)
    assert given == code
    assert what in text
    assert remedy in text
    given, text = printed(found, monkeypatch, "--json")
    said = json.loads(text)
    assert (given, said["ok"]) == (code, code == 0)
    assert what in said["problems"][0]["what"]


def test_an_extra_that_is_not_there_is_no_problem():
    assert not replace(WELL, packages=(replace(EXTRA, version=None),)).problems


@pytest.mark.parametrize(
    ("machine", "code", "what"),
    [
        (replace(MACHINE, temporary=replace(FINE, can_write=False)), 1, "the temporary folder"),
        (replace(MACHINE, current=replace(FINE, role="current", can_write=False)), 0, "current"),
        (replace(MACHINE, current=replace(FINE, free=2**20)), 0, "less than 1 GB free"),
        (replace(MACHINE, shared_memory=2**26), 0, "shared memory is 64 MB"),
    ],
)
def test_a_machine_without_room_is_told(machine, code, what, monkeypatch):
    given, text = printed(replace(WELL, machine=machine), monkeypatch)
    assert given == code
    assert what in text


def test_threads_that_spin_are_told():
    (problem,) = replace(WELL, settings={"OMP_WAIT_POLICY": "active"}).problems
    assert "PASSIVE" in problem.remedy
    assert not problem.is_fatal


def test_the_worst_comes_first():
    assert replace(WELL, packages=(VISION, BROKEN)).problems[0].is_fatal


def test_every_extra_that_users_can_install_is_looked_at():
    project = tomllib.loads(PROJECT.read_text())["project"]
    ours = {"test", "lint", "dev", "docs", "all"}
    assert set(project["optional-dependencies"]) - ours <= {extra for extra, _ in EXTRAS.values()}
    needed = {text.partition(">")[0] for text in project["dependencies"]}
    assert needed - {"torch"} | {"scipy"} == set(NEEDED)


def test_a_package_that_breaks_on_import_is_told_and_not_raised(tmp_path, monkeypatch):
    for name, line in (
        ("breaks", "raise RuntimeError('operator x\\ndoes not exist')"),
        ("runs", ""),
    ):
        (tmp_path / f"{name}.py").write_text(line)
        about = tmp_path / f"{name}-1.2.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    monkeypatch.syspath_prepend(tmp_path)
    broken = look_at_package("breaks")
    assert (broken.version, broken.state, broken.error) == (
        "1.2",
        "broken",
        "RuntimeError: operator x",
    )
    assert look_at_package("runs").state == "works"
    assert look_at_package("is-not-there").state == "not installed"


def test_a_torch_that_does_not_import_is_told_too(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch.so')")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from longtail.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr  # what works on scores needs no torch
    said = json.loads(done.stdout)
    assert said["ok"]
    assert said["torch"] is None
    assert "ImportError: libtorch.so" in said["problems"][0]["what"]
    assert done.stderr == ""


def test_without_torch_it_says_what_works(monkeypatch):
    absent = replace(PACKAGE, name="torch", extra="torch", is_needed=False, version=None)
    code, text = printed(replace(WELL, packages=(absent,), torch=None), monkeypatch)
    assert code == 0
    assert "not installed; longtail[torch]" in text
    assert "audit, fix, report and compare work" in " ".join(text.split())


def test_the_limits_of_a_container_count(tmp_path, monkeypatch):
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "memory.max").write_text(f"{2**20}\n")
    (tmp_path / "memory.current").write_text(f"{2**19}\n")
    monkeypatch.setattr(doctor, "_CGROUP", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(8), raising=False)
    found = look_at_machine()
    assert (found.cores, found.memory, found.memory_free) == (2, 2**20, 2**19)
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    found = look_at_machine()
    assert found.cores == 8
    assert found.memory is None or found.memory > 2**20
