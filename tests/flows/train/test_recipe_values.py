"""Recipes as values: what is wrong with one is named with what is allowed, before torch."""

import inspect
import subprocess
import sys

import msgspec
import pytest

from longtail import heads, images, losses
from longtail.engine import backbones, schedules
from longtail.flows.train import parts
from longtail.flows.train.reading import RecipeError, overridden, plain, recipe_from
from longtail.flows.train.yaml_text import read_yaml, write_yaml
from longtail.images import augment
from longtail.recipes.catalogue import read_recipe

START = recipe_from({"data": "cifar100", "loss": {"name": "lade", "lam": 0.5}})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["loss=cross_entrpy"], "loss.name cannot be 'cross_entrpy'; did you mean cross_entropy?"),
        (["loss.tau=1"], "no key loss.tau; the keys of loss (lade) are alpha, lam, variant"),
        (["optimiser.lr=1"], "no key optimiser; did you mean optimizer? The keys are about, "),
        (["optimizer.lr=-1"], "optimizer.lr must be float > 0.0, got -1"),
        (["optimizer.lr=fast"], "optimizer.lr must be float, got 'fast'"),
        (["epochs=2.5"], "epochs must be int, got 2.5"),
        (["data.profile=expo"], "did you mean exp? Take one of exp, pareto, step"),
        (["data.kind=cifar1000"], "did you mean cifar100? Take one of cifar10, cifar100, cifar20"),
        (["data.imbalance_ratio=0.01"], "data.imbalance_ratio must be float >= 1.0, got 0.01"),
        (["backbone.dim=65"], "backbone.dim cannot be 65; take one of 64, 128"),
        (["backbone=torchvision"], "backbone needs a value for network"),
        (["augment=[crop, flop]"], "augment[1].name cannot be 'flop'; did you mean flip?"),
        (["augment=[{name: crop, pad: 3}]"], "no key augment[0].pad; did you mean padding?"),
        (["augment=[{name: crop, padding: x}]"], "augment[0].padding must be int, got 'x'"),
        (["target.tau=often"], "take one of auto or a number"),
        (["seed.x=1"], "seed has no keys of its own"),
        (["loss"], "expected key=value"),
        (["loss: lade"], "expected key=value"),
        (["data=3"], "data must be object, got 3"),
        (["normalize={mean: [0.5], std: [1, 1]}"], "mean has 1 channels and std 2"),
        (["schedule=cosine", "schedule.warmup=30"], "takes 30 epochs, but there are 30"),
        (["schedule={name: steps, milestones: [9, 3]}"], "milestones must rise, got [9, 3]"),
        (["schedule={name: steps, milestones: [2], warmup: 5}"], "over by the first milestone"),
        (["schedule={name: one_cycle, peak: 30}"], "schedule.peak is epoch 30"),
        (["drw.start=30"], "drw.start is epoch 30, but there are 30 epochs"),
        (["drw.beta=0.9"], "drw needs a value for start"),
        (["drw.start=2", "drw.resample=true", "sampler=reversed"], "so does the sampler reversed"),
        (["loss=ldam"], "set head=cosine and head.scale=1"),
        (["loss=ldam", "head={name: cosine, scale: 1, learn_scale: true}"], "learn_scale=false"),
        (["loss=estimated_offset"], "set head=estimated_offset loss=estimated_offset"),
        (["head=estimated_offset"], "set head=estimated_offset loss=estimated_offset"),
        (
            ["loss=estimated_offset", "head=estimated_offset", "second_stage.heads=[tau_norm]"],
            "the offset of the head estimated_offset would be lost",
        ),
        (["mixup=1"], "mixup makes soft labels"),
        (["loss=focal", "mixup=1", "terms=[{name: range, weight: 1}]"], "mixup makes soft labels"),
        (["early_sizes=[{until: 9, size: 16}, {until: 5, size: 24}]"], "until must rise along"),
        (["early_sizes=[{until: 30, size: 16}]"], "last until epoch 30, but there are 30 epochs"),
        (["early_sizes=[{until: 9}]"], "early_sizes[0] needs a value for size"),
        (["terms=[center]"], "terms[0] needs a value for weight"),
        (["terms=[{name: centre, weight: 1}]"], "terms[0].name cannot be 'centre'; did you mean"),
        (["terms=[{name: center, weight: -1}]"], "terms[0].weight must be float >= 0.0, got -1"),
        (["terms=[{name: pull, weight: 1, start: 30}]"], "the term pull starts in epoch 30, but"),
        (["terms.center.rate=1"], "terms has no center; it has none"),
        (["augment=[crop, flip]", "augment.crup.padding=1"], "augment has no crup; did you mean"),
        (["augment=[crop]", "augment.crop.pad=1"], "no key augment[0].pad; did you mean padding?"),
        (["augment=[crop]", "augment.crop=1"], "augment has no keys of its own"),
        (["head=cosine", "second_stage.heads=[lws]"], "leave it out, or set head=linear"),
        (["data.kind=folder", "data.resize=9"], "set data.size"),
        (["data.kind=npz", "data.size=9", "data.resize=8"], "resize must be at least size"),
        (["data.kind=npz", "data.profile=step"], "set data.imbalance_ratio too"),
        (["target.criterion=nll"], "set target.tau=auto too"),
        (["augment=[crop"], "in 'augment=[crop': this is not YAML"),
        (["optimizer.lr=.inf"], "optimizer.lr must be a finite number, got inf"),
        (["normalize={mean: [.nan], std: [1]}"], "normalize.mean[0] must be a finite number"),
        (["loss={name: [lade]}"], "loss.name cannot be ['lade']; did you mean lade?"),
        (["backbone={name: timm, options: {1: 2}}"], "the keys of backbone.options must be text"),
        (["data.seed=4294967296"], "data.seed must be int <= 4294967295, got 4294967296"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(settings, sentence):
    with pytest.raises(RecipeError) as caught:
        overridden(START, settings)
    assert sentence in str(caught.value)


def test_values_are_read_by_their_type():
    changed = overridden(
        START,
        [
            "optimizer.lr=1e-3",
            "data.path=123",
            "ema=0.9",
            "mixup=null",
            "augment=[crop, {name: cutout, size: 8}]",
            "target.tau=auto",
            "target.prior=[1, 2]",
            "head=cosine",
            "head.scale=4",
        ],
    )
    assert (changed.optimizer.lr, changed.data.path, changed.ema) == (0.001, "123", 0.9)
    assert changed.augment == (
        parts.AUGMENTATIONS["crop"](),
        parts.AUGMENTATIONS["cutout"](size=8),
    )
    assert (changed.target.tau, changed.target.prior) == ("auto", (1.0, 2.0))
    assert changed.head == parts.HEADS["cosine"](scale=4.0)
    assert "Changed: optimizer.lr=1e-3, ema=0.9" in changed.about


def test_a_part_that_is_named_anew_starts_from_its_defaults_but_the_path_stays():
    changed = overridden(START, ["data.path=here", "data.kind=npz", "loss=logit_adjusted"])
    assert changed.data.path == "here"
    assert changed.data.imbalance_ratio is None
    assert changed.loss == parts.LOSSES["logit_adjusted"]()
    assert overridden(START, ["loss.name=lade"]).loss.lam == 0.5


def test_a_key_may_go_through_a_list_by_the_name_of_a_part():
    terms = "terms=[{name: center, weight: 0.1}, {name: dro_lt, weight: 0.2, start: 3}]"
    settings = [terms, "terms.dro_lt.weight=0.5", "augment=[crop, flip]", "augment.crop.padding=2"]
    changed = overridden(START, settings)
    assert [(term.tag, term.weight, term.start) for term in changed.terms] == [
        ("center", 0.1, 0),
        ("dro_lt", 0.5, 3),
    ]
    assert [step.tag for step in changed.augment] == ["crop", "flip"]
    assert changed.augment[0].padding == 2


def test_a_recipe_survives_yaml():
    recipe = overridden(START, ["optimizer.weight_decay=5e-4", "augment=[crop, flip]"])
    assert recipe_from(read_yaml(write_yaml(plain(recipe)))) == recipe


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-3", 0.001), ("5.0e-4", 0.0005), ("-1E5", -1e5), ("1e", "1e"), ("e3", "e3"), ("3", 3)],
)
def test_yaml_reads_numbers_as_people_write_them(text, value):
    assert read_yaml(text) == value


