"""What is kept of finished runs: from their folders, or from where it was kept before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from longtail.core.arrays import as_numpy
from longtail.core.files import read_whole
from longtail.data.tables.errors import reading
from longtail.flows.file_names import METRICS
from longtail.flows.reproduce.experiment import Experiment, Fit, Inspect, Run, Synthetic, Train
from longtail.flows.reproduce.kept import (
    WEIGHT_NORM,
    Answers,
    Kept,
    check_signed,
    in_float16,
    in_float32,
    model_of,
    read_numbers,
    read_scores,
)
from longtail.flows.reproduce.measuring import probability_measures
from longtail.flows.reproduce.overview import is_there
from longtail.flows.reproduce.plan import (
    AFTER,
    KEPT,
    NUMBERS,
    RUNS,
    SCORES,
    RunNames,
    changes_of,
)
from longtail.flows.reproduce.ways import Way, asked, moved
from longtail.flows.train.reading import overridden
from longtail.flows.train.recipe import Recipe
from longtail.flows.train.run_folder import differences_from

MOST_BYTES = 20_000_000  # of all that is kept
_SCORES = "scores-test.safetensors"
_SEED = re.compile(r"-s(\d+)(\.|$)")  # at the end of the name of a run


def kept_in(
    results: Path,
    names: RunNames,
    experiments: Iterable[Experiment],
    recipe_of: Callable[[Train], Recipe],
) -> Callable[[Run, int], Kept | None]:
    """What is kept of any run of any seed: read from its folder, or from what was kept before.

    `results` is the folder of `reproduce -o`, or one like results/scores. A folder that has the
    name of a run but is of another recipe is a ValueError.
    """
    ways = {names(run, 0): each for run, each in asked(experiments).items()}

    @lru_cache(maxsize=64)
    def kept(run: Run, seed: int) -> Kept | None:
        name = names(run, seed)
        check_recipe(results, name, run, seed, recipe_of)
        made = collected(results, name, run, ways.get(names(run, 0), {}))
        for folder in (results / SCORES, results):
            made = made or Kept.load(folder, name)
        return made

    return kept


def check_any(results: Path, names: RunNames, experiments: Iterable[Experiment]) -> None:
    """A ValueError if a folder of results has no finished run of these experiments."""
    all_runs = (names(run, seed) for run in asked(experiments) for seed in _seeds_in(results))
    if not any(is_there(results, name) for name in all_runs):
        raise ValueError(
            f"{results} has no finished run: expected the folder of `longtail reproduce -o`, or "
            "one of --keep, such as results/scores"
        )


def _seeds_in(results: Path) -> list[int]:
    """The seeds that runs there have."""
    folders = [each for each in (results / RUNS, results / SCORES, results) if each.is_dir()]
    ends = (_SEED.search(each.name) for folder in folders for each in folder.iterdir())
    return sorted({int(end[1]) for end in ends if end})


def check_recipe(
    results: Path, name: str, run: Run, seed: int, recipe_of: Callable[[Train], Recipe]
) -> None:
    """A ValueError if a training run is finished there under this name and is of another recipe."""
    folder = results / RUNS / name
    if not isinstance(run, Train) or not (folder / METRICS).is_file():
        return
    recipe = overridden(recipe_of(run), changes_of(run, seed, results))
    differing = differences_from(folder, recipe)
    if recipe.start is not None and not Path(recipe.start).exists():  # it was needed to begin
        differing.pop("start", None)
    if differing:
        key, (there, asked_for) = next(iter(differing.items()))
        raise ValueError(
            f"{folder} is a run of another recipe: {key} is {there!r} there and {asked_for!r} in "
            "the experiment; move it away"
        )


def collected(results: Path, name: str, run: Run, ways: Mapping[Way, bool]) -> Kept | None:
    """What is to be kept of a run that is finished there; None if it is not."""
    folder = results / RUNS / name
    if isinstance(run, Synthetic):
        numbers = _numbers(folder / NUMBERS)
        return None if numbers is None else _with_trials(Kept(numbers=numbers), folder)
    if not (folder / METRICS).is_file() or isinstance(run, Inspect):
        return None
    if isinstance(run, Fit):
        _check_fit(folder / METRICS, run, name)
        return _summed(_answers(folder, ways))
    if not (folder / _SCORES).is_file():
        return None
    scores = in_float32(in_float16(read_scores(folder / _SCORES)))
    after = results / AFTER / name
    model = model_of(folder)
    trained = as_numpy(scores.labels), as_numpy(scores.counts)
    for file in filter(Path.is_file, (*after.glob("*.safetensors"), after / NUMBERS)):
        check_signed(file, model)
    answers = _answers(after, ways)
    for key, each in answers.items():
        if not all(map(np.array_equal, (each.labels, each.counts), trained)):
            raise ValueError(
                f"{after} has a head, {key}, for other test samples or training counts than "
                f"{folder}; move it away"
            )
    numbers = dict(_numbers(after / NUMBERS) or {})
    if any(way.variant == "best weight norm" for way in ways) and WEIGHT_NORM not in numbers:
        numbers[WEIGHT_NORM] = weight_norms(folder)
    return Kept(scores, answers, numbers)


class _AboutFit(msgspec.Struct):
    """What a fit says of itself."""

    set: str
    imbalance_ratio: float | None
    seed: int


def _check_fit(file: Path, run: Fit, name: str) -> None:
    with reading(file, "the metrics of a fit"):
        about = msgspec.json.decode(read_whole(file), type=_AboutFit)
    if (about.set, about.imbalance_ratio) != (run.features, run.imbalance_ratio) or (
        not name.endswith(f"-s{about.seed}")
    ):
        raise ValueError(
            f"{file} is of {about.set} at ratio {about.imbalance_ratio} and seed {about.seed}, "
            f"not of {name}; move its folder away"
        )


def _with_trials(kept: Kept, folder: Path) -> Kept:
    """With what a picture is drawn of; without torch, or without it, there is a table alone."""
    try:
        from longtail.flows.reproduce.synthetic import load
        from longtail.flows.two_gaussians import TwoGaussians

        trials = load(folder)
    except (ImportError, FileNotFoundError):
        return kept
    if isinstance(trials, TwoGaussians):
        return replace(kept, gaussians=trials)
    return replace(kept, moons=trials)


def weight_norms(folder: Path) -> list[float]:
    """The norms of the rows of the head that a run trained."""
    from longtail.flows.train.model_file import load_model
    from longtail.metrics.representations import weight_norms as norms_of

    rows = load_model(folder).model.head.rows.detach()
    return [float(f"{norm:.6g}") for norm in as_numpy(norms_of(rows)).tolist()]


def _answers(folder: Path, ways: Mapping[Way, bool]) -> dict[str, Answers]:
    made = {}
    for way, with_probabilities in ways.items():
        file = folder / f"{way.head}.safetensors"
        if not way.head or not file.is_file():
            continue
        scores = moved(in_float32(read_scores(file)), way, None)
        if scores is not None:
            made[way.key] = Answers.of(scores, with_probabilities)
    return made


def _summed(answers: Mapping[str, Answers]) -> Kept:
    """Of many methods and seeds what is measured of probabilities, in place of each sample's."""
    sure = {key: each for key, each in answers.items() if each.nll is not None}
    numbers = {key: probability_measures(each) for key, each in sure.items()}
    bare = {key: Answers(each.labels, each.right, each.counts) for key, each in answers.items()}
    return Kept(None, bare, numbers)


