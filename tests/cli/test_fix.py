"""`longtail fix`: a newcomer's files in, adjusted scores and a report out; what is refused."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from longtail import Prior, Scores
from longtail.cli import app, main

COUNTS = [700, 200, 70, 30]
PRIOR = Prior.of(COUNTS)
NAMES = ["cat", "fox", "[red]", "<b>lynx</b>"]


def logits_of(labels, seed):
    rng = np.random.default_rng(seed)
    means = 2.0 * np.eye(4)
    return (means[labels] + rng.normal(size=(len(labels), 4))) @ means.T + PRIOR.log


@pytest.fixture
def folder(tmp_path):
    labels = np.random.default_rng(0).choice(4, 600, p=PRIOR.probs)
    np.savez(tmp_path / "val.npz", logits=logits_of(labels, 1), labels=labels)
    balanced = np.arange(400) % 4
    np.savez(tmp_path / "test.npz", logits=logits_of(balanced, 2), labels=balanced)
    np.save(tmp_path / "unlabelled.npy", logits_of(balanced, 2))
    np.save(tmp_path / "probs.npy", Scores(logits_of(balanced, 2)).probs())
    (tmp_path / "counts.json").write_text(json.dumps(COUNTS))
    (tmp_path / "names.txt").write_text("\n".join(NAMES) + "\n")
    return tmp_path


def fix(folder, *arguments, counts=True):
    given = ["fix", *map(str, arguments), "-o", str(folder / "out")]
    given += ["--counts", str(folder / "counts.json")] if counts else []
    done = CliRunner().invoke(app, given)
    return done, " ".join(done.output.split())


def test_a_fix_writes_scores_adjuster_metrics_and_report(folder):
    done, printed = fix(
        folder,
        folder / "val.npz",
        "--kind",
        "logits",
        "--apply",
        folder / "test.npz",
        "--classes",
        folder / "names.txt",
    )
    assert done.exit_code == 0, done.output
    assert "Balanced accuracy went from" in printed
    out = folder / "out"
    fixed = Scores.load(out / "scores.safetensors")
    assert fixed.carried.is_close(Prior.uniform(4))
    assert fixed.classes == tuple(NAMES)
    assert len(fixed) == 400
    metrics = json.loads((out / "metrics.json").read_text())
    accuracy = metrics["metrics"]["balanced_accuracy"]
    assert accuracy["after"]["value"] > accuracy["before"]["value"]
    assert accuracy["after"]["low"] < accuracy["after"]["value"] < accuracy["after"]["high"]
    np.testing.assert_allclose(accuracy["after"]["value"], (fixed.predict() == fixed.labels).mean())
    page = (out / "report.html").read_text()
    assert "<b>lynx" not in page
    assert "&lt;b&gt;lynx" in page


def test_an_adjuster_is_applied_again_by_with(folder):
    fix(folder, folder / "val.npz", "--kind", "logits", "--apply", folder / "test.npz")
    first = Scores.load(folder / "out/scores.safetensors")
    (folder / "adjuster.json").write_bytes((folder / "out/adjuster.json").read_bytes())
    done, _ = fix(
        folder, folder / "test.npz", "--kind", "logits", "--with", folder / "adjuster.json"
    )
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(Scores.load(folder / "out/scores.safetensors").logits, first.logits)


def test_probabilities_give_what_the_logits_behind_them_give(folder):
    for name in ("val", "test"):
        held = np.load(folder / f"{name}.npz")
        scores = Scores(held["logits"])
        np.savez(folder / f"{name}_probs.npz", probs=scores.probs(), labels=held["labels"])
    outputs = []
    for kind, end in (("logits", ""), ("probs", "_probs")):
        done, _ = fix(
            folder, folder / f"val{end}.npz", "--kind", kind, "--apply", folder / f"test{end}.npz"
        )
        assert done.exit_code == 0, done.output
        outputs.append(Scores.load(folder / "out/scores.safetensors").probs())
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-6)


def test_an_unknown_target_is_estimated_from_unlabelled_scores(folder):
    done, _ = fix(
        folder,
        folder / "val.npz",
        "--kind",
        "logits",
        "--apply",
        folder / "unlabelled.npy",
        "--target",
        "estimate",
        "--json",
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    np.testing.assert_allclose(found["carried_after"], 0.25, atol=0.1)
    assert (np.array(found["estimated"]["low"]) < found["carried_after"]).all()


def test_unlabelled_scores_that_follow_the_target_are_matched_and_the_fix_is_kept(folder):
    arguments = (folder / "val.npz", "--kind", "logits", "--apply", folder / "test.npz")
    done, printed = fix(folder, *arguments, "--unlabelled", folder / "unlabelled.npy")
    assert done.exit_code == 0, done.output
    assert "which unlabelled samples follow" in printed
    metrics = json.loads((folder / "out/metrics.json").read_text())
    assert metrics["steps"] == ["Temperature", "MarginalMatching"]
    assert metrics["asked"]["unlabelled"].endswith("unlabelled.npy")
    first = Scores.load(folder / "out/scores.safetensors")
    (folder / "adjuster.json").write_bytes((folder / "out/adjuster.json").read_bytes())
    fix(folder, folder / "test.npz", "--kind", "logits", "--with", folder / "adjuster.json")
    np.testing.assert_allclose(Scores.load(folder / "out/scores.safetensors").logits, first.logits)


def test_a_target_from_a_file_by_class_name(folder):
    target = dict(zip(reversed(NAMES), [4, 3, 2, 1], strict=True))
    (folder / "target.json").write_text(json.dumps(target))
    done, _ = fix(
        folder,
        folder / "val.npz",
        "--kind",
        "logits",
        "--classes",
        folder / "names.txt",
        "--target",
        folder / "target.json",
        "--tau",
        1,
        "--calibrate",
        "none",
    )
    assert done.exit_code == 0, done.output
    fixed = Scores.load(folder / "out/scores.safetensors")
    np.testing.assert_allclose(np.asarray(fixed.carried), [0.1, 0.2, 0.3, 0.4])


def test_files_that_say_what_they_hold_need_no_words(folder):
    held = np.load(folder / "val.npz")
    Scores(held["logits"], held["labels"], carried=COUNTS, counts=COUNTS).save(
        folder / "val.safetensors"
    )
    done, printed = fix(folder, folder / "val.safetensors", counts=False)
    assert done.exit_code == 0, done.output
    assert "each fifth fixed by what was fitted on the others" in printed


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["val.npz"], 2, "--kind logits or --kind probs; it is not guessed"),
        (["none.npz", "--kind", "logits"], 2, "none.npz"),
        (["val.npz", "--kind", "probs"], 1, "say --kind logits"),
        (["probs.npy", "--kind", "logits"], 2, "but holds probabilities"),
        (["probs.npy", "--kind", "logits"], 2, "say --kind probs"),
        (["val.npz", "--kind", "logits", "--apply", "probs.npy"], 2, "say --kind probs"),
        (["val.npz", "--kind", "logits", "--target", "estimate"], 1, "--apply"),
        (["val.npz", "--kind", "logits", "--tau", "much"], 2, "--tau is a number or auto"),
        (["val.npz", "--kind", "logits", "--target", "nowhere.json"], 2, "nowhere.json"),
        (["val.npz", "--kind", "logits", "--tau", "nan"], 2, "--tau is a number or auto"),
        (["unlabelled.npy", "--kind", "logits"], 1, "no labels"),
        ([".", "--kind", "logits"], 2, "is a directory"),
        (
            ["val.npz", "--kind", "logits", "--with", "counts.json", "--apply", "val.npz"],
            2,
            "leave --apply out",
        ),
        (["test.npz", "--kind", "logits", "--with", "counts.json"], 1, "no adjuster file"),
    ],
)
def test_wrong_use_gives_one_sentence_and_an_exit_code(
    folder, arguments, code, sentence, monkeypatch, capsys
):
    monkeypatch.chdir(folder)
    given = ["longtail", "fix", *arguments, "--counts", "counts.json", "-o", "out"]
    monkeypatch.setattr("sys.argv", given)
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == code
    assert not (folder / "out").exists() or not list((folder / "out").iterdir())
    assert sentence in " ".join(capsys.readouterr().err.split())


def write_table(folder, first=("image", *"abcd", "label"), own="{}.png"):
    """A table as people keep them: with the name of the image, which is no score."""
    with np.load(folder / "val.npz") as held:
        logits, labels = held["logits"], held["labels"]
    rows = [
        f"{own.format(row)},{','.join(map(str, scores))},{'abcd'[label]}"
        for row, (scores, label) in enumerate(zip(logits, labels, strict=True))
    ]
    (folder / "val.csv").write_text("\n".join([",".join(first), *rows]) + "\n")
    return folder / "val.csv"


def test_columns_that_are_no_scores_can_be_skipped(folder):
    table = write_table(folder)
    done, _ = fix(folder, table, "--kind", "logits", "--skip", "image")
    assert done.exit_code == 0, done.output
    by_name = Scores.load(folder / "out/scores.safetensors")
    assert by_name.classes == ("a", "b", "c", "d")
    done, _ = fix(folder, table, "--kind", "logits", "--skip", "0")
    np.testing.assert_array_equal(
        Scores.load(folder / "out/scores.safetensors").logits, by_name.logits
    )


def test_a_column_that_is_no_class_is_told_by_its_name(folder):
    done, printed = fix(folder, write_table(folder), "--kind", "logits")
    assert done.exit_code == 1
    assert "'0.png' in row 0, column 'image'" in printed
    table = write_table(folder, own="1{}.5")  # a number, but no score
    done, printed = fix(folder, table, "--kind", "logits")
    assert done.exit_code == 1
    assert "lists 4 counts, but" in printed
    counts = dict(zip("abcd", COUNTS, strict=True))
    (folder / "counts.json").write_text(json.dumps(counts))
    done, printed = fix(folder, table, "--kind", "logits")
    assert done.exit_code == 2
    assert "has columns image, of which there are no training samples" in printed
    assert "--label-column" in printed
    assert "--zeros smooth" in printed
    assert "--skip" in printed


def test_the_array_and_the_first_line_can_be_told(folder):
    with np.load(folder / "val.npz") as held:
        np.savez(folder / "mine.npz", outputs=held["logits"], truth=held["labels"])
        numbers = held["logits"].tolist()
        np.save(folder / "labels.npy", held["labels"])
    said = ("--kind", "logits", "--array", "outputs", "--label-column", "truth")
    done, _ = fix(folder, folder / "mine.npz", *said)
    assert done.exit_code == 0, done.output
    lines = ["0,1,2,3", *(",".join(map(str, row)) for row in numbers)]
    (folder / "frame.csv").write_text("\n".join(lines) + "\n")
    told = ("--kind", "logits", "--labels", folder / "labels.npy")
    done, printed = fix(folder, folder / "frame.csv", *told)
    assert done.exit_code == 1
    assert "names of columns or scores" in printed
    done, _ = fix(folder, folder / "frame.csv", "--header", *told)
    assert done.exit_code == 0, done.output


def test_scores_to_adjust_may_lack_the_labels_that_the_held_out_ones_have(folder):
    with np.load(folder / "val.npz") as held:
        np.savez(folder / "mine.npz", logits=held["logits"], truth=held["labels"])
        np.savez(folder / "new.npz", logits=held["logits"])
        np.savez(folder / "bad.npz", logits=held["logits"], truth=held["labels"] + 1)
        lines = ["a,b,c,d", *(",".join(map(str, row)) for row in held["logits"].tolist())]
    (folder / "new.csv").write_text("\n".join(lines) + "\n")
    said = (folder / "mine.npz", "--kind", "logits", "--label-column", "truth", "--apply")
    for name in ("new.npz", "new.csv"):
        done, _ = fix(folder, *said, folder / name)
        assert done.exit_code == 0, done.output
        assert Scores.load(folder / "out/scores.safetensors").labels is None
    done, printed = fix(folder, *said, folder / "bad.npz")  # labels that are there must be right
    assert done.exit_code == 1
    assert "bad.npz" in printed


def test_zero_counts_are_smoothed_if_asked_for(folder):
    (folder / "counts.json").write_text(json.dumps([700, 200, 100, 0]))
    done, printed = fix(folder, folder / "val.npz", "--kind", "logits")
    assert done.exit_code == 2
    assert "has columns 3, of which" in printed
    done, _ = fix(folder, folder / "val.npz", "--kind", "logits", "--zeros", "smooth")
    assert done.exit_code == 0, done.output


def frame_of(folder, index, header=("a", "b", "c", "d", "label"), own=str):
    """A data frame as pandas writes it, with its index first."""
    with np.load(folder / "val.npz") as held:
        logits, labels = held["logits"], held["labels"]
    rows = [
        ",".join([own(row), *map(str, scores), "abcd"[label]])
        for row, (scores, label) in enumerate(zip(logits, labels, strict=True))
    ]
    place = folder / "frame.csv"
    place.write_text("\n".join([",".join([index, *header]), *rows]) + "\n")
    (folder / "counts.json").write_text(json.dumps(dict(zip("abcd", COUNTS, strict=True))))
    return place


@pytest.mark.parametrize(
    ("index", "own"),
    [
        ("", str),
        ("Unnamed: 0", str),
        ("", lambda row: str(7 * row)),
        ("", lambda row: f"{row}.png"),
    ],
)
def test_the_index_of_a_data_frame_is_no_class(folder, index, own):
    with pytest.warns(UserWarning, match="index of a table"):
        done, _ = fix(folder, frame_of(folder, index, own=own), "--kind", "logits")
    assert done.exit_code == 0, done.output
    fixed = Scores.load(folder / "out/scores.safetensors")
    assert fixed.classes == ("a", "b", "c", "d")
    found = json.loads((folder / "out/metrics.json").read_text())
    assert found["metrics"]["balanced_accuracy"]["after"]["value"] > 0.6
    assert found["sanity"]["near_chance"] is False


def test_a_column_of_ids_is_no_class(folder):
    done, _ = fix(folder, frame_of(folder, "id", own=str), "--kind", "logits")
    assert done.exit_code == 0, done.output
    assert Scores.load(folder / "out/scores.safetensors").classes == ("a", "b", "c", "d")


def test_a_result_near_chance_is_said_in_the_first_line(folder):
    """Columns in another order than the labels."""
    with np.load(folder / "val.npz") as held:
        np.savez(folder / "wrong.npz", logits=np.roll(held["logits"], 1, 1), labels=held["labels"])
    done, printed = fix(folder, folder / "wrong.npz", "--kind", "logits", "--tau", "1")
    assert done.exit_code == 0, done.output
    assert printed.startswith("Do not trust these numbers: the result is near chance")
    assert "always answering the largest class" in printed
    page = (folder / "out/report.html").read_text()
    assert page.index("Do not trust these numbers") < page.index('class="summary"')
    sane = json.loads((folder / "out/metrics.json").read_text())["sanity"]
    assert sane["near_chance"]
    assert sane["below_largest_class"]
    done, printed = fix(folder, folder / "val.npz", "--kind", "logits")
    assert "trust these numbers" not in printed
    assert "trust these numbers" not in (folder / "out/report.html").read_text()


def test_class_names_of_the_held_out_scores_are_those_of_the_others_too(folder):
    for name in ("val", "test"):
        with np.load(folder / f"{name}.npz") as held:
            known = {"logits": held["logits"], "labels": np.array(NAMES)[held["labels"]]}
        known |= {"classes": np.array(NAMES)} if name == "val" else {}
        np.savez(folder / f"{name}_named.npz", **known)
    val, test = folder / "val_named.npz", folder / "test_named.npz"
    done, _ = fix(folder, val, "--kind", "logits", "--apply", test)
    assert done.exit_code == 0, done.output
    fixed = Scores.load(folder / "out/scores.safetensors")
    assert fixed.classes == tuple(NAMES)
    assert fixed.labels.tolist() == (np.arange(400) % 4).tolist()
    (folder / "adjuster.json").write_bytes((folder / "out/adjuster.json").read_bytes())
    done, _ = fix(folder, test, "--kind", "logits", "--with", folder / "adjuster.json")
    assert done.exit_code == 0, done.output


def test_exact_zeros_of_a_forest_are_floored_and_no_sample_is_left_out(folder):
    """Also those of the true class, which would be impossible for ever."""
    rng = np.random.default_rng(3)
    for name in ("val", "test"):
        with np.load(folder / f"{name}.npz") as held:
            probs, labels = Scores(held["logits"]).probs(), held["labels"]
        votes = np.array([rng.multinomial(10, row) for row in probs]) / 10
        assert (votes[np.arange(len(votes)), labels] == 0).any()
        np.savez(folder / f"{name}_votes.npz", probs=votes, labels=labels)
    for target in ("uniform", "estimate"):
        given = ("--kind", "probs", "--apply", folder / "test_votes.npz", "--target", target)
        with pytest.warns(UserWarning, match="probabilities of exactly zero"):
            done, _ = fix(folder, folder / "val_votes.npz", *given)
        assert done.exit_code == 0, done.output
        fixed = Scores.load(folder / "out/scores.safetensors")
        assert len(fixed) == 400
        assert np.isfinite(fixed.logits).all()
        assert np.isfinite(
            json.loads((folder / "out/metrics.json").read_text())["metrics"]["nll"]["after"][
                "value"
            ]
        )


def test_what_a_refusal_of_probabilities_says_works(folder):
    """Also where the array itself is called logits."""
    with np.load(folder / "val.npz") as held:
        probs = Scores(held["logits"]).probs()
        np.savez(folder / "mine.npz", logits=probs, labels=held["labels"])
    done, printed = fix(folder, folder / "mine.npz", "--kind", "logits")
    assert done.exit_code == 2
    assert "say --kind probs --array logits" in printed
    done, _ = fix(folder, folder / "mine.npz", "--kind", "probs", "--array", "logits")
    assert done.exit_code == 0, done.output


def test_a_table_with_semicolons_says_so_and_is_read_when_told(tmp_path):
    rows = ["a;b;label", *(f"{k % 2};{(k + 1) % 2 * 0.5};{'ab'[k % 3 > 0]}" for k in range(30))]
    (tmp_path / "val.csv").write_text("\n".join(rows))
    (tmp_path / "counts.json").write_text('{"a": 20, "b": 10}')
    said = ["fix", tmp_path / "val.csv", "--kind", "logits", "--counts", tmp_path / "counts.json"]
    arguments = [*map(str, said), "-o", str(tmp_path / "out")]
    refused = CliRunner().invoke(app, arguments)
    assert refused.exit_code == 1
    assert "with --delimiter" in refused.stderr
    assert CliRunner().invoke(app, [*arguments, "--delimiter", ";"]).exit_code == 0
    wrong = CliRunner().invoke(app, [*arguments, "--delimiter", "semicolon"])
    assert wrong.exit_code == 2
    assert "one character such as ;" in wrong.stderr


def test_too_few_samples_to_measure_on_are_counted_and_no_fold_is_spoken_of(tmp_path):
    np.savez(tmp_path / "val.npz", logits=np.eye(3)[[0, 1, 2]] - 0.4, labels=[0, 2, 1])
    (tmp_path / "counts.json").write_text("[9, 3, 1]")
    said = ["fix", tmp_path / "val.npz", "--kind", "logits", "--counts", tmp_path / "counts.json"]
    done = CliRunner().invoke(app, [*map(str, said), "-o", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "there are only 3 of them" in done.stderr
    assert "num_folds" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--target", "estimate", "--apply", "new.npz", "--tau", "0.1"], "--target estimate"),
        (["--target", "estimate", "--unlabelled", "new.npz"], "leave one of them out"),
        (["--unlabelled", "new.npz", "--tau", "0.1"], "--tau is not used with --unlabelled"),
        (["--unlabelled", "new.npz", "--criterion", "nll"], "--criterion is not used"),
        (["--with", "adjuster.json", "--unlabelled", "new.npz"], "--unlabelled is not used"),
        (["--target", "estimate", "--apply", "new.npz", "--criterion", "nll"], "--target estimate"),
        (["--features", "new.npz"], "--features is not used without --target estimate"),
        (
            ["--target", "estimate", "--apply", "new.npz", "--features", "new.npz"],
            "--features goes with --validation-features; give both",
        ),
        (
            ["--with", "adjuster.json", "--features", "new.npz"],
            "--features is not used with --with",
        ),
        (["--target", "source", "--tau", "0.5"], "--target source"),
        (["--tau", "0.5", "--criterion", "nll"], "--tau 0.5"),
        (["--apply-labels", "new.npz"], "--apply-labels is for --apply"),
        *(
            (["--with", "adjuster.json", *words], f"{words[0]} is not used with --with")
            for words in (
                ["--tau", "1"],
                ["--calibrate", "none"],
                ["--criterion", "nll"],
                ["--target", "source"],
                ["--carried", "uniform"],
                ["--seed", "1"],
            )
        ),
    ],
)
def test_an_option_that_would_be_ignored_is_wrong_usage(folder, arguments, sentence, monkeypatch):
    monkeypatch.chdir(folder)
    for name in ("new.npz", "adjuster.json"):
        (folder / name).write_bytes((folder / "val.npz").read_bytes())
    done, printed = fix(folder, folder / "val.npz", "--kind", "logits", *arguments)
    assert done.exit_code == 2
    assert sentence in printed


def test_a_target_whose_classes_have_no_samples_is_refused_in_a_sentence(folder):
    with np.load(folder / "test.npz") as held:
        kept = held["labels"] < 3
        np.savez(folder / "some.npz", logits=held["logits"][kept], labels=held["labels"][kept])
    (folder / "last.json").write_text("[0, 0, 0, 1]")
    given = ("--kind", "logits", "--apply", folder / "some.npz", "--target", folder / "last.json")
    done, printed = fix(folder, folder / "val.npz", *given)
    assert done.exit_code == 1
    assert "classes without samples hold all the weight" in printed
    assert "bug" not in printed


def test_metrics_json_says_how_tau_was_chosen(folder):
    done, _ = fix(folder, folder / "val.npz", "--kind", "logits")
    assert done.exit_code == 0, done.output
    found = json.loads((folder / "out/metrics.json").read_text())
    stored = json.loads((folder / "out/adjuster.json").read_text())
    assert found["choice"] == stored["adjusters"][-1]["choice"]
    assert found["tau"] == found["choice"]["tau"]


def test_what_was_applied_is_kept_beside_what_it_made(folder):
    done, _ = fix(folder, folder / "val.npz", "--kind", "logits")
    assert done.exit_code == 0, done.output
    (folder / "mine.json").write_bytes((folder / "out/adjuster.json").read_bytes())
    given = ["fix", folder / "test.npz", "--kind", "logits", "--with", folder / "mine.json"]
    done = CliRunner().invoke(app, [*map(str, given), "-o", str(folder / "again")])
    assert done.exit_code == 0, done.output
    kept = (folder / "again/adjuster.json").read_bytes()
    assert kept == (folder / "mine.json").read_bytes()


def test_classes_in_another_order_are_told_by_a_column(folder):
    for name, order in (("val", NAMES), ("test", NAMES[::-1])):
        with np.load(folder / f"{name}.npz") as held:
            known = {"logits": held["logits"], "labels": held["labels"]}
        np.savez(folder / f"{name}_named.npz", **known, classes=np.array(order))
    given = ("--kind", "logits", "--apply", folder / "test_named.npz")
    done, printed = fix(folder, folder / "val_named.npz", *given)
    assert done.exit_code == 1
    assert f"in another order: column 0 is {NAMES[-1]!r} there and {NAMES[0]!r} here" in printed


@pytest.mark.parametrize("of", ["object", "labels", "folder", "target"])
@pytest.mark.parametrize("names", [["1", "2", "0"], ["1", "2", "3"], ["0", "10", "2"]])
def test_counts_by_names_that_are_numbers_are_put_in_by_name(tmp_path, of, names):
    """As the labels and the target of the same run are."""
    rng, by_name = np.random.default_rng(0), dict(zip(names, [90, 9, 2], strict=True))
    rows = [[*rng.normal(size=3), names[at % 3]] for at in range(60)]
    lines = [",".join([*names, "label"]), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "scores.csv").write_text("\n".join(lines) + "\n")
    counts = tmp_path / "counts"
    match of:
        case "object" | "target":
            counts = tmp_path / "counts.json"
            counts.write_text(json.dumps(dict(sorted(by_name.items()))))
        case "labels":
            counts = tmp_path / "train.csv"
            labels = (name for name, count in by_name.items() for _ in range(count))
            counts.write_text("\n".join(["label", *labels]) + "\n")
        case "folder":
            for name, count in by_name.items():
                (counts / name).mkdir(parents=True)
                for at in range(count):
                    (counts / name / f"{at}.png").touch()
    options = ["--carried", "uniform", "--target"] if of == "target" else ["--counts"]
    done, _ = fix(
        tmp_path, tmp_path / "scores.csv", "--kind", "logits", *options, counts, counts=False
    )
    assert done.exit_code == 0, done.output
    metrics = json.loads((tmp_path / "out/metrics.json").read_text())
    prior = metrics["carried_after" if of == "target" else "carried"]
    np.testing.assert_allclose(prior, np.array([90, 9, 2]) / 101)


def test_counts_by_number_are_put_in_by_number_whatever_classes_are_called(tmp_path):
    """Those that can be nothing else: a list, and labels of an integer type."""
    labels = np.arange(60) % 3
    scores = Scores(np.random.default_rng(0).normal(size=(60, 3)), labels, classes=["1", "2", "0"])
    scores.save(tmp_path / "scores.safetensors")
    (tmp_path / "list.json").write_text("[90, 9, 1]")
    np.save(tmp_path / "train.npy", np.repeat([0, 1, 2], [90, 9, 1]))
    for name in ("list.json", "train.npy"):
        table = tmp_path / "scores.safetensors"
        done, _ = fix(tmp_path, table, "--counts", tmp_path / name, counts=False)
        assert done.exit_code == 0, done.output
        metrics = json.loads((tmp_path / "out/metrics.json").read_text())
        np.testing.assert_allclose(metrics["carried"], [0.9, 0.09, 0.01])


def test_ids_stay_with_their_rows(folder):
    with np.load(folder / "test.npz") as stored:
        arrays = dict(stored)
    ids = np.array([f"s{at}" for at in range(400)])
    np.savez(folder / "test.npz", **arrays, ids=ids)
    done, _ = fix(folder, folder / "val.npz", "--kind", "logits", "--apply", folder / "test.npz")
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(Scores.load(folder / "out/scores.safetensors").ids, ids)


def test_classes_without_a_sample_are_counted_on_the_terminal(folder):
    with np.load(folder / "test.npz") as held:
        kept = held["labels"] < 3
        np.savez(folder / "some.npz", logits=held["logits"][kept], labels=held["labels"][kept])
    given = ("--kind", "logits", "--apply", folder / "some.npz")
    done, printed = fix(folder, folder / "val.npz", *given)
    assert done.exit_code == 0, done.output
    assert "Classes without a sample there (1) count for nothing." in printed


def test_a_logit_that_nothing_can_be_fitted_to_is_no_bug_and_its_file_is_named(folder):
    labels = np.arange(60) % 3
    logits = np.random.default_rng(0).normal(size=(60, 3)) + 2 * np.eye(3)[labels]
    logits[5, 1] = 1e308
    np.savez(folder / "huge.npz", logits=logits, labels=labels)
    (folder / "counts.json").write_text("[300, 100, 30]")
    done, printed = fix(folder, folder / "huge.npz", "--kind", "logits")
    assert done.exit_code == 1
    assert "nothing can be fitted to" in printed
    assert "huge.npz" in printed
    assert "bug" not in printed


def test_costs_and_sets_are_applied_and_told(folder):
    (folder / "costs.csv").write_text("class,cost\ncat,1\nfox,1\n[red],3\n<b>lynx</b>,9\n")
    arguments = (folder / "val.npz", "--kind", "logits", "--classes", folder / "names.txt")
    more = ("--costs", folder / "costs.csv", "--abstain", "0.4", "--sets", "0.9")
    done, printed = fix(folder, *arguments, *more, "--apply", folder / "test.npz")
    assert done.exit_code == 0, done.output
    for words in ("after, what costs least in expectation", "macro-coverage", "decisions.csv"):
        assert words in printed
    out = folder / "out"
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["costs"]["decided"]["value"] < metrics["costs"]["after"]["value"]
    assert metrics["sets"]["asked"] == 0.9
    assert "&lt;b&gt;lynx" in (out / "report.html").read_text()
    assert "What mistakes cost" in (out / "report.html").read_text()
    (folder / "adjuster.json").write_bytes((out / "adjuster.json").read_bytes())
    again = (folder / "test.npz", "--kind", "logits", "--with", folder / "adjuster.json")
    done, _ = fix(folder, *again, "--costs", folder / "costs.csv", "--abstain", "0.4", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["costs"] == metrics["costs"]
    assert not (out / "sets.json").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--abstain", "1"), "--abstain goes with --costs"),
        (("--sets-mode", "class"), "--sets-mode goes with --sets"),
        (("--sets", "1.5"), "1.5 is not in the range"),
        (("--costs", "none.csv"), "does not exist"),
        (("--sets", "0.9", "--with", "counts.json"), "--sets is not used with --with"),
    ],
)
def test_costs_and_sets_that_make_no_sense_are_wrong_usage(folder, options, words, monkeypatch):
    monkeypatch.chdir(folder)
    done, printed = fix(folder, folder / "val.npz", "--kind", "logits", *options)
    assert done.exit_code == 2
    assert words in printed


def test_a_file_of_costs_of_other_classes_is_refused_by_name(folder):
    (folder / "costs.csv").write_text("class,cost\ncat,1\nfox,1\n")
    done, printed = fix(
        folder, folder / "val.npz", "--kind", "logits", "--costs", folder / "costs.csv"
    )
    assert done.exit_code == 1
    assert "costs.csv: it must name each of 4 classes once (0, 1, 2, 3)" in printed
