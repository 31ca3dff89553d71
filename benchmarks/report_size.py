"""How large the report on 50,000 samples is, and how long it takes to make.

Usage: `python benchmarks/report_size.py`.
"""

import tempfile
import time
from pathlib import Path

import numpy as np

import longtail as lt
from longtail.flows.judge import Judgement
from longtail.flows.samples import BeforeAfter
from longtail.report import Footer, scores_page, write_page

SAMPLES = 50_000
SETS = ((100, 2.0), (1000, 4.0))  # classes, and the megabytes they may take


def samples_of(classes: int) -> BeforeAfter:
    """Logits of a model that learned the tail of its labels, and the same moved to uniform."""
    random = np.random.default_rng(0)
    counts = lt.data.exponential_counts(1280, classes, 256)
    labels = random.integers(classes, size=SAMPLES)
    seen = random.standard_normal((SAMPLES, classes), dtype=np.float32)
    seen[np.arange(SAMPLES), labels] += 3.0
    names = [f"a class with a name of usual length {k}" for k in range(classes)]
    prior = lt.Prior.of(counts)
    before = lt.Scores((3 * seen + prior.log).astype(np.float32), labels, prior, counts, names)
    uniform = lt.Prior.uniform(classes)
    return BeforeAfter(before, before.under(uniform), uniform, tau=1.0)


def main() -> None:
    print("# Size of the report\n")
    print(f"`python benchmarks/report_size.py`: {SAMPLES:,} test samples, one thread.\n")
    print("| classes | size | allowed | made in |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for classes, allowed in SETS:
            samples = samples_of(classes)
            started = time.perf_counter()
            page = scores_page(Judgement.of(samples), Footer("", "", ""), title="longtail report")
            size = write_page(page, Path(folder) / "report.html").stat().st_size / 1e6
            took = time.perf_counter() - started
            print(f"| {classes:,} | {size:.2f} MB | {allowed:g} MB | {took:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
