"""Commands that are killed while they replace what an earlier run of them wrote.

As a program: `python tests/cli/killed.py --times 40 [--together 8]` kills fix, fit and compare, so
many times each, in a run into an old folder: at random moments, and again as soon as the new files
count. It counts what is left: the old files, the new ones, or a folder that is marked as unfinished
and has one of both when the next one who looks has finished it. Anything else is called mixed. Then
it starts pairs of them at once.
"""

import argparse
import contextlib
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        "longtail.cli",
        "longtail.flows.compare",
        "longtail.report.pages.fix",
        "longtail.report.pages.fit",
    ]
)

COMMON = ["--kind", "logits", "--counts", "counts.json", "--apply", "test.npz"]
# Of each command two runs, whose files differ.
RUNS = {
    "fix": [["fix", "val.npz", *COMMON, "--tau", tau] for tau in ("0.5", "1.5")],
    "fit": [
        ["fit", "features.npz", "--folds", "2", "--methods", "adjusted", "--target", target]
        for target in ("uniform", "train")
    ],
    "compare": [
        ["compare", "--label", f"{name}=val.npz", "--label", "b=test.npz"] for name in ("a", "c")
    ],
}


def write_inputs(place):
    chance = np.random.default_rng(0)
    for name, counts in (("val", (300, 100, 30)), ("test", (90, 90, 90))):
        labels = np.repeat(np.arange(3), counts)
        logits = chance.normal(size=(len(labels), 3)) + 2 * np.eye(3)[labels]
        np.savez(place / f"{name}.npz", logits=logits, labels=labels)
    labels = np.repeat(np.arange(3), (60, 30, 12))
    features = (chance.normal(size=(102, 4)) + 2 * np.eye(4)[labels]).astype(np.float32)
    np.savez(place / "features.npz", features=features, labels=labels)
    (place / "counts.json").write_text("[300, 100, 30]")


def work(place, arguments, said=None):
    """For a process of its own: a command in a folder, its standard error to a file."""
    import torch

    from longtail.cli import app

    torch.set_num_threads(1)
    os.chdir(place)
    with (
        open(os.devnull, "w") as nowhere,
        open(said or os.devnull, "w") as errors,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(errors),
    ):
        app.main([*arguments, "-o", "out", "-q"], prog_name="longtail")


def stop_halfway(place, how, said):
    """For a process of its own: a `longtail fix` that does something when half is written."""
    from longtail.cli import app, main
    from longtail.cli.terminal import writing

    def callback(output, **_):
        with writing(output) as aside:
            (aside / "report.html").write_text("new")
            how()
            (aside / "metrics.json").write_text("new" * 1000)

    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it would be ignored
    os.chdir(place)
    app.commands["fix"].callback = callback
    sys.argv = ["longtail", "fix", "val.npz", "-o", "out"]
    with open(said, "w") as errors, contextlib.redirect_stderr(errors):
        main()


# What a command does when half is written. Here, since a new process cannot import test files.


def kill_self(number):
    os.kill(os.getpid(), number)


def term():
    kill_self(signal.SIGTERM)


def hang_up():
    kill_self(signal.SIGHUP)


def kill():
    kill_self(signal.SIGKILL)


def fill_the_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def wait():
    while not os.path.exists("go on"):
        time.sleep(0.01)


def train_and_wait(folder):
    """For a process of its own: a run that waits at its first step until it is killed."""
    from longtail.flows.train.reading import overridden
    from longtail.flows.train.train import train
    from longtail.recipes.catalogue import read_recipe

    def wait(event):
        Path(folder, "waits").touch()
        time.sleep(60)

    given = [f"data.path={folder}/images.npz"]
    recipe = overridden(read_recipe(f"{folder}/mine.yaml"), given)
    train(recipe, Path(folder, "run"), progress=wait)


def start(place, arguments, said=None):
    process = SERVER.Process(target=work, args=(str(place), arguments, said))
    process.start()
    return process


def visible(folder):
    """The files of a folder that a user sees; what hides begins with a dot.

    Of pages and numbers the command that they quote: how long a fit took differs each time.
    """
    found = {path.name: path.read_bytes() for path in folder.glob("[!.]*")}
    quoted = re.compile(rb"longtail \w+ [^\"<]*")
    return {name: tuple(quoted.findall(data)) or data for name, data in found.items()}


class Killing:
    """Old and new files of a command, and how long it takes."""

    def __init__(self, place, command):
        self.place = Path(place, command)
        self.before, self.after = RUNS[command]
        self.place.mkdir(parents=True)
        write_inputs(self.place)
        self.new = self._made(self.after)
        started = time.monotonic()
        shutil.rmtree(self.place / "out")
        self.old = self._made(self.before)
        self.seconds = time.monotonic() - started
        shutil.copytree(self.place / "out", self.place / "kept")

    def _made(self, arguments):
        process = start(self.place, arguments)
        process.join()
        assert process.exitcode == 0, (arguments, process.exitcode)
        return visible(self.place / "out")

    def again(self):
        """The old folder, as it was."""
        shutil.rmtree(self.place / "out", ignore_errors=True)
        shutil.copytree(self.place / "kept", self.place / "out")

    def kill_at(self, moment):
        """What a run into the old folder leaves that is killed so many seconds after its start."""
        self.again()
        process = start(self.place, self.after)
        process.join(moment)
        if process.is_alive():
            process.kill()
        process.join()
        return self.left()

    def kill_when_placed(self):
        """What a run leaves that is killed as soon as its files count."""
        self.again()
        process = start(self.place, self.after)
        mark = str(self.place / "out" / ".longtail" / "placing")
        while process.is_alive() and not os.path.exists(mark):
            pass
        process.kill()
        process.join()
        return self.left()

    def left(self):
        from longtail.flows.generation import settle

        out = self.place / "out"
        found = self._whole()
        if (out / ".longtail" / "placing").is_dir():
            seen = visible(out).items()
            differ = [each for each in seen if self.old.get(each[0]) != self.new.get(each[0])]
            ages = {"old" if self.old.get(name) == data else "new" for name, data in differ}
            assert len(ages) <= 1, "old and new files side by side"
            assert settle(out)
            found = f"marked, then {self._whole()}"
        return found

    def _whole(self):
        found = visible(self.place / "out")
        return "old" if found == self.old else "new" if found == self.new else "mixed"

    def together(self):
        """What two runs at once leave, and what the one said that was refused."""
        self.again()
        said = [str(self.place / f"said-{at}") for at in (0, 1)]
        pair = zip((self.before, self.after), said, strict=True)
        processes = [start(self.place, arguments, file) for arguments, file in pair]
        for process in processes:
            process.join()
        codes = sorted(process.exitcode for process in processes)
        return codes, self._whole(), "".join(Path(file).read_text() for file in said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--together", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as place:
        for command in RUNS:
            killing = Killing(place, command)
            longest = 1.1 * killing.seconds
            left = Counter(killing.kill_at(chance.uniform(0, longest)) for _ in range(given.times))
            sys.stdout.write(f"{command}, killed within {longest:.2f} s: {dict(left)}\n")
            left = Counter(killing.kill_when_placed() for _ in range(given.times))
            sys.stdout.write(f"{command}, killed when its files count: {dict(left)}\n")
            pairs = [killing.together() for _ in range(given.together)]
            ends = Counter(f"exit codes {codes}: {found}" for codes, found, _ in pairs)
            sys.stdout.write(f"{command}, two at once: {dict(ends)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
