"""Memory of fitting heads on features that are mapped from the disk: 500,000 × 512 in float16.

What is stated: beside the libraries and 16 bytes a label, a fit holds at most 512 MB, whatever the
number of rows: 128 MB of mapped pages, blocks of 16 to 32 MB, and a few copies of the head. Peak
resident memory is read from the system in a process of its own for each fit, above what it is once
all is imported and the file is open. The same with a fifth of the rows shows that it does not grow.
Usage: `python benchmarks/fit_memory.py`; writes and removes half a gigabyte in a temporary folder.
"""

import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

ROWS, DIM, CLASSES, LIMIT = 500_000, 512, 100, 512


def write(path, rows):
    import longtail as lt

    rng = np.random.default_rng(0)
    shares = 100.0 ** (-np.arange(CLASSES) / (CLASSES - 1))
    labels = rng.choice(CLASSES, rows, p=shares / shares.sum())
    means = rng.normal(size=(CLASSES, DIM)).astype(np.float32)
    stored = np.lib.format.open_memmap(path.with_suffix(".npy"), "w+", np.float16, (rows, DIM))
    for start in range(0, rows, 20_000):
        part = labels[start : start + 20_000]
        noise = rng.standard_normal((len(part), DIM), dtype=np.float32)
        stored[start : start + 20_000] = 0.3 * means[part] + noise
    stored.flush()
    lt.data.pack_features(path, {"train": (stored, labels)})
    path.with_suffix(".npy").unlink()


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(path, what):
    import longtail as lt
    from longtail import heads

    data = lt.data.Features.load(path)
    features, labels = data.part("train")
    rows = len(labels)
    # Warm up: what the first fit of any size imports and allocates.
    small = np.random.default_rng(0).normal(size=(400, DIM)).astype(np.float16)
    head = heads.Linear(DIM, CLASSES)
    recipe = replace(head.sgd, epochs=1)
    lt.fit_head(head, small, np.arange(400) % CLASSES, sgd=recipe)
    before, start = peak(), time.perf_counter()
    if what == "learned NCM, one epoch":
        head = heads.LearnedNCM(DIM, CLASSES)
        lt.fit_head(head, features, labels, sgd=replace(head.sgd, epochs=1))
    elif what == "cRT, one epoch":
        lt.fit_head(head, features, labels, sgd=recipe)
    elif what == "LDA":
        lt.fit_head(heads.Generative(DIM, CLASSES), features, labels)
    else:
        prior = lt.Prior.of(data.counts)
        loss = lt.losses.LogitAdjusted(prior)
        lt.engine.fit_linear(features, labels, loss, weight_decay=1e-3, tolerance=1e-4)
    print(f"| {what} | {rows:,} | {peak() - before:.0f} | {time.perf_counter() - start:.0f} |")


FITS = ("LDA", "learned NCM, one epoch", "cRT, one epoch", "logit-adjusted, full solver")


def main():
    print("# Memory of a fit on mapped features\n")
    print(
        f"`python benchmarks/fit_memory.py`: {DIM} numbers a row in float16, {CLASSES} classes.\n"
    )
    print("| fit | rows | MB above the start | s |")
    print("|---|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for rows in (ROWS // 5, ROWS):
            path = Path(folder) / f"{rows}.safetensors"
            subprocess.run([sys.executable, __file__, "write", path, str(rows)], check=True)
            for what in FITS:
                subprocess.run([sys.executable, __file__, "measure", path, what], check=True)
    print(f"\nStated bound: {LIMIT} MB, and 16 bytes a label (8 MB here).")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif sys.argv[1] == "write":
        write(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        measure(Path(sys.argv[2]), sys.argv[3])
