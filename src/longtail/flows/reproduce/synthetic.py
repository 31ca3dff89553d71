"""Synthetic runs: every trial draws its own problem; all trials are kept, so intervals follow.

numbers.json   "HEAD|VARIANT": {"measure group": one number for each trial}
trials.npz     the result itself, for the picture
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from longtail.data.tables import arrays
from longtail.data.tables.errors import reading
from longtail.flows import two_gaussians, two_moons
from longtail.flows.reproduce.fits import is_finished, staged_folder
from longtail.flows.reproduce.plan import NUMBERS
from longtail.flows.results import write_json
from longtail.flows.two_gaussians import LA_FIGURE_2, TwoGaussians
from longtail.flows.two_moons import ELM_FIGURE_1, TwoMoons

if TYPE_CHECKING:
    from longtail.flows.reproduce.experiment import Synthetic

Trials: TypeAlias = dict[str, dict[str, list[float]]]
_Floats: TypeAlias = npt.NDArray[np.float64]

_TRIALS = "trials.npz"


def run(synthetic_run: Synthetic, seed: int, folder: Path) -> None:
    """Write `folder` with all trials; one that is there is finished and left as it is.

    Args:
        synthetic_run: Which problem, and how often it is drawn.
        seed: Trials of one seed are of no other.
        folder: Made whole at the end.
    """
    if is_finished(folder, NUMBERS):
        return
    first, trials = seed * synthetic_run.trials, synthetic_run.trials
    result: TwoGaussians | TwoMoons
    if synthetic_run.problem == "two-gaussians":
        result = two_gaussians.run_trials(LA_FIGURE_2, trials, first)
        numbers = _of_gaussians(result)
    else:
        result = two_moons.run_trials(ELM_FIGURE_1, trials, first)
        numbers = _of_moons(result)
    with staged_folder(folder) as aside:
        write_json(aside / NUMBERS, numbers)
        np.savez_compressed(aside / _TRIALS, **_flat(result))


def load(folder: Path) -> TwoGaussians | TwoMoons:
    """What a run has drawn and measured."""
    file = folder / _TRIALS
    stored = arrays.load_npz(file, arrays.npz_names(file))
    values: dict[str, Any] = {}
    for key, array in stored.items():
        name, bar, part = key.partition("|")
        if bar:
            values.setdefault(name, {})[part] = array
        else:
            values[name] = array
    with reading(file, "the trials of a drawn problem"):
        if "taus" in values:
            values["taus"] = tuple(values["taus"].tolist())
            return TwoGaussians(**values)
        return TwoMoons(**values)


def _flat(result: TwoGaussians | TwoMoons) -> dict[str, Any]:
    """Every array, those of a mapping under "FIELD|NAME"."""
    flat: dict[str, Any] = {}
    for field in fields(result):
        value = getattr(result, field.name)
        if isinstance(value, Mapping):
            flat |= {f"{field.name}|{name}": array for name, array in value.items()}
        else:
            flat[field.name] = np.asarray(value)
    return flat


def _of_gaussians(result: TwoGaussians) -> Trials:
    """Errors in closed form; τ is the best for the mean over trials, as the figure chooses it."""

    def at(name: str, tau: float | None = None) -> dict[str, list[float]]:
        errors = result.by_tau[name]
        which = errors.mean(axis=0).argmin() if tau is None else result.taus.index(tau)
        return {"balanced_error": _listed(errors[:, which])}

    numbers = {
        f"{name}|as trained": {
            "balanced_error": _listed(errors),
            "sampled_error": _listed(result.sampled[name]),
        }
        for name, errors in result.exact.items()
    }
    return numbers | {
        "ERM|under the target": at("logit adjustment", 1.0),
        "ERM|best tau": at("logit adjustment"),
        "ERM|best weight norm": at("weights / ‖w‖^τ"),
        "weights / π^τ|best tau": at("weights / π^τ"),
    }


def _of_moons(result: TwoMoons) -> Trials:
    """The tail is the few-shot class, the head the many-shot one."""

    def of_classes(measure: str, values: _Floats) -> dict[str, list[float]]:
        parts = {"": values.mean(axis=1), " many": values[:, 0], " few": values[:, 1]}
        return {f"{measure}{group}": _listed(each) for group, each in parts.items()}

    return {
        f"{name}|as trained": {
            **of_classes("accuracy", result.recalls[name]),
            **of_classes("total_variance", result.variances[name]),
            "cdnv": _listed(result.cdnv[name]),
        }
        for name in result.cdnv
    }


def _listed(values: _Floats) -> list[float]:
    return [float(f"{value:.6g}") for value in values.tolist()]
