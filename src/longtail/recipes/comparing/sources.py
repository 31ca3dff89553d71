"""Finding runs: folders of train, fix and fit, files of scores, and folders of all of these."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from longtail.core.nested import flat
from longtail.data import Kind
from longtail.data.tables.arrays import npz_names
from longtail.flows.fix_result import CROSS_FITTED
from longtail.flows.generation import settle
from longtail.flows.train.reading import read_recipe_file
from longtail.flows.train.run_folder import (
    METRICS,
    RECIPE,
    RECIPE_NAME,
    VERSIONS,
    task_values,
)

_DEPTH = 4
_PLAIN = ("scores", "test", "validation")  # names of files that say nothing about the run
_PARTS = ("test", "validation")
_SEED = re.compile(r"^(.*?)[-_. ]*seed[-_= ]?(\d+)$", re.IGNORECASE)
# Of metrics.json what is read here, and of which types it may be.
_READ = {
    "best": str,
    "methods": dict,
    "seed": int,
    "target": str | list | None,
    "criterion": str,
    "steps": list,
    "measured": str | None,
    "asked": dict,
}
TARGET = "target"  # the setting that tells runs apart whatever they are called


@dataclass(frozen=True)
class Source:
    """A file of scores and what is known of the run behind it.

    Attributes:
        scores: The file.
        base: The name to start from: a recipe, a folder, a file.
        seed: Of the run; the file where nobody knows it.
        kind: What the file holds.
        settings: What of the recipe decides what is learned, but for seeds.
        head: The second-stage head, if it is of one.
        label: The name that was asked for.
        note: What has to be said of it.
    """

    scores: Path
    base: str
    seed: str
    kind: Kind = "logits"
    settings: Mapping[str, Any] = field(default_factory=dict)
    head: str = ""
    label: str = ""
    note: str = ""


def find_sources(
    paths: Sequence[Path], labels: Sequence[tuple[str, Path]] = ()
) -> tuple[list[Source], list[str]]:
    """All runs in the paths, each once, and what was passed over.

    Args:
        paths: Run folders, scores files, or folders with these in them.
        labels: Pairs of a name and such a path; all runs in it are of the method of that name.
    """
    found: dict[tuple[Path, str], Source] = {}
    passed: list[str] = []
    for label, path in [*(("", path) for path in paths), *labels]:
        here = [replace(each, label=label) for each in _in_path(path, passed)]
        if not here:
            raise ValueError(
                f"{path} holds no scores to compare; give folders that longtail train, fix or fit "
                "have written, or .safetensors and .npz files of scores"
            )
        for each in here:
            found[each.scores.resolve(), label] = each
    named = {place for place, label in found if label}
    return [each for (place, label), each in found.items() if label or place not in named], passed


def _in_path(path: Path, passed: list[str]) -> list[Source]:
    if path.is_file():
        return [_file(path)]
    if not path.is_dir():
        raise FileNotFoundError(f"there is no {path}; give a run folder or a file of scores")
    found = _folder(path)
    if found is None:
        return list(_inside(path, passed, _DEPTH))
    if not found:
        raise ValueError(
            f"{path} is a run without scores: it has not finished; start the same longtail train "
            "command again, and it goes on"
        )
    return found


def _inside(path: Path, passed: list[str], depth: int) -> Iterator[Source]:
    """What the folders and files in a folder hold; what is no run is passed over."""
    for place in sorted(path.iterdir()):
        if place.is_file() and place.suffix in (".safetensors", ".npz"):
            try:
                yield _file(place)
            except ValueError as error:
                passed.append(f"Passed over: {error}.")
        elif place.is_dir() and not place.name.startswith("."):
            found = _folder(place)
            if found is None and depth:
                yield from _inside(place, passed, depth - 1)
            elif found:
                yield from found
            elif found is not None:
                passed.append(f"Passed over: {place}, a run that has not finished.")


def _folder(path: Path) -> list[Source] | None:
    """The scores in a run folder; None if it is none."""
    if not settle(path):
        return []
    if (path / RECIPE).is_file():
        return _train(path)
    if not (path / METRICS).is_file():
        return None
    said = _json(path / METRICS)
    if "best" in said and "methods" in said:
        _check_types(said, path / METRICS)
        files = [path / f"{part}.safetensors" for part in _PARTS]
        chosen = next((file for file in files if file.is_file()), None)
        note = "" if chosen is None else _part_note(path, chosen.stem)
        settings = {key: said[key] for key in (TARGET, "criterion") if key in said}
        seed = str(said.get("seed", 0))
        return (
            []
            if chosen is None
            else [Source(chosen, f"fit {said['best']}", seed, settings=settings, note=note)]
        )
    if "steps" in said and (path / "scores.safetensors").is_file():
        _check_types(said, path / METRICS)
        fitted_here = said.get("measured") == CROSS_FITTED
        note = (
            f"{path}: the fix was fitted on the samples it is measured on here, so it looks better "
            "than it is; longtail fix --apply adjusts others."
        )
        found = _file(path / "scores.safetensors")
        settings = {key: value for key, value in said.get("asked", {}).items() if key != "seed"}
        return [replace(found, settings=settings, note=note if fitted_here else "")]
    return None


def _check_types(said: Mapping[str, Any], place: Path) -> None:
    """A ValueError if something that is read here is not what a run says of itself."""
    for key, kinds in _READ.items():
        if key in said and not isinstance(said[key], kinds):
            raise ValueError(
                f"{place} is damaged: {key} cannot be {said[key]!r:.60}; make the run again"
            )
    if not _is_shallow([said.get(TARGET), said.get("asked")], 3):
        raise ValueError(f"{place} is damaged: a target is a list of numbers; make the run again")


def _is_shallow(value: Any, levels: int) -> bool:
    if not isinstance(value, list | dict):
        return True
    inside = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(part, levels - 1) for part in inside)


def _train(path: Path) -> list[Source]:
    values = flat(task_values(read_recipe_file(path / RECIPE)))
    seeds = [str(values.pop(key, 0)) for key in ("seed", "data.seed")]
    seed = seeds[0] if seeds[1] == "0" else f"{seeds[0]}, data {seeds[1]}"
    # How far scores are moved is decided here alike for all, and heads come after what was trained.
    stage = {k: v for k, v in values.items() if k.startswith("second_stage")}
    trained = {k: v for k, v in values.items() if not k.startswith(("target.", "second_stage"))}
    trained[TARGET] = values.get("target.prior")
    base = _recipe_name(path) or str(values.get("loss.name", path.name))
    made = []
    for part in _PARTS:
        for file in sorted(filter(Path.is_file, path.glob(f"scores-{part}*.safetensors"))):
            head = file.stem.removeprefix(f"scores-{part}").removeprefix("-")
            settings = trained | stage if head else trained
            note = "" if head else _part_note(path, part)
            made.append(Source(file, base, seed, settings=settings, head=head, note=note))
        if made:
            break
    return made


def _recipe_name(path: Path) -> str:
    """The name of the recipe as the run has kept it; empty in folders that have not."""
    try:
        name = _json(path / VERSIONS).get(RECIPE_NAME)
        return name if isinstance(name, str) else ""
    except (OSError, ValueError):  # it has no more than a name to give
        return ""


def _file(path: Path) -> Source:
    kind: Kind = "logits"
    if path.suffix == ".npz":
        kind = _npz_kind(path)
    elif path.suffix != ".safetensors":
        raise ValueError(
            f"{path} is no file of scores that compare reads; give .safetensors, or .npz with "
            "logits or probs and labels (longtail fix reads other formats and writes such a file)"
        )
    elif not is_longtail_scores(path):
        raise ValueError(f"{path} is a safetensors file without scores; give one of Scores.save")
    name = path.parent if path.stem.split("-")[0] in _PLAIN else path.with_suffix("")
    name = name.resolve()
    seeded = _SEED.match(name.name)
    if seeded is None:
        return Source(path, name.name, str(path), kind)
    return Source(path, seeded[1] or name.parent.name, seeded[2], kind)


def is_longtail_scores(path: Path) -> bool:
    """Whether the file is one of scores that longtail wrote, which says itself what it holds."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return "longtail" in (file.metadata() or {}) and "logits" in file.keys()  # noqa: SIM118
    except (SafetensorError, OSError):
        return False


def _npz_kind(path: Path) -> Kind:
    """By the name of its array: it is said there, so nothing is guessed."""
    names = npz_names(path)
    held = [kind for kind in ("logits", "probs") if kind in names]
    if len(held) != 1:
        raise ValueError(
            f"{path} must hold one array called logits or probs, and labels; it has "
            f"{', '.join(sorted(names)) or 'nothing'}"
        )
    return "logits" if held == ["logits"] else "probs"


def _part_note(path: Path, part: str) -> str:
    if part == "test":
        return ""
    return f"{path} has no test part: compared on held-out samples that may have chosen something."


def _json(place: Path) -> dict[str, Any]:
    if not place.is_file():
        raise FileNotFoundError(f"there is no file {place}")
    try:
        values = json.loads(place.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place} is damaged ({error}); make the run again") from None
    return values if isinstance(values, dict) else {}
