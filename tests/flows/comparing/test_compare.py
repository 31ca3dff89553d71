import json
from dataclasses import replace

import numpy as np
import pytest

import longtail as lt
from longtail.flows.compare import compare
from longtail.flows.results import json_text
from longtail.report import save
from longtail.report.pages import compare_text as text
from longtail.report.pages.compare import write_tables


@pytest.fixture
def two_methods(folders):
    for seed in range(3):
        folders.train(f"la-{seed}", f"seed={seed}", skill=2.5)
        folders.train(f"ce-{seed}", f"seed={seed}", skill=0.5, recipe="cifar100-lt-ce-quick")
    return folders


def test_every_run_is_measured_as_evaluate_does(two_methods):
    result = compare([two_methods.place])
    (table,) = result.sets
    assert [(m.name, len(m.runs)) for m in table.methods] == [
        ("cifar100-lt-la-quick", 3),
        ("cifar100-lt-ce-quick", 3),
    ]
    for method in table.methods:
        for run in method.runs:
            expected = lt.metrics.evaluate(lt.Scores.load(run.source), target=lt.Prior.uniform(3))
            for metric in table.metrics:
                assert run.metrics[metric.key].value == pytest.approx(expected[metric.key])
    assert table.samples.name == "cifar100, imbalance 100, test"


def test_the_target_may_be_none_or_a_file(two_methods):
    place = two_methods.place
    run = str(place / "la-0" / "scores-test.safetensors")
    prior = place / "target.json"
    prior.write_text("[6, 3, 1]")
    for target, under in (("none", None), (str(prior), [6, 3, 1])):
        result = compare([place], target=target)
        expected = lt.metrics.evaluate(lt.Scores.load(run), target=under)
        found = next(r for m in result.sets[0].methods for r in m.runs if r.source == run)
        assert found.metrics["nll"].value == pytest.approx(expected["nll"])
    assert result.sets[0].by.key == "accuracy_under_target"
    assert result.target == str(prior)
    assert "target.json" in text.target(result)


def test_in_python_a_path_may_be_text_and_the_target_a_prior_or_none(two_methods):
    place = str(two_methods.place)
    counted = compare(place, target=[6, 3, 1])
    assert (counted.target, counted.sets[0].by.key) == ("given", "accuracy_under_target")
    (two_methods.place / "t.json").write_text("[6, 3, 1]")
    stored = compare(place, target=two_methods.place / "t.json")
    for one, other in zip(counted.sets[0].methods, stored.sets[0].methods, strict=True):
        assert one.estimates == other.estimates
    assert compare([place], target=None).target == "none"


def test_a_target_may_leave_classes_out_as_that_of_fix_may(two_methods):
    prior = two_methods.place / "target.json"
    prior.write_text("[0, 3, 1]")
    result = compare([two_methods.place], target=str(prior))
    target = lt.Prior.of([0, 3, 1], zeros="keep")
    for method in result.sets[0].methods:
        for run in method.runs:
            moved = lt.Scores.load(run.source).under(target)
            expected = lt.metrics.accuracy_under(moved, target=target)
            assert run.metrics["accuracy_under_target"].value == pytest.approx(expected)
            assert np.isfinite(run.metrics["nll"].value)
    shown = text.headline(result.sets[0])
    assert "la" in shown
    assert "nan" not in shown
    (two_methods.place / "out").mkdir()
    write_tables(result, two_methods.place / "out")
    result.write(two_methods.place / "out")
    assert "nan" not in (two_methods.place / "out/table.md").read_text()


@pytest.mark.parametrize(
    ("weights", "message"),
    [("[1, 2]", "has 2 weights"), ("[0, 0, 0]", "not all zero"), ("{", "must be a JSON")],
)
def test_a_wrong_target_is_told(two_methods, weights, message):
    prior = two_methods.place / "target.json"
    prior.write_text(weights)
    with pytest.raises(ValueError, match=message):
        compare([two_methods.place], target=str(prior))


def test_a_target_that_is_not_there_and_a_metric_that_is_none_are_told(two_methods):
    with pytest.raises(FileNotFoundError, match="there is no file sideways"):
        compare([two_methods.place], target="sideways")
    with pytest.raises(
        ValueError, match="accuracy_under_target, balanced_accuracy, accuracy, many"
    ):
        compare([two_methods.place], by="top1")


def test_other_labels_classes_or_counts_make_a_table_of_their_own(folders):
    folders.train("a")
    folders.train("b", recipe="cifar100-lt-ce-quick")
    shuffled = np.random.default_rng(1).permutation(np.arange(90) % 3)
    folders.train("c", "seed=1", labels=shuffled)
    folders.train("d", "data.imbalance_ratio=10", counts=[300, 90, 30], carried=[300, 90, 30])
    folders.train("e", "seed=2", classes=("x", "y", "z"))
    folders.train("f", "seed=3", classes=("x", "z", "y"))
    result = compare([folders.place])
    shapes = [[len(m.runs) for m in table.methods] for table in result.sets]
    assert sorted(map(sorted, shapes)) == [[1], [1], [1], [1, 2]]
    assert len({table.samples.name for table in result.sets}) == 4
    assert any("a table for each" in note for note in text.notes(result))


