"""The parts a recipe may name, each with a config made from the signature of its class.

A config holds the options of a loss, a head, a sampler and so on; it is a struct that msgspec reads
and checks, told apart from others of its family by `name`. What is left open, such as the prior of
the data, is supplied when the part is built.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import msgspec

from longtail.flows.train.signatures import parameters, union
from longtail.ranges import FractionBelowOne, NonNegative, Whole


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of a recipe: frozen, and nothing in it that is not known."""


class Part(Section, frozen=True, tag_field="name"):
    """The options of one part; `name` says of which."""

    source: ClassVar[tuple[str, str]]  # module and name of the class or function
    takes: ClassVar[frozenset[str]]  # what it can be called with

    @property
    def tag(self) -> str:
        """The name in recipes."""
        return str(self.__struct_config__.tag)

    def values(self) -> dict[str, Any]:
        """The options, in their order."""
        return msgspec.structs.asdict(self)

    @property
    def full_name(self) -> str:
        """The name in recipes, and the options but the usual ones; for parts that have defaults."""
        usual = type(self)().values()
        changed = [f"-{key}-{value}" for key, value in self.values().items() if value != usual[key]]
        return self.tag + "".join(changed)

    def build(self, **supplied: object) -> Any:
        """The part itself, given its options and what of `supplied` its signature has."""
        module, name = self.source
        arguments = {**supplied, **self.values()}
        make = getattr(import_module(module), name)
        return make(**{key: value for key, value in arguments.items() if key in self.takes})


def family(
    module: str,
    names: Iterable[str] | Mapping[str, str],
    supplied: Collection[str] = (),
    common: Mapping[str, tuple[Any, Any]] | None = None,
) -> dict[str, type[Part]]:
    """A config for each of some classes or functions of a module, under its name in recipes.

    That is `logit_adjusted` for LogitAdjusted, unless `names` maps another to it. Its options are
    the parameters before the star that a recipe can write, but for those `supplied` by whoever
    builds the part; `common` ones, with kind and default, come first.
    """
    by_tag = names if isinstance(names, Mapping) else {_snake_case(name): name for name in names}
    configs: dict[str, Any] = {}
    for tag, name in by_tag.items():
        signature = parameters(module, name)
        fields = [(option, kind, default) for option, (kind, default) in (common or {}).items()]
        fields += [
            (option, each.kind, each.default)
            for option, each in signature.items()
            if each.kind is not None and not each.keyword_only and option not in supplied
        ]
        configs[tag] = msgspec.defstruct(
            name,
            fields,
            bases=(Part,),
            namespace={"source": (module, name), "takes": frozenset(signature)},
            tag=tag,
            frozen=True,
            kw_only=True,
        )
    return configs


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


LOSSES = family(
    "longtail.losses",
    (
        *("CrossEntropy", "Balanced", "Adaptive", "Equalized", "LogitAdjusted"),
        *("LogitAdjustedAdaptive", "TwoScale", "WeightedLogitAdjusted", "BalancedSoftmax"),
        *("ClassBalanced", "Focal", "SigmoidFocal", "LDAM", "ELM", "EstimatedOffset", "Experts"),
        *("VS", "CDT", "LabelAwareSmoothing"),
    ),
    supplied=("train",),
    common={"label_smoothing": (FractionBelowOne, 0.0)},
) | family("longtail.losses", ("LADE",), ("train",))
# Terms on the whole batch or on features, which soft labels would make no sense for.
HARD_LABELS_ONLY = ("lade", "elm", "estimated_offset")
# Terms on features that any loss may have beside it, each times its weight from epoch `start` on.
TERMS = family(
    "longtail.losses",
    {
        "dro_lt": "DROLT",
        "range": "Range",
        "lifted_structure": "LiftedStructure",
        "center": "Center",
        "spread_out": "SpreadOut",
        "pull": "Pull",
    },
    ("dim", "num_classes", "train"),
    common={"weight": (NonNegative, msgspec.NODEFAULT), "start": (Whole, 0)},
)

_HEAD = ("dim", "num_classes", "train")
HEADS = family(
    "longtail.heads",
    ("Linear", "Cosine", "Experts", "EstimatedOffset", "CausalNorm", "WeightVectorNorm"),
    _HEAD,
)
# The heads of the second stage: cRT is a new linear head, LWS and τ-normalisation scale the rows of
# the trained one.
SECOND_HEADS = (
    family("longtail.heads", ("NearestClassMean",), _HEAD)
    | family(
        "longtail.heads",
        {"learned_ncm": "LearnedNCM", "multi_ncm": "MultiNCM"},
        _HEAD,
        common={"tau": (NonNegative, 0.0)},
    )
    | family(
        "longtail.heads",
        {"metric_ncm": "MetricNCM"},
        (*_HEAD, "rank"),
        common={"tau": (NonNegative, 0.0)},
    )
    | family("longtail.heads", {"crt": "Linear", "lws": "LearnableScale"}, (*_HEAD, "bias"))
    | family(
        "longtail.heads",
        {"tau_norm": "TauNorm"},
        (*_HEAD, "tau"),
        common={"tau": (NonNegative | Literal["auto"], "auto")},
    )
)
BACKBONES = family(
    "longtail.engine.backbones",
    {
        "resnet32": "ResNet32",
        "resnet32_experts": "ResNet32Experts",
        "small_cnn": "SmallCNN",
        "mlp": "MLP",
        "torchvision": "torchvision_backbone",
        "timm": "timm_backbone",
    },
)
SAMPLERS = family(
    "longtail.images",
    {
        "instance": "InstanceSampler",
        "class_balanced": "ClassBalancedSampler",
        "square_root": "SquareRootSampler",
        "reversed": "ReversedSampler",
        "effective_number": "EffectiveNumberSampler",
        "progressive": "ProgressiveSampler",
        "m_per_class": "MPerClassSampler",
    },
    ("labels", "num_classes", "num_epochs"),
)
AUGMENTATIONS = family(
    "longtail.images.augment",
    {
        "crop": "RandomCrop",
        "flip": "Flip",
        "color_jitter": "ColorJitter",
        "autoaugment": "AutoAugment",
        "cutout": "Cutout",
    },
    ("fill",),
)
SCHEDULES = family(
    "longtail.engine.schedules",
    ("Constant", "Steps", "Cosine", "OneCycle"),
    ("total",),
    common={"by_epoch": (bool, False)},
)

# Of one family: for msgspec a union of classes made above, for type checkers what they have alike.
if TYPE_CHECKING:
    Loss: TypeAlias = Part
    Term: TypeAlias = Part
    Head: TypeAlias = Part
    SecondHead: TypeAlias = Part
    Backbone: TypeAlias = Part
    Sampler: TypeAlias = Part
    Augmentation: TypeAlias = Part
    Schedule: TypeAlias = Part
else:
    Loss = union(LOSSES.values())
    Term = union(TERMS.values())
    Head = union(HEADS.values())
    SecondHead = union(SECOND_HEADS.values())
    Backbone = union(BACKBONES.values())
    Sampler = union(SAMPLERS.values())
    Augmentation = union(AUGMENTATIONS.values())
    Schedule = union(SCHEDULES.values())
