"""Is a version of the library as fast as another? Both take turns in one run.

    git worktree add /tmp/old COMMIT && python benchmarks/same_speed.py /tmp/old

A process of each version waits for the name of a case, does it once and answers with the seconds
it took; which of the two goes first is drawn. The cases are those of loss_cost, tau_curve,
convex_solver and stream_scores, each by the benchmark of that version. What is said is the ratio of
the medians, new by old. Freed memory is kept by both processes: whether the system takes it back
after every call, and each page of it has to be asked for again, is decided anew by every process
and doubles the time of a large loss.
"""

import contextlib
import io
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NEW = Path(__file__).resolve().parent.parent
TARGET = 1.10
ROWS, CLASSES = 500_000, 100
STREAMED = {"npy": "safetensors", "safetensors": "npy", "npz": "safetensors"}
STREAMED |= {"parquet": "safetensors", "csv": "safetensors"}
LOSSES = ("LogitAdjusted", "VS", "LADE", "LDAM", "BalancedSoftmax")


def main():
    old = Path(sys.argv[1]).resolve()
    print("Two versions taking turns in one run: medians, new by old. Made by")
    print("`python benchmarks/same_speed.py OLD`.\n")
    print("| case | threads | repetitions | old, ms | new, ms | ratio |")
    print("|---|--:|--:|--:|--:|--:|")
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for threads in (1, 2):
            with running(old, threads, folder) as before, running(NEW, threads, folder) as after:
                for case, repetitions in json.loads(ask(after, "cases")).items():
                    if threads > 1 and case.startswith("stream"):
                        continue  # it reads and writes: one thread
                    both = medians(case, repetitions, before, after)
                    ratio = both[1] / both[0]
                    worst = max(worst, ratio)
                    shown = " | ".join(f"{1e3 * took:,.2f}" for took in both)
                    print(f"| {case} | {threads} | {repetitions} | {shown} | {ratio:.2f} |")
                    sys.stdout.flush()
    print(f"\nlargest ratio {worst:.2f}; target at most {TARGET:.2f}")


def medians(case, repetitions, before, after):
    times = {before: [], after: []}
    for repetition in range(repetitions + 1):
        for version in random.sample([before, after], 2):
            took = float(ask(version, case))
            if repetition:  # the first one warms up
                times[version].append(took)
    return [statistics.median(times[version]) for version in (before, after)]


@contextlib.contextmanager
def running(checkout, threads, folder):
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
    environment |= {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
    environment["OPENBLAS_NUM_THREADS"] = str(threads)
    environment |= dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(2**32))
    command = [sys.executable, __file__, "--answer", checkout / "benchmarks", folder]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        ask(process, "cases")  # the first writes the files that both read
        yield process
        process.stdin.close()


def ask(version, case):
    version.stdin.write(f"{case}\n")
    version.stdin.flush()
    return version.stdout.readline()


def answer(benchmarks, folder):
    """Do the cases whose names come in, with the library and the benchmarks of this version."""
    sys.path[0] = benchmarks
    os.chdir(folder)
    random.seed(0)
    cases = loss_cases() | other_cases()
    for line in sys.stdin:
        if line.strip() == "cases":
            reply = json.dumps({name: repetitions for name, (repetitions, _) in cases.items()})
        else:
            with contextlib.redirect_stdout(io.StringIO()):
                reply = cases[line.strip()][1]()
        print(reply, flush=True)


def loss_cases():
    import torch

    import longtail as lt
    import loss_cost

    cases = {}
    for (samples, classes), repetitions in loss_cost.SHAPES.items():
        labels = torch.randint(0, classes, (samples,))
        logits = torch.randn(samples, classes, requires_grad=True)
        counts = lt.data.exponential_counts(1280, classes, 256)
        for name in LOSSES if classes == 1000 else LOSSES[:1]:
            arguments = (getattr(lt.losses, name)(counts), logits, labels)
            case = (repetitions // 2, lambda a=arguments: loss_cost.seconds(*a))
            cases[f"loss_cost {name} {samples} × {classes}"] = case
    return cases


def other_cases():
    import convex_solver
    import longtail as lt
    import stream_scores
    import tau_curve

    scores = tau_curve.draw()
    cases = {"tau_curve": (15, lambda: seconds(lambda: lt.posthoc.tau_curve(*scores)))}
    data = convex_solver.draw()
    decay = convex_solver.WEIGHT_DECAYS[0]
    fit = [lambda: convex_solver.ours(*data, decay)]
    cases[f"convex_solver {decay:g}"] = (9, lambda: seconds(*fit))
    for source, result in STREAMED.items():
        path = Path(f"scores.{source}").absolute()
        rows = ROWS // 10 if source == "csv" else ROWS
        if not path.exists():
            stream_scores.MAKERS[source](path, rows, CLASSES)
        moved = path.with_name(f"moved.{result}")
        stream = [lambda p=path, m=moved: stream_scores.stream(p, m)]
        cases[f"stream_scores {source}"] = (9, lambda stream=stream: seconds(*stream))
    fixing = Path(f"fixing-{os.getpid()}").absolute()
    fixing.mkdir()
    stream_scores.make_fix_inputs(fixing, ROWS // 5, CLASSES)
    cases["stream_scores fix --apply"] = (7, lambda: seconds(lambda: stream_scores.fix(fixing)))
    return cases


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


if __name__ == "__main__":
    if sys.argv[1] == "--answer":
        answer(*sys.argv[2:])
    else:
        main()