def test_scores_without_counts_join_those_that_have_them(folders):
    folders.train("a")
    folders.scores(counts=None, carried=None).save(folders.place / "other.safetensors")
    result = compare([folders.place])
    (table,) = result.sets
    assert {"many", "medium", "few"} <= {metric.key for metric in table.metrics}
    assert any("scores of other carry" in note for note in text.notes(result))


def test_samples_are_paired_by_id_and_never_by_place(folders):
    ids, order = np.arange(90), np.random.default_rng(0).permutation(90)
    scores = folders.scores(ids=ids)
    unnamed, other = replace(scores, ids=None), folders.scores(ids=ids)
    for name, each in {
        "a": unnamed,
        "b": scores,
        "c": other,
        "d": other.take(order),
        "e": replace(other, ids=ids + 1),
    }.items():
        each.save(folders.place / f"{name}.safetensors")
    table, alone = compare([folders.place], target={0: 1, 1: 1, 2: 1}).sets
    assert [method.name for method in alone.methods] == ["e"]
    losses = {method.name: method.runs[0].metrics["nll"].value for method in table.methods}
    assert losses["a"] == losses["b"]
    assert losses["c"] == pytest.approx(losses["d"], rel=1e-12)
    for copies in (["a", "b"], ["c", "d"]):
        paths = [folders.place / f"{name}.safetensors" for name in copies]
        (same,) = compare(paths).sets
        assert same.verdicts["balanced_accuracy"].others[0].high == 0


def test_nothing_to_compare_is_told():
    with pytest.raises(ValueError, match="nothing to compare"):
        compare([])


def test_a_target_may_be_by_name(folders):
    folders.train("a", classes=("x", "y", "z"))
    (table,) = compare(folders.place, target={"z": 3, "x": 1, "y": 2}).sets
    assert table.samples.target.is_close(lt.Prior.of([1, 2, 3]))


def test_scores_without_labels_are_refused(folders):
    place = folders.place / "a.safetensors"
    lt.Scores(np.zeros((2, 3))).save(place)
    with pytest.raises(ValueError, match="has no labels"):
        compare([place])


def test_the_same_seed_twice_is_two_runs_and_the_same_scores_are_one(folders):
    folders.train("a")
    folders.train("b")
    third = folders.train("c")
    source = folders.place / "a" / "scores-test.safetensors"
    (third / "scores-test.safetensors").write_bytes(source.read_bytes())
    result = compare([folders.place])
    (method,) = result.sets[0].methods
    assert len(method.runs) == 2
    assert len({run.seed for run in method.runs}) == 2
    assert any("counted once" in note for note in text.notes(result))


def test_probs_of_an_npz_are_compared_as_they_are(folders):
    scores = folders.scores()
    place = folders.place / "model.npz"
    np.savez(place, probs=scores.probs(), labels=scores.labels)
    result = compare([place])
    found = result.sets[0].methods[0]
    asis = lt.metrics.evaluate(scores)
    assert found.name == "model"
    assert found.estimates["balanced_accuracy"].value == pytest.approx(asis["balanced_accuracy"])
    assert not found.runs[0].moved


def refused(name):
    raise AssertionError(f"{name} is no JSON")


def test_the_files_are_written(two_methods, tmp_path):
    ruled_out = np.full((90, 3), -np.inf)
    ruled_out[:, 0] = 0.0
    labels = np.arange(90) % 3
    lt.Scores(ruled_out, labels, counts=[300, 60, 8]).save(two_methods.place / "never.safetensors")
    result = compare([two_methods.place])
    output = tmp_path / "folder"
    output.mkdir()
    named = replace(result, command="longtail compare runs")
    named.write(output)
    names = {save(named, output).name, "comparison.json", *write_tables(named, output)}
    assert {path.name for path in output.glob("[!.]*")} == names
    assert "∞" in (output / "table.md").read_text()
    assert r"\infty" in (output / "table.tex").read_text()
    assert "cifar100-lt-la-quick" in (output / "report.html").read_text()
    stored = json.loads((output / "comparison.json").read_text(), parse_constant=refused)
    assert stored["command"] == "longtail compare runs"
    assert stored.items() >= json.loads(json_text(result.as_json())).items()
    said = stored["sets"][0]
    methods = said["methods"]
    assert methods["never"]["metrics"]["as trained"]["nll"]["value"] is None
    assert (
        methods["cifar100-lt-la-quick"]["metrics"]["under the target"]["balanced_accuracy"]["over"]
        == "seeds"
    )
    assert said["noise"]["balanced_accuracy"]["best"] == "cifar100-lt-la-quick"


def test_scores_that_are_no_file_have_no_name_to_compare_by():
    scores = lt.Scores(2 * np.eye(3), [0, 1, 2])
    for given in (scores, [scores, scores]):
        with pytest.raises(TypeError, match=r"scores\.save"):
            lt.compare(given)
