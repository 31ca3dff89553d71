"""What it costs to serve an adjuster: start, memory, one row, and the size on the disk.

Fresh processes in random order; medians. Usage: `make bench`, or
`python benchmarks/footprint.py` for this table alone.
"""

import importlib.metadata
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

import longtail as lt
from longtail.integrations.sklearn import LogitAdjustedClassifier

REPETITIONS = 15
COUNTS = [500, 150, 40, 10]
MEASURED = r"""
import json, re, sys, time
start = time.perf_counter()
{code}
took = time.perf_counter() - start
peak = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) / 1024
loaded = [name for name in ("torch", "scipy") if name in sys.modules]
print(json.dumps([took, peak, loaded]))
"""
LOAD = """
import numpy as np, longtail as lt
adjuster = lt.posthoc.load_adjusters({path!r})
adjuster(lt.Scores(np.array([[2.0, 1.0, 0.5, 0.1]]), carried=lt.Prior.of({counts}))).probs()
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adjuster.json"
        adjusters = fitted_adjusters()
        lt.posthoc.save_adjusters(path, adjusters)
        codes = {
            "import numpy": "import numpy",
            "load an adjuster and apply it": LOAD.format(path=str(path), counts=COUNTS),
            "import torch": "import torch",
        }
        seen = {name: [] for name in [*codes, "longtail --help"]}
        for repetition in range(REPETITIONS + 1):
            for name in random.sample(list(seen), len(seen)):
                answer = measured(codes[name]) if name in codes else help_time()
                if repetition:  # the first one fills the disk's cache
                    seen[name].append(answer)
        stored = lt.posthoc.load_adjusters(path)
    print("What it costs to serve an adjuster. Made by `make bench`.\n")
    print("| in a fresh process | seconds | MB resident | of torch and SciPy it imports |")
    print("|---|--:|--:|---|")
    for name, answers in seen.items():
        seconds, megabytes = (
            statistics.median(part) for part in list(zip(*answers, strict=True))[:2]
        )
        print(f"| {name} | {seconds:.3f} | {megabytes:.0f} | {', '.join(answers[0][2]) or '-'} |")
    print("\nTarget for an adjuster: at most 0.2 s and 50 MB.\n")
    print_one_row(stored)
    print_classifier()
    print_sizes()


def fitted_adjusters():
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 100)
    logits = generator.normal(size=(400, 4)) + 2 * np.eye(4)[labels] + np.log(COUNTS)
    scores = lt.Scores(logits, labels, carried=COUNTS, split="validation")
    calibration = lt.posthoc.Temperature.fit(scores)
    return calibration, lt.posthoc.LogitAdjustment.fit(calibration(scores))


def measured(code):
    run = subprocess.run(
        [sys.executable, "-c", MEASURED.format(code=code)], check=True, capture_output=True
    )
    return json.loads(run.stdout)


def help_time():
    command = [str(Path(sys.executable).with_name("longtail")), "--help"]
    code = f"import subprocess; subprocess.run({command}, check=True, capture_output=True)"
    seconds, _, _ = measured(code)
    return seconds, 0, []


def microseconds(call):
    """The median over a second or so of what one call takes."""
    timer = timeit.Timer(call)
    number = max(1, timer.autorange()[0] // 10)
    return 1e6 * statistics.median(timer.repeat(15, number)) / number


def print_one_row(adjuster):
    prior, row = lt.Prior.of(COUNTS), np.array([[2.0, 1.0, 0.5, 0.1]])
    scores = lt.Scores(row, carried=prior)
    applied = microseconds(lambda: adjuster(scores))
    whole = microseconds(lambda: adjuster(lt.Scores(row, carried=prior)).probs())
    print("| one row through a loaded adjuster | µs |\n|---|--:|")
    print(f"| scores in, scores out | {applied:.0f} |")
    print(f"| logits in, probabilities out | {whole:.0f} |\n")
    print("Target: at most 60 µs.\n")


def print_classifier():
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), COUNTS)
    rows = generator.normal(size=(len(labels), 20)) + np.eye(4, 20)[labels]
    inner = LogisticRegression().fit(rows, labels)
    wrapped = LogitAdjustedClassifier(LogisticRegression()).fit(rows, labels)
    alone, around = [], []
    for _ in range(7):  # interleaved
        alone.append(microseconds(lambda: inner.predict_proba(rows[:1])))
        around.append(microseconds(lambda: wrapped.predict_proba(rows[:1])))
    ratio = statistics.median(around) / statistics.median(alone)
    print(
        f"`predict_proba` of one row, 20 features and 4 classes: {ratio:.2f} times that of the "
        "logistic regression inside; target at most 1.5.\n"
    )


def print_sizes():
    sizes = {name: installed_size(name) for name in sorted(needed("longtail", set()))}
    print("| installed without torch | MB |\n|---|--:|")
    for name, size in sizes.items():
        print(f"| {name} | {size / 1e6:.1f} |")
    print(f"| **all** | {sum(sizes.values()) / 1e6:.0f} |")
    print(f"\nBeside it torch alone: {installed_size('torch') / 1e6:,.0f} MB (the CPU build).")


def needed(name, seen):
    """The distribution and all it needs, extras left out."""
    seen.add(name)
    for requirement in importlib.metadata.requires(name) or []:
        other = re.match(r"[\w.-]+", requirement)[0].lower()
        marker = requirement.partition(";")[2]
        if other in seen or "extra" in marker or "sys_platform" in marker or "platform" in marker:
            continue
        if "python_version" in marker:  # only what older Pythons need
            continue
        needed(other, seen)
    return seen


def installed_size(name):
    """Bytes of the files it installs; of longtail those of the source, an editable install."""
    if name == "longtail":
        return sum(
            path.stat().st_size
            for path in Path(lt.__file__).parent.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        )
    files = importlib.metadata.files(name) or []
    return sum(path.stat().st_size for file in files if (path := Path(file.locate())).is_file())


if __name__ == "__main__":
    main()
