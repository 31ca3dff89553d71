"""load: what fix, fit and train wrote, ready to predict.

An adjuster takes logits, a model of fit takes features, a model of train takes images. Torch is
imported for models only: an adjuster needs NumPy alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import msgspec

from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import ArrayT, as_numpy, to_kind
from longtail.flows.file_names import ADJUSTER, MODEL, SETS
from longtail.posthoc import ConformalSets, load_adjusters

if TYPE_CHECKING:
    from torch import Tensor

    _Logits: TypeAlias = Callable[[Tensor], tuple[Tensor, Prior | None]]  # and what they carry


class _Score(Protocol):
    def __call__(self, inputs: ArrayT) -> Scores[ArrayT]: ...


@dataclass(frozen=True, eq=False)
class Predictor:
    """Something that predicts; what comes in as NumPy comes back as NumPy, torch as torch.

    Inputs are logits of the model that was fixed, of shape (N, C); features, of shape (N, D); or
    images of shape (N, channels, height, width), bytes or numbers from 0 to 1. The default target
    is that of the command: what fix and fit were asked for, and for train what its logits carry.
    """

    kind: Literal["fix", "fit", "train"]  # what wrote it
    classes: tuple[str, ...] | None
    score: _Score
    conformal: ConformalSets | None = None  # beside an adjuster, if the fix was asked for sets

    def scores(self, inputs: ArrayT, target: PriorLike | None = None) -> Scores[ArrayT]:
        """Scores of the inputs, which know what they carry, under a target."""
        scores = self.score(inputs)
        return scores if target is None else scores.under(target)

    def logits(self, inputs: ArrayT, target: PriorLike | None = None) -> ArrayT:
        """Logits of shape (N, C)."""
        return self.scores(inputs, target).logits

    def probs(self, inputs: ArrayT, target: PriorLike | None = None) -> ArrayT:
        """Probabilities of shape (N, C)."""
        return self.scores(inputs, target).probs()

    def predict(self, inputs: ArrayT, target: PriorLike | None = None) -> ArrayT:
        """The class of each input."""
        return self.scores(inputs, target).predict()

    def sets(self, inputs: ArrayT) -> ArrayT:
        """The set of classes of each input, as `longtail fix --sets` asked for: (N, C), boolean."""
        if self.conformal is None:
            raise ValueError(
                "there are no sets beside what was loaded; make them: longtail fix --sets 0.9, or "
                "fit a longtail.posthoc.ConformalSets"
            )
        return self.conformal(self.score(inputs))


def load(path: str | os.PathLike[str]) -> Predictor:
    """Load what fix, fit or train wrote: its folder, or the adjuster.json or model in it."""
    file = Path(path)
    if file.is_dir():
        candidates = [file / ADJUSTER, file / MODEL]
        file = next((each for each in candidates if each.is_file()), file)
    if not file.is_file():
        raise FileNotFoundError(
            f"there is nothing to load at {file}; give a folder that longtail fix, fit or train "
            f"has written, or the {ADJUSTER} or {MODEL} in it"
        )
    if file.suffix not in (".json", ".safetensors"):
        raise ValueError(f"expected an {ADJUSTER} or a {MODEL}, or the folder of one; got {file}")
    return _adjuster(file) if file.suffix == ".json" else _model(file)


def _adjuster(file: Path) -> Predictor:
    stored = load_adjusters(file)

    def score(inputs: ArrayT) -> Scores[ArrayT]:
        return stored(Scores(inputs, carried=stored.carried))

    sets = file.parent / SETS
    return Predictor(
        "fix", stored.classes, score, ConformalSets.load(sets) if sets.is_file() else None
    )


def _model(file: Path) -> Predictor:
    import torch
    from safetensors import safe_open

    from longtail.core.tensors import as_tensor
    from longtail.data.tables.errors import reading

    with reading(file, "a safetensors file"), safe_open(file, "pt") as opened:
        about = opened.metadata() or {}
    is_head = "longtail_head" in about
    if "longtail" in about:
        raise ValueError(f"{file} holds scores, which Scores.load reads; give the {MODEL}")
    classes, compute = _head(file) if is_head else _network(file)

    def score(inputs: ArrayT) -> Scores[ArrayT]:
        with torch.no_grad():
            logits, carried = compute(as_tensor(inputs))
        rows: ArrayT = to_kind(as_numpy(logits), inputs)
        return Scores(rows, carried=carried, classes=classes)

    return Predictor("fit" if is_head else "train", classes, score)


class _About(msgspec.Struct):
    """What fit says about the head that it keeps."""

    method: str = ""
    classes: tuple[str, ...] | None = None
    target: tuple[float, ...] | None = None


def _head(file: Path) -> tuple[tuple[str, ...] | None, _Logits]:
    """A head on features, under the target it was fitted for."""
    from longtail.data.tables.errors import reading
    from longtail.engine import load_head
    from longtail.flows.fit_methods import METHODS, predicted

    head, values = load_head(file)
    with reading(file, "a head of `longtail fit`"):
        about = msgspec.convert(values, _About)
        target = None if about.target is None else Prior.of(about.target)
        for what in (about.classes, about.target):
            if what is not None and len(what) != head.num_classes:
                raise ValueError(f"it has {head.num_classes} classes and says {len(what)} of them")
    method = METHODS.get(about.method)

    def logits(features: Tensor) -> tuple[Tensor, Prior | None]:
        if method is None or target is None:  # a head that was saved by itself
            return head(features), head.carried
        scores = predicted(method, head, features, target)
        return scores.logits, scores.carried

    return about.classes, logits


def _network(file: Path) -> tuple[tuple[str, ...], _Logits]:
    """A backbone and its head, as they were trained."""
    from longtail.flows.train.model_file import load_model

    stored = load_model(file)
    model, normalize = stored.model, stored.normalize
    return stored.classes, lambda images: (model(normalize(images)).logits, model.carried)
