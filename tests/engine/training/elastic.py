"""Runs whose workers are killed, and started again by torchrun.

As a program: `python tests/engine/training/elastic.py --times 10 [--nodes 2] [--parallel fsdp]`
kills a worker of two at a random moment in the first two starts of each run, and counts the runs
that end with the bits of a run that nobody disturbed. With two nodes there are two torchruns, with
a worker each.
"""

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

HERE = Path(__file__)
KILLS, UNDISTURBED = 2, -1


def work(folder, seed, parallel):
    """What torchrun starts: a run, in which one process is killed if this is an early start."""
    sys.path.insert(0, str(HERE.parents[2]))
    import torch._dynamo  # noqa: F401  (the first step would import it, and take a second)

    from engine.training.tiny import full_run
    from longtail.engine.training import processes

    with processes() as these:
        starts = Path(folder, f"starts-{these.rank}")
        before = len(starts.read_text()) if starts.exists() else 0
        starts.write_text("x" * (before + 1))
        chance = random.Random(f"{seed} {before}")
        victim, moment = chance.randrange(2), chance.uniform(0.0, 0.5)
        if seed != UNDISTURBED and before < KILLS and these.rank == victim:
            end = threading.Timer(moment, os.kill, (os.getpid(), signal.SIGKILL))
            end.daemon = True
            end.start()
        net, _ = full_run(os.path.join(folder, "run"), parallel=parallel)
        if these.is_main:
            save_file(net.state_dict(), os.path.join(folder, "final.safetensors"))


def launch(folder, seed, nodes=1, parallel="ddp"):
    """One run under torchrun; its last weights, and how often its workers were started."""
    folder.mkdir(parents=True)
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    if nodes == 1:
        where = ["--standalone", "--nproc-per-node", "2"]
    else:
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        where = ["--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d"]
        where += ["--rdzv-endpoint", f"localhost:{port}", "--rdzv-id", "tiny"]
    command = [sys.executable, "-m", "torch.distributed.run", *where, "--max-restarts", "4"]
    command += [str(HERE), "--work", str(folder), "--seed", str(seed)]
    command += ["--parallel", parallel]
    with open(folder / "output.txt", "w") as output:
        teams = [
            subprocess.Popen(command, env=environment, stdout=output, stderr=output)
            for _ in range(nodes)
        ]
        codes = [team.wait(timeout=240) for team in teams]
    if any(codes):
        raise RuntimeError((folder / "output.txt").read_text()[-3000:])
    starts = max(len((folder / f"starts-{rank}").read_text()) for rank in (0, 1))
    return load_file(folder / "final.safetensors"), starts


def same(state, expected):
    return all(torch.equal(state[key], value) for key, value in expected.items())


def count_good(times, nodes, first, parallel):
    """How many of so many runs end with the bits of one that nobody disturbed."""
    with tempfile.TemporaryDirectory() as place:
        expected, _ = launch(Path(place, "whole"), UNDISTURBED, parallel=parallel)
        good = 0
        for seed in range(first, first + times):
            try:
                state, starts = launch(Path(place, str(seed)), seed, nodes, parallel)
                good += same(state, expected)
                yield f"run {seed}: {starts} starts, same bits: {same(state, expected)}"
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                yield f"run {seed}: {error}"
        yield f"{good} of {times} runs ended with the same bits"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--parallel", default="ddp")
    parser.add_argument("--work")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.work:
        work(given.work, given.seed, given.parallel)
        return
    for line in count_good(given.times, given.nodes, given.seed, given.parallel):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
