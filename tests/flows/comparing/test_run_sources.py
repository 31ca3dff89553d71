import json
import os
from pathlib import Path

import numpy as np
import pytest

from longtail.flows.compare import method_names
from longtail.flows.run_sources import Note, find_sources


def found(*paths, labels=()):
    sources, _ = find_sources(paths, labels)
    return dict(zip([s.scores.parent.name for s in sources], method_names(sources), strict=True))


def test_runs_that_differ_only_in_their_seed_are_one_method(folders):
    for seed in range(3):
        folders.train(f"la-{seed}", f"seed={seed}")
    folders.train("moved", "seed=7", "data.path=/elsewhere", "num_workers=3", "target.tau=0.5")
    sources, passed = find_sources([folders.place])
    assert set(method_names(sources)) == {"cifar100-lt-la-quick"}
    assert [source.seed for source in sources] == ["0", "1", "2", "7"]
    assert passed == []


def test_the_settings_that_differ_are_in_the_name(folders):
    folders.train("a")
    folders.train("b", "loss.tau=1.5")
    folders.train("c", "loss.tau=1.5", "optimizer.lr=0.05", "augment=[flip]")
    names = found(folders.place)
    assert names["a"] == "cifar100-lt-la-quick tau=1 augment=[crop, flip] lr=0.2"
    assert names["b"] == "cifar100-lt-la-quick tau=1.5 augment=[crop, flip] lr=0.2"
    assert names["c"] == "cifar100-lt-la-quick tau=1.5 augment=[flip] lr=0.05"


def test_a_part_that_differs_is_named_and_a_number_of_one_recipe_only_is_its_own(folders):
    folders.train("a")
    folders.train("b", "loss=cross_entropy")
    names = found(folders.place)
    assert names["a"] == "cifar100-lt-la-quick loss=logit_adjusted tau=1"
    assert names["b"] == "cifar100-lt-la-quick loss=cross_entropy"


def test_other_recipes_need_no_settings(folders):
    folders.train("a")
    folders.train("b", recipe="cifar100-lt-ce-quick")
    names = found(folders.place)
    assert names == {"a": "cifar100-lt-la-quick", "b": "cifar100-lt-ce-quick"}


def test_a_method_is_named_by_what_was_run_and_not_by_the_command_line(folders):
    """What stands in argv may be the name of a recipe, of a file or of a folder by chance."""
    run = folders.train("a")
    said = {"recipe": "own", "command": "longtail train cifar100-lt-ce-quick other.yaml 'quote"}
    (run / "versions.json").write_text(json.dumps(said))
    assert found(run) == {"a": "own"}
    (run / "versions.json").write_text(json.dumps({"command": said["command"]}))
    assert found(run) == {"a": "logit_adjusted"}
    (run / "versions.json").unlink()
    assert found(run) == {"a": "logit_adjusted"}


def test_runs_with_different_targets_are_never_seeds_of_one_method(folders):
    weights = [0.6, 0.3, 0.1]
    folders.train("a", "seed=0")
    folders.train("b", "seed=1", "target.prior=train")
    folders.fit("c", seed=0)
    folders.fit("d", seed=1, target=weights)
    folders.fix("e-seed0")
    folders.fix("e-seed1", target="estimate")
    folders.fix("e-seed2", target=weights)
    assert found(folders.place) == {
        "a": "cifar100-lt-la-quick target=uniform",
        "b": "cifar100-lt-la-quick target=train",
        "c": "fit adjusted target=uniform",
        "d": "fit adjusted target=[0.6, 0.3, 0.1]",
        "e-seed0": "e target=uniform",
        "e-seed1": "e target=estimate",
        "e-seed2": "e target=[0.6, 0.3, 0.1]",
    }
    names = found(labels=[("LA", folders.place / name) for name in ("a", "b")])
    assert names == {"a": "LA target=uniform", "b": "LA target=train"}


def test_targets_that_are_written_alike_are_two_methods_all_the_same(folders):
    start = np.full(40, 1 / 40)
    tilted = start.copy()
    tilted[-2:] += [0.01, -0.01]
    for seed, target in enumerate((start, tilted, start)):
        folders.fix(f"e-seed{seed}", target=target.tolist())
    names = found(folders.place)
    assert names["e-seed0"] == names["e-seed2"]
    assert names["e-seed1"] == f"{names['e-seed0']} (2)"


