"""`longtail recipes`: the list, one of them as YAML that can be trained from, wrong names."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from longtail.cli import app
from longtail.flows.train.reading import recipe_from
from longtail.flows.train.yaml_text import read_yaml
from longtail.recipes.catalogue import RECIPES, read_recipe


def printed(*arguments):
    done = CliRunner().invoke(app, ["recipes", *arguments])
    return done.exit_code, done.output


def test_all_recipes_are_listed_with_what_they_need():
    code, output = printed()
    assert code == 0
    for name in RECIPES:
        assert f"  {name} " in output
    for words in ("Needs CIFAR-100:", "Needs images and ImageNet_LT_train.txt:", "LADE on CIFAR"):
        assert words in output


def test_the_list_as_json_has_names_lines_and_data():
    code, output = printed("--json")
    listed = json.loads(output)
    assert code == 0
    assert {entry["name"] for entry in listed} == set(RECIPES)
    assert listed[0].keys() == {"name", "about", "data"}
    assert next(e for e in listed if e["name"] == "cifar100-lt-lade")["data"] == "CIFAR-100"


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_recipe_is_printed_whole_and_can_be_read_again(option):
    code, output = printed("cifar100-lt-lade", *option)
    assert code == 0
    assert recipe_from(read_yaml(output)) == read_recipe("cifar100-lt-lade")


def test_a_printed_recipe_has_what_was_changed():
    _, output = printed("cifar100-lt-lade", "optimizer.lr=1e-3", "loss=elm")
    changed = recipe_from(read_yaml(output))
    assert changed.optimizer.lr == 0.001
    assert type(changed.loss).__name__ == "ELM"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["cifar100-lt-lad"], "did you mean cifar100-lt-lade"),
        (["cifar100-lt-lade", "lr=3"], "there is no key lr"),
        (["missing.yaml"], "there is no recipe file missing.yaml"),
    ],
)
def test_what_is_wrong_exits_with_2(arguments, sentence):
    code, output = printed(*arguments)
    assert code == 2
    assert sentence in output


def test_recipes_are_listed_and_refused_without_torch():
    code = (
        "import sys; from longtail.cli import app; "
        "app.main(['recipes', 'cifar100-lt-lade'], standalone_mode=False); "
        "app.main(['recipes'], standalone_mode=False)\n"
        "try:\n    app.main(['train', 'cifar100-lt-lade', 'epochs=x', '-o', 'r'])\n"
        "except SystemExit as done:\n"
        "    sys.exit(done.code != 2 or 'torch' in sys.modules or 'numpy' in sys.modules)\n"
        "sys.exit(3)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