def _without_scores(kept: Kept, ways: Mapping[Way, bool]) -> Kept:
    """The answers of all ways to predict in place of the scores that they follow from."""
    answers = dict(kept.answers or {})
    for way, with_probabilities in ways.items():
        made = kept.answered(way, with_probabilities)
        if made is not None:
            answers[way.key] = made
    return Kept(None, answers, kept.numbers)


def _numbers(file: Path) -> dict[str, Any] | None:
    return read_numbers(file) if file.is_file() else None


class KeptFiles(NamedTuple):
    """What was written, and what was not."""

    names: tuple[str, ...]
    total: int  # bytes of all that is kept there, by now or before
    without_scores: tuple[str, ...]  # whose answers alone are kept, since all would be too large


def keep(
    results: Path,
    output: Path,
    names: RunNames,
    experiments: Sequence[Experiment],
    recipe_of: Callable[[Train], Recipe],
    most: int = MOST_BYTES,
) -> KeptFiles:
    """Write what is kept of every finished run that some experiment asks for."""
    check_any(results, names, experiments)
    output.mkdir(parents=True, exist_ok=True)
    kept_of = kept_in(results, names, experiments, recipe_of)
    written, dropped = list[str](), list[str]()
    # What is small first, then scores as long as there is room.
    for run, ways in sorted(
        asked(experiments).items(), key=lambda each: isinstance(each[0], Train)
    ):
        for seed in _seeds_in(results):
            name, kept = names(run, seed), kept_of(run, seed)
            if kept is None or name in written:
                continue
            own = {f"{name}.{end}" for end in KEPT}
            others = _bytes_of(each for each in output.iterdir() if each.name not in own)
            if kept.scores is not None and others + 2 * kept.scores.logits.size > most:
                kept, dropped = _without_scores(kept, ways), [*dropped, name]
            kept.save(output, name)
            written.append(name)
    return KeptFiles(tuple(written), _bytes_of(output.iterdir()), tuple(dropped))


def _bytes_of(files: Iterable[Path]) -> int:
    return sum(file.stat().st_size for file in files if file.suffix in (".json", ".safetensors"))
