"""Finding runs: folders of train, fix and fit, files of scores, and folders of all of these."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from longtail.core.files import read_whole
from longtail.core.nested import flat
from longtail.data import Kind
from longtail.data.tables.arrays import npz_names
from longtail.flows.file_names import METRICS, RECIPE, SCORES
from longtail.flows.fix_result import CROSS_FITTED
from longtail.flows.generation import settle
from longtail.flows.train.run_folder import name_of_run
from longtail.flows.train.yaml_text import read_yaml, text_of

TARGET = "target"  # the setting that tells runs apart whatever they are called
_DEPTH = 4
_PLAIN = ("scores", "test", "validation")  # names of files that say nothing about the run
_PARTS = ("test", "validation")
_SEED = re.compile(r"^(.*?)[-_. ]*seed[-_= ]?(\d+)$", re.IGNORECASE)
# Keys of a recipe that change nothing of what is learned.
_FREE = {"about", "source", "num_workers", "compile", "parallel", "checkpoint_every", "tensorboard"}


class _Metrics(msgspec.Struct):
    """What is read of a metrics.json, and the types that a run writes."""

    best: str = ""
    methods: dict[str, Any] = {}
    seed: int = 0
    target: str | list[float] | None = None
    criterion: str = ""
    steps: list[Any] = []
    measured: str | None = None
    asked: dict[str, str | float | list[float] | None] = {}
    group_edges: str = ""


@dataclass(frozen=True)
class Note:
    """What the reader of a comparison should know about a path.

    Left out are an "unfinished" run, and a file that is "unreadable", for which `error` says why.
    "no_test_part" is compared on samples that may have chosen something, and a fix that was
    "fitted_here" on those it was fitted on.
    """

    about: Literal["unfinished", "unreadable", "no_test_part", "fitted_here"]
    path: str
    error: str = ""


@dataclass(frozen=True)
class Source:
    """A file of scores and what is known of the run behind it."""

    scores: Path
    base: str  # the name to start from: a recipe, a folder, a file
    seed: str  # of the run; the file where it is not known
    kind: Kind = "logits"
    settings: Mapping[str, Any] = field(default_factory=dict)  # what decides what is learned
    head: str = ""  # the second-stage head, if it is of one
    label: str = ""  # the name that was asked for
    note: Note | None = None  # what its reader should know
    groups: str = ""  # the edges of many, medium and few that it names


def find_sources(
    paths: Sequence[Path], labels: Sequence[tuple[str, Path]] = ()
) -> tuple[list[Source], list[Note]]:
    """All runs in the paths, each once, and what was left out.

    `labels` are pairs of a name and such a path: all runs in it are of the method of that name.
    """
    sources: dict[tuple[Path, str], Source] = {}
    left_out: list[Note] = []
    for label, path in [*(("", path) for path in paths), *labels]:
        here = [replace(source, label=label) for source in _in_path(path, left_out)]
        if not here:
            raise ValueError(
                f"{path} holds no scores to compare; give folders that longtail train, fix or fit "
                "have written, or .safetensors and .npz files of scores"
            )
        for source in here:
            sources[source.scores.resolve(), label] = source
    named = {file for file, label in sources if label}
    kept = [source for (file, label), source in sources.items() if label or file not in named]
    return kept, left_out


def _in_path(path: Path, left_out: list[Note]) -> list[Source]:
    if path.is_file():
        return [_file(path)]
    if not path.is_dir():
        raise FileNotFoundError(f"there is no {path}; give a run folder or a file of scores")
    sources = _folder(path)
    if sources is None:
        return list(_inside(path, left_out, _DEPTH))
    if not sources:
        raise ValueError(
            f"{path} is a run without scores: it has not finished; start the same longtail train "
            "command again to finish it"
        )
    return sources


def _inside(folder: Path, left_out: list[Note], depth: int) -> Iterator[Source]:
    """What the folders and files in a folder hold; what is no run is left out."""
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix in (".safetensors", ".npz"):
            try:
                yield _file(path)
            except ValueError as error:
                left_out.append(Note("unreadable", str(path), str(error)))
        elif path.is_dir() and not path.name.startswith("."):
            sources = _folder(path)
            if sources is None and depth:
                yield from _inside(path, left_out, depth - 1)
            elif sources:
                yield from sources
            elif sources is not None:
                left_out.append(Note("unfinished", str(path)))


def _folder(path: Path) -> list[Source] | None:
    """The scores in a run folder; None if it is none."""
    if not settle(path):
        return []
    if (path / RECIPE).is_file():
        return _train(path)
    if not (path / METRICS).is_file():
        return None
    metrics = _json(path / METRICS)
    if "best" in metrics and "methods" in metrics:
        return _fit(path, metrics)
    if "steps" in metrics and (path / SCORES).is_file():
        return [_fix(path, metrics)]
    return None


def _train(path: Path) -> list[Source]:
    values = _recipe_values(path / RECIPE)
    seeds = [str(values.pop(key, 0)) for key in ("seed", "data.seed")]
    seed = seeds[0] if seeds[1] == "0" else f"{seeds[0]}, data {seeds[1]}"
    groups = str(values.pop("groups", None) or "")
    # How far scores are moved is decided here alike for all, and heads come after what was trained.
    stage = {k: v for k, v in values.items() if k.startswith("second_stage")}
    trained = {k: v for k, v in values.items() if not k.startswith(("target.", "second_stage"))}
    trained[TARGET] = values.get("target.prior")
    base = name_of_run(path) or str(values.get("loss.name", path.name))
    sources = []
    for part in _PARTS:
        for file in sorted(filter(Path.is_file, path.glob(f"scores-{part}*.safetensors"))):
            head = file.stem.removeprefix(f"scores-{part}").removeprefix("-")
            settings = trained | stage if head else trained
            note = None if head or part == "test" else Note("no_test_part", str(path))
            source = Source(file, base, seed, settings=settings, head=head, note=note)
            sources.append(replace(source, groups=groups))
        if sources:
            break
    return sources


def _fit(path: Path, metrics: Mapping[str, Any]) -> list[Source]:
    _check_types(metrics, path / METRICS)
    files = [path / f"{part}.safetensors" for part in _PARTS]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        return []
    settings = {key: metrics[key] for key in (TARGET, "criterion") if key in metrics}
    note = None if file.stem == "test" else Note("no_test_part", str(path))
    seed, base = str(metrics.get("seed", 0)), f"fit {metrics['best']}"
    groups = metrics.get("group_edges", "")
    return [Source(file, base, seed, settings=settings, note=note, groups=groups)]


def _fix(path: Path, metrics: Mapping[str, Any]) -> Source:
    _check_types(metrics, path / METRICS)
    fitted_here = metrics.get("measured") == CROSS_FITTED
    return replace(
        _file(path / SCORES),
        settings={key: value for key, value in metrics.get("asked", {}).items() if key != "seed"},
        note=Note("fitted_here", str(path)) if fitted_here else None,
        groups=metrics.get("group_edges", ""),
    )


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
    is_plain = path.stem.split("-")[0] in _PLAIN
    name = (path.parent if is_plain else path.with_suffix("")).resolve()
    seeded = _SEED.match(name.name)
    if seeded is None:
        return Source(path, name.name, str(path), kind)
    return Source(path, seeded[1] or name.parent.name, seeded[2], kind)


def single_run(paths: Sequence[Path]) -> Path | None:
    """The run folder of train, or the file of scores, if the paths hold just one; else None."""
    if len(paths) == 1 and paths[0].is_file():
        return paths[0]
    sources, _ = find_sources(paths)
    folder, *others = {source.scores.parent for source in sources}
    if not others and (folder / RECIPE).is_file():
        return folder
    return sources[0].scores if len(sources) == 1 else None


def is_longtail_scores(path: Path) -> bool:
    """Whether the file is one of scores that longtail wrote, which says itself what it holds."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            return "longtail" in (file.metadata() or {}) and "logits" in file.keys()  # noqa: SIM118
    except (SafetensorError, OSError):
        return False


def _npz_kind(path: Path) -> Kind:
    names = npz_names(path)
    kinds: list[Kind] = [kind for kind in ("logits", "probs") if kind in names]
    if len(kinds) != 1:
        raise ValueError(
            f"{path} must hold one array called logits or probs, and labels; it has "
            f"{', '.join(sorted(names)) or 'nothing'}"
        )
    return kinds[0]


def _recipe_values(path: Path) -> dict[str, Any]:
    """What of a recipe, stored with all defaults, decides what is learned, by dotted keys."""
    try:
        recipe = read_yaml(text_of(path))
    except ValueError as error:
        raise ValueError(f"in {path}: {error}") from None
    if not isinstance(recipe, Mapping):
        raise ValueError(f"{path} is damaged: a recipe is a mapping of keys to values")
    values = flat({key: value for key, value in recipe.items() if key not in _FREE})
    values.pop("data.path", None)
    return values


def _check_types(metrics: Mapping[str, Any], path: Path) -> None:
    """A ValueError if something that is read here has another type than a run writes."""
    try:
        msgspec.convert(metrics, _Metrics)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}; make the run again") from None


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        values = json.loads(read_whole(path))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}); make the run again") from None
    return values if isinstance(values, dict) else {}