def test_what_a_fix_was_asked_for_tells_its_runs_apart(folders):
    folders.fix("e-seed0")
    folders.fix("e-seed1")
    assert set(found(folders.place).values()) == {"e"}
    folders.fix("e-seed2", tau=1.0)
    assert set(found(folders.place).values()) == {"e tau=auto", "e tau=1"}


def test_the_seed_of_the_data_is_a_seed_too(folders):
    folders.train("a", "data.seed=1")
    folders.train("b")
    sources, _ = find_sources([folders.place])
    assert len(set(method_names(sources))) == 1
    assert [source.seed for source in sources] == ["0, data 1", "0"]


def test_second_stage_heads_are_methods_of_their_own(folders):
    run = folders.train("a", "second_stage.heads=[crt]")
    folders.scores().save(run / "scores-test-crt.safetensors")
    folders.scores().save(run / "scores-validation.safetensors")
    folders.train("b", "seed=1")
    sources, _ = find_sources([folders.place])
    assert method_names(sources) == [
        "cifar100-lt-la-quick + crt",
        "cifar100-lt-la-quick",
        "cifar100-lt-la-quick",
    ]


def test_a_label_is_the_name_of_all_runs_in_its_path(folders):
    folders.train("runs/a", "loss.tau=1.5")
    folders.train("runs/b", "seed=1")
    place = folders.place / "runs"
    sources, _ = find_sources([place], [("LA", place)])
    assert method_names(sources) == ["LA", "LA"]


def test_fit_and_fix_folders_are_known(folders):
    folders.fit("f", seed=3)
    folders.fit("g", part="validation")
    folders.fix("ce-fixed")
    folders.fix("own", measured="cross-fitted")
    sources, _ = find_sources([folders.place])
    by_folder = {source.scores.parent.name: source for source in sources}
    assert (by_folder["f"].base, by_folder["f"].seed) == ("fit adjusted", "3")
    assert by_folder["f"].note is None
    assert by_folder["g"].note == Note("no_test_part", str(folders.place / "g"))
    assert by_folder["ce-fixed"].base == "ce-fixed"
    assert by_folder["ce-fixed"].note is None
    assert by_folder["own"].note == Note("fitted_here", str(folders.place / "own"))


@pytest.mark.parametrize(
    ("file", "base", "seed"),
    [
        ("la-seed3.safetensors", "la", "3"),
        ("la_seed=3.safetensors", "la", "3"),
        ("la/seed0.safetensors", "la", "0"),
        ("la/seed0/scores.safetensors", "la", "0"),
        ("ce.safetensors", "ce", None),
    ],
)
def test_files_tell_their_method_and_seed_by_their_names(folders, file, base, seed):
    place = folders.place / file
    place.parent.mkdir(parents=True, exist_ok=True)
    folders.scores().save(place)
    (source,), _ = find_sources([place])
    assert (source.base, source.seed) == (base, str(place) if seed is None else seed)


def test_an_npz_says_by_its_array_what_it_holds(folders):
    labels = np.array([0, 1])
    place = folders.place / "a.npz"
    np.savez(place, probs=np.full((2, 3), 1 / 3), labels=labels)
    assert find_sources([place])[0][0].kind == "probs"
    np.savez(place, logits=np.zeros((2, 3)), labels=labels)
    assert find_sources([place])[0][0].kind == "logits"
    np.savez(place, outputs=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="logits or probs"):
        find_sources([place])
    place.write_text("no zip")
    with pytest.raises(ValueError, match=r"cannot be read.*npz"):
        find_sources([place])


def test_a_path_given_twice_counts_once(folders):
    run = folders.train("a")
    sources, _ = find_sources([run, folders.place, run / "scores-test.safetensors"])
    assert len(sources) == 1


