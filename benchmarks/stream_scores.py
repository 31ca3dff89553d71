"""Reading, moving and writing scores that are larger than the memory they may take.

Each format is read a block of rows at a time in a process of its own, moved to the uniform prior
and written; then `longtail fix` itself runs on labelled scores. What counts is the peak memory of
each process. Parquet has row groups of a million rows, text a tenth of the rows. Usage:
`python benchmarks/stream_scores.py [--rows 10000000] [--classes 100] [--folder FOLDER]`; the folder
needs room for twice the scores (8 GB by default) and is left as it was.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

LIMIT_GB = 1.5
CASES = [
    ("npy", "safetensors"),
    ("safetensors", "npy"),
    ("npz", "safetensors"),
    ("parquet", "safetensors"),
    ("csv", "safetensors"),
]
CHUNK = 10_000  # rows that are drawn; the files repeat them
ROW_GROUP = 100  # chunks: a million rows, as parquet writers make them


def make_npy(place, rows, classes):
    import numpy as np

    from longtail.data import open_score_writer

    chunk = np.random.default_rng(0).normal(size=(CHUNK, classes)).astype(np.float32)
    with open_score_writer(place, rows, classes) as writer:
        for start in range(0, rows, CHUNK):
            writer.write(chunk[: min(CHUNK, rows - start)])


def make_npz(place, rows, classes):
    from zipfile import ZIP_STORED, ZipFile

    plain = place.with_suffix(".npy.part.npy")
    make_npy(plain, rows, classes)
    with ZipFile(place, "w", ZIP_STORED) as file:
        file.write(plain, "logits.npy")
    plain.unlink()


def make_csv(place, rows, classes):
    import io

    import numpy as np

    chunk = np.random.default_rng(0).normal(size=(CHUNK, classes))
    text = io.StringIO()
    labels = np.arange(CHUNK)[:, None] % classes
    np.savetxt(text, np.hstack([chunk, labels]), fmt=["%.6g"] * classes + ["%d"], delimiter=",")
    lines = text.getvalue().splitlines(keepends=True)
    with place.open("w") as file:
        file.write(",".join(f"class {index}" for index in range(classes)) + ",label\n")
        for start in range(0, rows, CHUNK):
            file.writelines(lines[: min(CHUNK, rows - start)])


def make_parquet(place, rows, classes):
    import numpy as np
    import pyarrow
    import pyarrow.parquet

    chunk = np.random.default_rng(0).normal(size=(CHUNK, classes)).astype(np.float32)
    names = [f"class {index}" for index in range(classes)]
    schema = pyarrow.schema([(name, pyarrow.float32()) for name in names])
    with pyarrow.parquet.ParquetWriter(place, schema) as writer:
        for start in range(0, rows, ROW_GROUP * CHUNK):
            group = min(ROW_GROUP * CHUNK, rows - start)
            columns = [np.resize(column, group) for column in chunk.T]
            writer.write_table(pyarrow.table(columns, schema), row_group_size=group)


MAKERS = {
    "npy": make_npy,
    "safetensors": make_npy,
    "npz": make_npz,
    "parquet": make_parquet,
    "csv": make_csv,
}


def stream(source, result):
    """What `longtail fix` does to scores once it knows what to add."""
    from longtail import Prior, retarget
    from longtail.data import open_score_table, open_score_writer

    start = time.perf_counter()
    table = open_score_table(source, "logits")
    carried = Prior.of(range(1, table.num_classes + 1))
    target = Prior.uniform(table.num_classes)
    size = (table.num_rows, table.num_classes)
    with open_score_writer(result, *size, table.dtype, table.labels, target) as writer:
        for block in table.blocks():
            writer.write(retarget(block.logits, carried, target))
    unit = 2**30 if sys.platform == "darwin" else 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(json.dumps({"seconds": time.perf_counter() - start, "peak": peak, "rows": size[0]}))


def fix(folder):
    """The command itself, on labelled scores: fit, adjust, write, compare before and after."""
    from longtail.cli import app

    start = time.perf_counter()
    words = ["fix", "val.npz", "--kind", "logits", "--counts", "counts.json", "--apply"]
    words += ["scores.npy", "--apply-labels", "labels.npy", "--json", "-o", "fixed"]
    os.chdir(folder)
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        app.main(words, standalone_mode=False)
    unit = 2**30 if sys.platform == "darwin" else 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(json.dumps({"seconds": time.perf_counter() - start, "peak": peak}))


def make_fix_inputs(folder, rows, classes):
    import numpy as np

    rng = np.random.default_rng(0)
    counts = np.geomspace(1000, 10, classes).astype(int)
    labels = rng.choice(classes, 20_000, p=counts / counts.sum())
    logits = rng.normal(size=(20_000, classes)) + np.log(counts)
    logits[np.arange(20_000), labels] += 3
    np.savez(folder / "val.npz", logits=logits.astype(np.float32), labels=labels)
    (folder / "counts.json").write_text(json.dumps(counts.tolist()))
    np.save(folder / "labels.npy", rng.integers(0, classes, rows))
    make_npy(folder / "scores.npy", rows, classes)


def measured_fix(rows, classes, folder):
    in_a_process("prepare", folder, rows, classes)
    found = json.loads(in_a_process("fix", folder))
    size = (folder / "scores.npy").stat().st_size / 2**30
    print(
        f"| longtail fix --apply | {rows:,} × {classes} | {size:.1f} | {found['seconds']:.0f} | "
        f"{rows * classes / found['seconds'] / 1e6:.0f} | {found['peak']:.2f} |",
        flush=True,
    )
    return found["peak"]


def in_a_process(*arguments):
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def measured(source, result, rows, classes, folder):
    given, made = folder / f"scores.{source}", folder / f"moved.{result}"
    rows = rows // 10 if source == "csv" else rows
    try:
        in_a_process("make", given, rows, classes)
        found = json.loads(in_a_process("stream", given, made))
        size = given.stat().st_size / 2**30
    finally:
        given.unlink(missing_ok=True)
        made.unlink(missing_ok=True)
    print(
        f"| {source} → {result} | {rows:,} × {classes} | {size:.1f} | {found['seconds']:.0f} | "
        f"{rows * classes / found['seconds'] / 1e6:.0f} | {found['peak']:.2f} |",
        flush=True,
    )
    return found["peak"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    asked = parser.parse_args()
    print("Scores read, moved to the uniform prior and written by blocks, one process each.\n")
    print("| from → to | rows × classes | GB read | seconds | million numbers/s | peak GB |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        peaks = [measured(*case, asked.rows, asked.classes, Path(folder)) for case in CASES]
        peaks.append(measured_fix(asked.rows, asked.classes, Path(folder)))
    print(f"\nPeak memory: {max(peaks):.2f} GB, target under {LIMIT_GB} GB.")


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        place, rows, classes = Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
        MAKERS[place.suffix[1:]](place, rows, classes)
    elif sys.argv[1:2] == ["prepare"]:
        make_fix_inputs(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    elif sys.argv[1:2] == ["fix"]:
        fix(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["stream"]:
        stream(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
