"""How long the catalogue takes to read: one twin by name, and all of them, in a fresh interpreter (CPU time).

    python benchmarks/catalogue.py [--quick]

There is no cache on disk, and so none that could be stale: what makes it quick is one pass over the
events of each file, each spelling of a unit parsed once, and files opened only at first use.
"""

import argparse
import subprocess
import sys

# The child times itself, less the import, which benchmarks/run.py measures.
TIMED = "import time; from mlsys import Hardware; t = time.process_time(); {}; print(time.process_time() - t)"
TASKS = {  # what is read, and the milliseconds of CPU time we mean to stay below
    "twin by its id": ("Hardware['STM32H743']", 5),
    "twin by an alias": ("Hardware['A100']", 5),
    "whole catalogue": ("list(Hardware)", 150),
}


def cpu_milliseconds(task: str) -> float:
    """Return the CPU time that a task takes in a fresh interpreter, after the import."""
    done = subprocess.run([sys.executable, "-c", TIMED.format(task)], check=True, capture_output=True, text=True)
    return 1e3 * float(done.stdout)


def main() -> None:
    """Print the median and the least time of each task beside its aim."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 5 if parser.parse_args().quick else 25
    for name, (task, aim) in TASKS.items():
        times = sorted(cpu_milliseconds(task) for _ in range(rounds))
        sys.stdout.write(f"{name:<18} median {times[rounds // 2]:6.1f} ms, least {times[0]:6.1f} ms; aim {aim} ms\n")


if __name__ == "__main__":
    main()
