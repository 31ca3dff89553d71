"""Files that would take all memory, read where there is little: refused, and named."""

import subprocess
import sys

import numpy as np
import pytest

resource = pytest.importorskip("resource")

ROOM = 2**27  # bytes beyond what Python and torch take by themselves
START = f"""
import resource, sys
from pathlib import Path
from longtail.cli import app
import longtail.engine, longtail.data, longtail.flows.fit, longtail.flows.audit
import longtail.flows.fix, longtail.flows.train.train
used = 4096 * int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used + {ROOM}, used + {ROOM}))
for line in sys.stdin.read().splitlines():
    try:
        app.main(line.split())
    except SystemExit as error:
        print(error.code, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_small_files_that_unpack_to_more_than_memory_are_refused_by_name(tmp_path):
    swollen = np.zeros(9 * ROOM // 64, np.int64)
    np.savez_compressed(tmp_path / "labels.npz", labels=swollen)
    np.savez_compressed(tmp_path / "scores.npz", logits=np.ones((9, 2)), labels=swollen)
    huge = np.array([0, 10**10])
    np.savez(tmp_path / "features.npz", features=np.ones((2, 2)), labels=huge)
    images = np.zeros((2, 3, 4, 4), np.uint8)
    np.savez(tmp_path / "images.npz", train_images=images, train_labels=huge)
    (tmp_path / "0.png").touch()
    (tmp_path / "list.txt").write_text(f"0.png 0\n0.png {10**10}\n")
    (tmp_path / "recipe.yaml").write_text("data: npz\nloss: cross_entropy\n")
    commands = {
        "labels.npz": "audit labels.npz",
        "scores.npz": "fix scores.npz --kind logits --carried uniform -o out",
        "features.npz": "fit features.npz --methods linear -o out",
        "images.npz": "train recipe.yaml --data images.npz --dry-run",
        "list.txt": "train recipe.yaml data.kind=lists data.train=list.txt --data . --dry-run",
    }
    done = subprocess.run(
        [sys.executable, "-c", START],
        input="\n".join(commands.values()),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert done.stdout.split() == ["1"] * len(commands)
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error")]
    for name, error in zip(commands, errors, strict=True):
        assert name in error
        assert "out of memory" not in error
