"""Where a fit stands, in one safetensors file: written whole after every epoch, read to go on."""

import os
from pathlib import Path
from typing import Any

import msgspec
from safetensors import SafetensorError, safe_open
from torch import Tensor

from longtail.core.tensor_file import save_tensors

_KEY = "longtail_fit"


class FitState(msgspec.Struct):
    """What is not a tensor: `task` says of which fit this is the state."""

    task: str
    epoch: int
    best_error: float | None  # None: there is none yet
    since_best: int


def save_checkpoint(
    path: str | os.PathLike[str], states: dict[str, dict[str, Tensor]], fit_state: FitState
) -> None:
    """Write the tensors of several states, each under its name."""
    tensors = {
        f"{name}.{key}": value for name, state in states.items() for key, value in state.items()
    }
    save_tensors(path, tensors, {_KEY: msgspec.json.encode(fit_state).decode()})


def _opened(path: str | os.PathLike[str]) -> Any:
    try:
        return safe_open(path, "pt")
    except SafetensorError as error:
        raise ValueError(
            f"{os.fspath(path)} is damaged ({error}); remove it to begin anew"
        ) from error


def load_checkpoint(
    path: str | os.PathLike[str], task: str
) -> tuple[dict[str, dict[str, Tensor]], FitState] | None:
    """What `save_checkpoint` wrote, None if there is no file, an error if it is of another fit."""
    if not Path(path).exists():
        return None
    with _opened(path) as file:
        text = (file.metadata() or {}).get(_KEY)
        if text is None:
            raise ValueError(f"{path} is no checkpoint of fit_head; give another name")
        try:
            fit_state = msgspec.json.decode(text, type=FitState)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the header of {path} is damaged: {error}; remove it") from error
        if fit_state.task != task:
            raise ValueError(
                f"the checkpoint {path} is of another fit: it was for\n  {fit_state.task}\n"
                f"and this is\n  {task}\nremove it to begin anew, or give another name"
            )
        states: dict[str, dict[str, Tensor]] = {}
        for key in file.keys():  # noqa: SIM118  (a file, not a dict)
            name, _, rest = key.partition(".")
            states.setdefault(name, {})[rest] = file.get_tensor(key)
    return states, fit_state
