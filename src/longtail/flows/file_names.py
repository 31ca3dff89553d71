"""What the files are called that commands write, and which of them belong together."""

import os

PAGE, METRICS = "report.html", "metrics.json"
SCORES, ADJUSTER = "scores.safetensors", "adjuster.json"
SETS, DECISIONS = "sets.json", "decisions.csv"
MODEL, VALIDATION, TEST = "model.safetensors", "validation.safetensors", "test.safetensors"
RECIPE, VERSIONS, LOG = "recipe.yaml", "versions.json", "log.csv"
COMPARISON, DEMO_RESULTS, AUDIT_RESULT = "comparison.json", "results.json", "audit.json"
SWEEP_RESULT = "sweep.json"
COUNTS = ("counts.json", "test_counts.json")

FIX = (SCORES, ADJUSTER, METRICS, PAGE)
FIX_ALL = (*FIX, SETS, DECISIONS)  # with what only some ask for
FIT = (MODEL, VALIDATION, TEST, METRICS, PAGE)
TRAIN = (VERSIONS, LOG, METRICS, MODEL, PAGE)
COMPARE = (PAGE, "table.md", "table.tex", COMPARISON)
SWEEP = (PAGE, SWEEP_RESULT)
DEMO = (PAGE, DEMO_RESULTS)
LISTS = ("train.txt", "val.txt", "test.txt", "classes.txt")
AUDIT = (PAGE, AUDIT_RESULT, *COUNTS)


def are_one_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether both are one file, through whatever links."""
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there
        return False
