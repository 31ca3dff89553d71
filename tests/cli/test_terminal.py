"""Names from strangers on the terminal: what would command it is shown and never sent."""

import io
import json

import numpy as np
import pytest
from click.testing import CliRunner
from rich.table import Table
from rich.text import Text

from longtail import Scores
from longtail.cli import app, terminal
from longtail.cli.terminal import plain_console, print_json
from longtail.plain_text import plain_text

# Colours, the title of the window, the 8-bit escape, a turn of direction, a return, half a letter.
EVIL = "cat\x1b[31m\x1b]0;owned\x07\x9b2J\u202etac\u2066\r\udce9\x7f"
COMMANDS = ("\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\r", "\udce9", "\x7f")
NAMES = (EVIL.replace("\udce9", ""), "dog", "fox")


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def is_plain(text):
    return not any(command in text for command in COMMANDS)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Scores, features and counts of classes with such names, in files with such names."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    labels = np.arange(90) % 3
    logits = random.normal(size=(90, 3))
    logits[np.arange(90), labels] += 1
    scores = Scores(logits, labels, carried=[60, 9, 3], counts=[60, 9, 3], classes=NAMES)
    scores.save("a\x1b[31m.safetensors")
    Scores(logits * 2, labels, carried=[60, 9, 3], classes=NAMES).save("b\u202e.safetensors")
    features = (random.normal(size=(90, 4)) + labels[:, None]).astype(np.float32)
    np.savez("f\x1b[31m.npz", features=features, labels=labels, classes=NAMES)
    (tmp_path / "c\x9b.json").write_text(json.dumps(dict(zip(NAMES, [60, 9, 3], strict=True))))
    (tmp_path / "broken\x1b[31m.npz").write_bytes(b"no")
    (tmp_path / "recipe\x1b[31m.yaml").write_text('about: "\\x1b[31m \\u202e"\ndata: npz\n')
    return tmp_path


DONE = {
    "audit": ("audit", "c\x9b.json", "-o", "o\x1b[31m"),
    "fix": ("fix", "a\x1b[31m.safetensors", "-o", "o\x1b[31m"),
    "report": ("report", "a\x1b[31m.safetensors", "-o", "o\x1b[31m"),
    "compare": ("compare", "a\x1b[31m.safetensors", "b\u202e.safetensors", "-o", "o\x1b[31m"),
    "fit": ("fit", "f\x1b[31m.npz", "--methods", "linear", "-o", "o\x1b[31m"),
    "recipes": ("recipes", "recipe\x1b[31m.yaml"),
}


TEXTS = (".html", ".json", ".md", ".tex", ".csv", ".yaml")


@pytest.mark.parametrize("words", DONE.values(), ids=DONE)
def test_results_show_names_and_never_what_they_command(place, words):
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert is_plain(done.output)
    if "-o" in words:
        assert "o\\x1b[31m" in done.output
        texts = [path for path in (place / "o\x1b[31m").iterdir() if path.suffix in TEXTS]
        assert texts
        for path in texts:
            assert is_plain(path.read_bytes().decode()), path
    as_json = run(*words, "--json")
    assert is_plain(as_json.output)
    assert json.loads(as_json.stdout)


FAILED = {
    "audit": ("audit", "broken\x1b[31m.npz"),
    "fix": ("fix", "broken\x1b[31m.npz", "--kind", "logits", "-o", "o"),
    "report": ("report", "broken\x1b[31m.npz", "--kind", "logits", "-o", "o"),
    "compare": ("compare", "broken\x1b[31m.npz", "a\x1b[31m.safetensors", "-o", "o"),
    "fit": ("fit", "broken\x1b[31m.npz", "-o", "o"),
    "train": ("train", "x", "--data", "nowhere\x1b[31m", "-o", "o", "loss=\x1b[31m"),
    "train, its data": ("train", "recipe\x1b[31m.yaml", "--data", "broken\x1b[31m.npz", "-o", "o"),
    "no command": ("\x1b[31m",),
}


@pytest.mark.parametrize("words", FAILED.values(), ids=FAILED)
@pytest.mark.parametrize("more", [(), ("--traceback",)])
def test_errors_show_names_and_never_what_they_command(place, words, more):
    done = run(*words, *more)
    assert done.exit_code in (1, 2)
    assert "Error: " in done.stderr
    assert is_plain(done.output)


def test_a_folder_whose_name_is_no_utf_8_can_be_audited_and_written_about(tmp_path):
    for name in (b"caf\xe9", b"dog"):
        folder = tmp_path / "set" / name.decode("utf-8", "surrogateescape")
        try:
            folder.mkdir(parents=True)
        except OSError:
            pytest.skip("this disk takes no such names")
        (folder / "1.jpg").touch()
    done = run("audit", tmp_path / "set", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "out" / "counts.json").read_text()) == {"caf\udce9": 1, "dog": 1}
    assert "caf\\udce9" in (tmp_path / "out" / "report.html").read_text()


def test_a_console_of_a_terminal_keeps_its_own_colours_and_no_others():
    shown = plain_console(file=io.StringIO(), force_terminal=True, color_system="standard")
    table = Table()
    table.add_row(Text(EVIL, style="green"))
    shown.print(table)
    shown.print(EVIL)
    text = shown.file.getvalue()
    assert "\x1b[32m" in text
    assert is_plain(text.replace("\x1b[32m", "").replace("\x1b[0m", "").replace("\x1b[1m", ""))


def test_progress_shows_names_the_same_way(monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", screen)
    with terminal.bars(False) as shown:
        shown.add_task("a\x1b]0;owned\x07", total=1, detail="\u202e")
    with terminal.status("b\x1b]0;owned\x07", False) as say:
        say("c\x9b2J")
    text = screen.getvalue()
    assert "a\\x1b]" in text
    assert not any(command in text for command in ("\x1b]", "\x07", "\x9b", "\u202e"))


def test_ordinary_text_stays_as_it_is():
    text = "Größe, 猫, 🦊, −3 ± τ\n\ttab"
    assert plain_text(text) == text


def test_json_escapes_what_json_alone_would_not(capsys):
    print_json({"name": EVIL})
    printed = capsys.readouterr().out
    assert is_plain(printed)
    assert json.loads(printed) == {"name": EVIL}