def test_yaml_makes_nothing_but_plain_values():
    with pytest.raises(ValueError, match="not YAML"):
        read_yaml("!!python/object/apply:os.getcwd []")


def test_a_file_may_say_only_what_differs_from_a_named_recipe(tmp_path):
    place = tmp_path / "mine.yaml"
    place.write_text("base: cifar100-lt-la-quick\noptimizer: {lr: 1e-1}\nloss: lade\n")
    mine, base = read_recipe(place), read_recipe("cifar100-lt-la-quick")
    assert mine.optimizer == msgspec.structs.replace(base.optimizer, lr=0.1)
    assert mine.loss == parts.LOSSES["lade"]()
    assert mine.augment == base.augment
    assert mine.about.endswith("Changed: optimizer, loss.")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("base: nothing", "no recipe 'nothing'"),
        ("epochs: 3", "the recipe needs a value for data"),
        ("[1, 2]", "a recipe is a mapping"),
        ("a: [", "not YAML"),
        ("epochs: 1\nepochs: 2", "the key epochs stands twice"),
        ("data: {path: x}", "data must say its kind, one of cifar10"),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path, text, sentence):
    place = tmp_path / "mine.yaml"
    place.write_text(text)
    with pytest.raises(RecipeError, match=r"mine\.yaml") as caught:
        read_recipe(place)
    assert sentence in str(caught.value)


def _options(config):
    fields = msgspec.structs.fields(config)
    return {field.name: None if field.required else _usual(field) for field in fields}


def _usual(field):
    factory = field.default_factory
    return field.default if factory is msgspec.NODEFAULT else factory()


def _parameters(make, leave_out=()):
    return {
        name: None if given.default is inspect.Parameter.empty else given.default
        for name, given in inspect.signature(make).parameters.items()
        if name not in leave_out and given.kind is not inspect.Parameter.VAR_KEYWORD
    }


