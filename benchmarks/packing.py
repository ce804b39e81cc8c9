"""Time our search for offsets beside omnimalloc 1.0.0 on published instances, write ``packing.json``.

    python benchmarks/packing.py [--ours]

Both search the least block of the instances of google/minimalloc in ``mlsys/planner/memory/data``: ours for
offsets below the bytes that are live at once, which is a proof when it finds them; the tool's allocator
``supermalloc``, its default search, for the least peak it finds in a minute. Times are processor time of one call
without imports and without compiling. The tool runs in an environment of its own, ``.venv-omnimalloc``, that the
first run makes. With ``--ours``, what is recorded of the tool is kept.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import venv
from pathlib import Path
from time import process_time

from mlsys.files import write_text
from mlsys.planner.memory.fixed import FixedBuffers, plan_below

HERE = Path(__file__).resolve().parent
INSTANCES = HERE.parent / "mlsys" / "planner" / "memory" / "data"
VENV = HERE.parent / ".venv-omnimalloc"
PYTHON = VENV / "bin" / "python"
PACKAGES = ["omnimalloc==1.0.0"]
MINUTE = 60.0
PEER = """
import csv, json, sys, time
import omnimalloc as om
from omnimalloc.allocators.supermalloc import SupermallocAllocator

with open(sys.argv[1]) as file:
    rows = list(csv.DictReader(file))
buffers = tuple(
    om.Allocation(id=i, size=int(r["size"]), start=int(r["lower"]), end=int(r["upper"])) for i, r in enumerate(rows)
)
start = time.process_time()
pool = om.Pool(id="pool", allocations=buffers)
pool = om.allocate(pool, SupermallocAllocator(timeout=float(sys.argv[2])), validate=True)
print(json.dumps([pool.size, time.process_time() - start]))
"""


def of_the_tool(path: Path) -> tuple[int, float]:
    """Return the bytes of the block and the seconds that the tool takes."""
    done = subprocess.run(
        [str(PYTHON), "-c", PEER, str(path), str(MINUTE)], capture_output=True, text=True, check=True, cwd=VENV
    )
    peak, seconds = json.loads(done.stdout.splitlines()[-1])
    return peak, seconds


def of_ours(path: Path) -> tuple[int, float, int]:
    """Return the bytes of the block, the seconds, and the states looked at."""
    buffers = FixedBuffers.load(path)
    start = process_time()
    packing = plan_below(buffers, buffers.largest_live, seconds=3600)
    seconds = process_time() - start
    assert packing.offsets is not None, "none of the published instances needs more than is live at once"
    return int((packing.offsets + buffers.size).max()), seconds, packing.states


def main() -> None:
    """Parse the command line and do what it asks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", action="store_true", help="keep what is recorded of the tool")
    only_ours = parser.parse_args().ours
    path = HERE / "packing.json"
    kept = {row["instance"]: row for row in json.loads(path.read_text())["rows"]} if only_ours else {}
    if not only_ours and not PYTHON.exists():
        print(f"Making {VENV.name} ...", file=sys.stderr)
        venv.create(VENV, with_pip=True)
        subprocess.run([str(PYTHON), "-m", "pip", "install", "-q", *PACKAGES], check=True)
    of_ours(INSTANCES / "alloc-E.csv")  # compiles
    rows = []
    for file in sorted(INSTANCES.glob("alloc-*.csv")):
        peak, seconds, states = of_ours(file)
        if only_ours:
            theirs, taken = kept[file.stem]["omnimalloc_bytes"], kept[file.stem]["omnimalloc_seconds"]
        else:
            theirs, taken = of_the_tool(file)
        row = {
            "instance": file.stem,
            "bound_bytes": FixedBuffers.load(file).largest_live,
            "our_bytes": peak,
            "our_seconds": float(f"{seconds:.3g}"),
            "our_states": states,
            "omnimalloc_bytes": theirs,
            "omnimalloc_seconds": float(f"{taken:.3g}"),
        }
        rows.append(row)
        print(
            f"{file.stem:<8} ours {peak:>9,} B in {seconds:6.2f} s ({states:,} states); "
            f"omnimalloc {theirs:>9,} B in {taken:6.2f} s",
            flush=True,
        )
    result = {
        "packages": PACKAGES,
        "python": platform.python_version(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "seconds_given_to_the_tool": MINUTE,
        "rows": rows,
    }
    write_text(path, json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
