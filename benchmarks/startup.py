"""What it costs to start: `import longtail` beside `import torch`, and `longtail --help`.

Fresh processes in random order; medians. Usage: `make bench`, or
`python benchmarks/startup.py` for this table alone.
"""

import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

REPETITIONS = 15
COMMANDS = {
    "import torch": [sys.executable, "-c", "import torch"],
    "import longtail, one prior": [
        sys.executable,
        "-c",
        "import longtail as lt; lt.Prior.uniform(3)",
    ],
    "longtail --help": [str(Path(sys.executable).with_name("longtail")), "--help"],
}


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main():
    times = {name: [] for name in COMMANDS}
    for repetition in range(REPETITIONS + 1):
        for name in random.sample(list(COMMANDS), len(COMMANDS)):
            took = seconds(COMMANDS[name])
            if repetition:  # the first one fills the disk's cache
                times[name].append(took)
    medians = {name: statistics.median(values) for name, values in times.items()}
    print("Seconds to start, medians of fresh processes. Made by `make bench`.\n")
    print("| command | seconds |")
    print("|---|---|")
    for name, value in medians.items():
        print(f"| `{name}` | {value:.3f} |")
    more = medians["import longtail, one prior"] - medians["import torch"]
    print(f"\nlongtail over torch: {more:+.3f} s, target at most 0.3 s.")
    print(f"longtail --help: {medians['longtail --help']:.3f} s, target under 0.5 s.")


if __name__ == "__main__":
    main()