def test_what_is_no_run_is_said(folders):
    run = folders.train("runs/a")
    broken = folders.train("runs/b")
    (broken / "scores-test.safetensors").unlink()
    (folders.place / "runs" / "other.safetensors").write_bytes(b"nothing")
    sources, passed = find_sources([folders.place / "runs"])
    assert [source.scores.parent for source in sources] == [run]
    assert [note.about for note in passed] == ["unfinished", "unreadable"]
    with pytest.raises(ValueError, match="it has not finished"):
        find_sources([broken])
    with pytest.raises(FileNotFoundError, match="there is no"):
        find_sources([folders.place / "nothing"])
    empty = folders.place / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match="holds no scores to compare"):
        find_sources([empty])
    text = folders.place / "a.csv"
    text.write_text("1,2")
    with pytest.raises(ValueError, match="file of scores"):
        find_sources([text])
    fitted = folders.fit("fit")
    (fitted / "metrics.json").write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        find_sources([fitted])
    (run / "versions.json").write_text("{")  # it has no more than a name to give
    assert find_sources([run])[0][0].base == "logit_adjusted"


def test_files_that_are_not_in_place_yet_are_no_run(folders):
    folders.fit("done")
    unfinished = folders.fit("unfinished")
    aside = unfinished / ".longtail" / "writing-x"
    aside.mkdir(parents=True)
    (unfinished / "test.safetensors").rename(aside / "test.safetensors")
    (unfinished / "metrics.json").unlink()
    sources, passed = find_sources([folders.place])
    assert [source.scores.parent.name for source in sources] == ["done"]
    assert passed == []


def test_a_run_that_was_killed_while_its_files_were_put_in_place_is_finished_or_passed_over(
    folders,
):
    run = folders.fit("a", best="old")
    placing = run / ".longtail" / "placing"
    placing.mkdir(parents=True)
    folders.fit("b", best="new")
    files = ["metrics.json", "test.safetensors"]
    said = {"kind": "fit", "files": files, "replaces": ["test.safetensors"]}
    (placing / "generation.json").write_text(json.dumps(said))
    for name in files:
        (folders.place / "b" / name).rename(placing / name)
    lock = run / ".longtail" / "lock"
    lock.mkdir()  # as if it could not be locked
    with pytest.raises(ValueError, match="has not finished"):
        find_sources([run])
    assert find_sources([folders.fit("c").parent])[1] == [Note("unfinished", str(run))]
    lock.rmdir()
    sources, passed = find_sources([run])
    assert [source.base for source in sources] == ["fit new"]
    assert passed == []


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("fix", {"asked": [1]}),
        ("fix", {"asked": "uniform"}),
        ("fix", {"asked": None}),
        ("fix", {"asked": {"target": [[[[1]]]]}}),
        ("fix", {"steps": 3}),
        ("fix", {"measured": []}),
        ("fit", {"best": {"a": 1}}),
        ("fit", {"seed": [1]}),
        ("fit", {"target": 0.5}),
        ("fit", {"target": [[[[1]]]]}),
        ("fit", {"criterion": None}),
        ("fit", {"methods": []}),
    ],
)
def test_results_of_another_type_than_a_run_writes_are_damage_that_is_named(folders, kind, changed):
    place = getattr(folders, kind)("a") / "metrics.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | changed))
    with pytest.raises(ValueError, match=r"a.metrics\.json is damaged"):
        find_sources([folders.place])


def test_results_of_other_programs_are_no_damage(folders):
    folders.fit("a")
    (folders.place / "other").mkdir()
    (folders.place / "other" / "metrics.json").write_text('{"seed": "a", "target": 3, "steps": 9}')
    assert found(folders.place) == {"a": "fit adjusted"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_pipes_in_a_run_folder_are_not_read(folders, monkeypatch):
    run = folders.train("a")
    (run / "versions.json").unlink()
    os.mkfifo(run / "versions.json")
    os.mkfifo(run / "scores-test-crt.safetensors")
    read = Path.read_text

    def reads(place, **given):
        assert place.is_file(), "it would wait for ever"
        return read(place, **given)

    monkeypatch.setattr(Path, "read_text", reads)
    sources, _ = find_sources([run])
    assert [source.scores.name for source in sources] == ["scores-test.safetensors"]


@pytest.mark.parametrize("name", [3, ["a"], {"a": 1}, None])
def test_a_name_that_is_no_text_is_no_name(folders, name):
    run = folders.train("a")
    (run / "versions.json").write_text(json.dumps({"recipe": name}))
    assert found(run) == {"a": "logit_adjusted"}