FAMILIES = {
    "losses": (parts.LOSSES, losses, ("train", "gather", "generator")),
    "terms": (parts.TERMS, losses, ("dim", "num_classes", "train")),
    "heads": (parts.HEADS, heads, ("dim", "num_classes", "train")),
    "second heads": (parts.SECOND_HEADS, heads, ("dim", "num_classes", "train", "bias", "rank")),
    "backbones": (parts.BACKBONES, backbones, ()),
    "schedules": (parts.SCHEDULES, schedules, ("total",)),
    "samplers": (
        parts.SAMPLERS,
        images,
        ("labels", "num_classes", "num_epochs", "seed", "num_replicas", "rank"),
    ),
    "augmentations": (parts.AUGMENTATIONS, augment, ("fill",)),
}
# Common to a family; a term has a weight, which no paper says for all.
BESIDE = {"label_smoothing": 0.0, "by_epoch": False, "tau": 0.0, "weight": None, "start": 0}


@pytest.mark.parametrize(
    ("family", "tag"),
    [(family, tag) for family, (configs, _, _) in FAMILIES.items() for tag in configs],
)
def test_the_options_of_a_part_are_those_of_what_it_names(family, tag):
    configs, module, leave_out = FAMILIES[family]
    config = configs[tag]
    make = getattr(module, config.source[1])
    if config is parts.LOSSES["estimated_offset"]:
        leave_out = (*leave_out, "head")
    theirs = _parameters(make, leave_out)
    if tag == "tau_norm":  # chosen on the validation part if none is given
        theirs["tau"] = "auto"
    ours = _options(config)
    assert {**BESIDE, **ours} == {**BESIDE, **theirs}
    assert ("weight" in ours) == (family == "terms")
    assert ("label_smoothing" in ours) == (family == "losses" and tag != "lade")


def test_every_loss_that_needs_no_number_a_class_can_be_named():
    named = {config.source[1] for config in parts.LOSSES.values()}
    classes = {name: thing for name, thing in vars(losses).items() if inspect.isclass(thing)}
    there = {
        name
        for name, thing in classes.items()
        if issubclass(thing, losses.Loss) and not inspect.isabstract(thing)
    }
    abstract = {"SampleLoss", "MarginLoss", "RegularizedLoss", "Deferred", "LossWithTerms"}
    assert there - named - abstract == {"ConsistentMargin", "PairwiseMargin"}


def test_recipes_and_their_errors_need_no_torch():
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from longtail.flows.train.reading import RecipeError\n"
        "from longtail.flows.train.reading import overridden\n"
        "from longtail.recipes.catalogue import read_recipe\n"
        "from longtail.flows.train.run_folder import check_folder\n"
        "recipe = overridden(read_recipe('cifar100-lt-la-quick'), ['loss=lade'])\n"
        "check_folder(Path('nowhere'), recipe, 'auto')\n"
        "try:\n    overridden(recipe, ['loss=lad'])\n"
        "except RecipeError:\n    sys.exit('torch' in sys.modules or 'numpy' in sys.modules)\n"
        "sys.exit(3)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        "about: \x00",
        "about: \x1b[31m",
        "a: " + "[" * 500,
        "{a: " * 5000,
        "about: !!int x",
        "about: !!int ''",
        "about: !!bool maybe",
        "about: !!timestamp x",
        "about: " + "9" * 5000,
        "data: &a [*a]",
        "a: &a [1, 1]\n" + "".join(f"a{i}: &a [*a, *a]\n" for i in range(40)),
        "a: &a {k: 1}\n" + "".join(f"a{i}: &a {{<<: [*a, *a]}}\n" for i in range(40)),
    ],
)
def test_a_recipe_file_of_anything_but_plain_yaml_is_refused_by_name(tmp_path, text):
    place = tmp_path / "mine.yaml"
    place.write_text(text)
    with pytest.raises(RecipeError, match=r"mine\.yaml: .*not YAML"):
        read_recipe(place)


@pytest.mark.parametrize(
    ("number", "sentence"),
    [(30_000, "characters, where a recipe has some thousands"), (3000, "key2999 stands twice")],
)
def test_many_keys_of_which_one_stands_twice_are_told_at_once(tmp_path, number, sentence):
    place = tmp_path / "mine.yaml"
    place.write_text("".join(f"key{at}: 1\n" for at in range(number)) + f"key{number - 1}: 1\n")
    with pytest.raises(RecipeError, match=rf"in .*mine\.yaml: this is not YAML: .*{sentence}"):
        read_recipe(place)


@pytest.mark.parametrize(
    ("setting", "most"),
    [
        ("data.size", 4096),
        ("data.resize", 4096),
        ("batch_size", 2**31 - 1),
        ("num_workers", 2**31 - 1),
    ],
)
@pytest.mark.parametrize("number", [2**31, 10**30])
def test_sizes_that_no_machine_has_room_for_are_refused(setting, most, number):
    with pytest.raises(RecipeError, match=f"{setting} must be int <= {most}, got {number}"):
        overridden(read_recipe("images-la-quick"), [f"{setting}={number}"])
