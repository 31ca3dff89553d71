"""The files that each command visits, in order, written into docs/architecture.md.

    python docs/architecture/trace.py

A file of cli, flows or report is visited when one of its functions is called, and is listed where
that happens first. A file that is called again from a file that it called (a → b → a) is marked:
there a reader would have to come back. What is done on import, calls of `progress`, and values that
check themselves when they are made do not count. With --check nothing is written: it fails if
the page says something else, or if a file is marked.
"""

import functools
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

import longtail
from longtail.cli import app

PAGE = Path(__file__).parent.parent / "architecture.md"
FENCE = ("<!-- visited: made by docs/architecture/trace.py -->", "<!-- end of visited -->")
SOURCE = Path(longtail.__file__).parent
SCORES = PAGE.parent.parent.resolve() / "results" / "scores"
COUNTS = (60, 30, 12, 6)
RECIPE = """
data: {kind: npz, validation_share: 0.2}
backbone: {name: mlp, inputs: 192, hidden: [8]}
epochs: 1
batch_size: 32
"""
PROGRESS = "progress"
FIX = ("fix", "val.npz", "--kind", "logits", "--counts", "counts.json")
COMMANDS = {
    "audit": ["audit", "labels.csv", "-o", "audited"],
    "fix": [*FIX, "--apply", "test.npz", "-o", "fixed"],
    "fix --target estimate": [
        *(*FIX, "--apply", "test.npz", "--target", "estimate", "-o", "estimated"),
    ],
    "fix --unlabelled": [*FIX, "--unlabelled", "new.npz", "-o", "matched"],
    "fix --with": [
        *("fix", "test.npz", "--kind", "logits", "--with", "fixed/adjuster.json"),
        *("-o", "applied"),
    ],
    "report": ["report", "fixed/scores.safetensors", "-o", "reported"],
    "compare": ["compare", "fixed", "again", "-o", "compared"],
    "fit": ["fit", "features.npz", "-o", "fitted", "--methods", "linear,adjusted"],
    "recipes": ["recipes", "cifar100-lt-ce-quick"],
    "split": ["split", "sun397", "-o", "lists"],
    "train": ["train", "recipe.yaml", "--data", "images.npz", "-o", "run"],
    "features": ["features", "run", "images.npz", "-o", "run.safetensors"],
    "sweep": ["sweep", "recipe.yaml", "epochs=1,2", "--data", "images.npz", "-o", "swept"],
    "reproduce": ["reproduce", "lade-table-2", "--quick", "--table", "-o", str(SCORES)],
    "demo": ["demo", "--trials", "2", "-o", "demo"],
    "doctor": ["doctor"],
}


def main():
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(FENCE[0])
    after = rest.partition(FENCE[1])[2]
    table = visited()
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(f"{before}{FENCE[0]}\n{table}{FENCE[1]}{after}", encoding="utf-8")
    elif table not in text or "**" in table:
        sys.exit(f"{PAGE.name} does not say this, or a file is left and entered again:\n{table}")


def visited():
    """The table, as Markdown."""
    lines = ["| command | files, in the order in which they are entered |", "|---|---|"]
    for name, (files, again) in traced().items():
        shown = (f"**{file}**" if file in again else file for file in files)
        lines.append(f"| `{name}` | {' → '.join(shown)} |")
    return "\n".join(lines) + "\n"


def traced():
    """By command its files in order, and those that are left and entered again."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            write_inputs()
            call([*FIX, "-o", "again"])
            return {name: visit(arguments) for name, arguments in COMMANDS.items()}
        finally:
            os.chdir(here)


def write_inputs():
    """Small files of every kind that the commands read."""
    random = np.random.default_rng(0)
    names = [name for name, count in zip("abcd", COUNTS, strict=True) for _ in range(count)]
    Path("labels.csv").write_text("\n".join(["label", *names]))
    Path("counts.json").write_text(str(list(COUNTS)))
    labels = np.repeat(np.arange(4), 40)
    for name in ("val", "test", "new"):
        logits = random.normal(size=(160, 4)) + 2 * np.eye(4)[labels] + np.log(COUNTS)
        np.savez(f"{name}.npz", logits=logits, labels=labels)
    train = np.repeat(np.arange(4), COUNTS)
    parts = {"train": train, "test": labels}
    features, images = {}, {}
    for part, y in parts.items():
        features |= {f"{part}_features": random.normal(size=(len(y), 8)), f"{part}_labels": y}
        pixels = random.integers(0, 256, (len(y), 3, 8, 8)).astype(np.uint8)
        images |= {f"{part}_images": pixels, f"{part}_labels": y}
    np.savez("features.npz", **features)
    np.savez("images.npz", **images)
    Path("recipe.yaml").write_text(RECIPE)
    for name, count in (("a/abbey", 120), ("b/bar", 150)):
        Path("sun397", name).mkdir(parents=True)
        for number in range(count):
            Path("sun397", name, f"sun_{number}.jpg").touch()


def call(arguments):
    try:
        app.main([*arguments, "--quiet"], standalone_mode=False)
    except SystemExit as end:
        if end.code:
            raise


def visit(arguments):
    files, again, stack = {}, set(), []

    def watch(frame, event, _):
        if event == "call":
            is_left_out = stack[-1:] == [PROGRESS] or frame.f_code.co_name in (PROGRESS, "<module>")
            file = PROGRESS if is_left_out else short(frame.f_code)
            if file not in (None, PROGRESS):
                files.setdefault(file)
                own = [name for name in stack if name is not None]
                if file in own and own[-1] != file:
                    again.add(file)
            stack.append(file)
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(watch)
    try:
        call(arguments)
    finally:
        sys.setprofile(None)
    return list(files), again


@functools.cache
def short(code):
    """The file as folder/name, if it belongs to cli, flows or report."""
    path = Path(code.co_filename)
    if code.co_name == "__post_init__" or path.suffix != ".py" or not path.is_relative_to(SOURCE):
        return None
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return "/".join(parts) if parts[0] in ("cli", "flows", "report") else None


if __name__ == "__main__":
    main()
