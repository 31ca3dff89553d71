"""Files, subsets, folds and synthetic sets need NumPy alone."""

import subprocess
import sys

CODE = """
import sys
sys.modules["torch"] = None
import numpy as np
from longtail import Scores, data

logits, labels = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 3
Scores(logits, labels, [3, 2, 1]).save("a.safetensors")
np.savez("a.npz", logits=logits, labels=labels)
with open("a.csv", "w") as file:
    file.write("x,y,z,label\\n")
    file.writelines(",".join(map(str, (*row, y))) + "\\n" for row, y in zip(logits, labels))
for name in ("a.safetensors", "a.npz", "a.csv"):
    table = data.open_score_table(name, "logits")
    assert np.array_equal(table.as_scores().logits, logits)
    assert table.labels.tolist() == labels.tolist()
with data.open_score_writer("b.safetensors", 30, 3, labels=labels, carried=[1, 1, 2]) as writer:
    writer.write(logits)
assert data.read_label_counts("a.csv")["all"].counts == {"0": 10, "1": 10, "2": 10}
rows = logits.astype(np.float32)
assert data.pack_features("f.safetensors", {"train": (rows, labels)}).dim == 3
assert np.bincount(data.stratified_folds(labels, 3)).tolist() == [10, 10, 10]
assert len(data.long_tailed_subset(labels, [3, 2, 1])) == 6
assert len(data.two_gaussians(20, seed=0)[0]) == len(data.two_moons(20, seed=0)[0]) == 20
assert data.two_gaussians_error([1.0, 1.0], 0.0) < 0.0787
assert len(data.caltech101_long_tailed().classes) == 101
"""


def test_everything_in_data_works_where_torch_cannot_be_imported(tmp_path):
    answer = subprocess.run(
        [sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True
    )
    assert not answer.returncode, answer.stderr
