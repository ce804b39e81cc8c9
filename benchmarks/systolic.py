"""Our systolic arrays beside SCALE-Sim 3.0.0 in one run on one machine; appends to ``systolic.json``.

    python benchmarks/systolic.py [--quick]

The first run makes ``.venv-scalesim`` beside this package and needs a package index; the tool
wants an older numpy than we use, so that it has an environment of its own.

The machine moves the same values, records every address and runs the buffers, as the tool does,
and also multiplies. A closed form is one call that counts as the tool does, checks included; in a
sweep it is one of a million cases in the physical convention, cycles and accesses of every level.
Times are processor time. Both must agree on the cycles before anything is timed.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from mlsys.files import write_text
from mlsys.models.systolic import count_systolic, dram_accesses, simulate_fast

HERE = Path(__file__).resolve().parent
VENV = HERE.parent / ".venv-scalesim"
PEER = ("numpy<2.4", "scalesim==3.0.0")
KILOBYTES, POINTS = 64, 1_000_000
# m, n, k, rows, columns, dataflow, and how often the tool runs it.
CASES = [
    (128, 128, 128, 8, 8, "ws", 3),
    (128, 128, 128, 32, 32, "ws", 5),
    (128, 128, 128, 32, 32, "os", 5),
    (128, 128, 128, 128, 128, "ws", 5),
    (512, 512, 512, 32, 32, "ws", 1),
]


def peer(cases: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return what SCALE-Sim takes for the cases."""
    python = VENV / "bin" / "python"
    if not python.exists():
        print(f"Making {VENV.name} ...", file=sys.stderr)
        venv.create(VENV, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PEER], check=True)
    arguments = json.dumps([(*case[:6], KILOBYTES, case[6]) for case in cases])
    text = subprocess.check_output([str(python), str(HERE / "systolic_peer.py"), arguments], text=True)
    answers: list[dict[str, Any]] = json.loads(text.splitlines()[-1])
    return answers


def median(work: Callable[[], Any], rounds: int) -> float:
    """Return the median time of ``work``, after one call that does not count."""
    work()
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def sweep_seconds(dataflow: str, rounds: int) -> float:
    """Return the time of one case in a sweep of a million, cycles and all accesses."""
    rng = np.random.default_rng(0)
    sizes = [rng.integers(1, high, POINTS) for high in (5000, 5000, 5000, 257, 257)]
    words = {"ifmap_words": 65536, "filter_words": 65536, "ofmap_words": 65536}
    return median(lambda: count_systolic(*sizes, dataflow, **words), rounds) / POINTS


def measure(quick: bool) -> dict[str, Any]:
    """Run both and return times and ratios."""
    cases = [(*case[:6], 1) for case in CASES[:4]] if quick else CASES
    words = KILOBYTES * 1024
    sweep = {dataflow: sweep_seconds(dataflow, 3 if quick else 7) for dataflow in ("ws", "os")}
    rows = []
    for case, theirs in zip(cases, peer(cases), strict=True):
        m, n, k, height, width, dataflow, _ = case
        rng = np.random.default_rng(1)
        a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))

        def machine(a: Any = a, b: Any = b, height: int = height, width: int = width, dataflow: str = dataflow) -> None:
            run = simulate_fast(a, b, height, width, dataflow, trace=True)
            dram_accesses(run, words, words, words)

        def closed(shape: tuple[Any, ...] = case[:6]) -> Any:
            return count_systolic(
                *shape, convention="scalesim", ifmap_words=words, filter_words=words, ofmap_words=words
            )

        if closed().cycles != theirs["total_cycles"]:
            raise SystemExit(f"{case}: we count {closed().cycles} cycles, the tool {theirs['total_cycles']}")
        ours = median(machine, 5 if quick else 21), median(closed, 101), sweep[dataflow]
        rows.append(
            {
                "case": f"{m}×{n}×{k} on {height}×{width}, {dataflow}",
                "scalesim_seconds": theirs["seconds"],
                "machine_seconds": ours[0],
                "closed_form_seconds": ours[1],
                "closed_form_in_a_sweep_seconds": ours[2],
                "machine_times_faster": theirs["seconds"] / ours[0],
                "closed_form_times_faster": theirs["seconds"] / ours[1],
                "closed_form_in_a_sweep_times_faster": theirs["seconds"] / ours[2],
            }
        )
    return {
        "date": date.today().isoformat(),
        "machine": {
            "cores": os.cpu_count(),
            "system": platform.platform(terse=True),
            "python": platform.python_version(),
        },
        "versions": {"scalesim": "3.0.0", **{name: version(name) for name in ("numpy", "numba")}},
        "configurations_per_second": {dataflow: 1 / seconds for dataflow, seconds in sweep.items()},
        "rows": rows,
    }


def main() -> None:
    """Measure, print and append."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds; writes nothing")
    quick = parser.parse_args().quick
    result = measure(quick)
    for row in result["rows"]:
        print(
            f"{row['case']:<32} SCALE-Sim {row['scalesim_seconds']:8.3f} s; machine, memory included "
            f"{row['machine_seconds'] * 1e3:7.2f} ms ({row['machine_times_faster']:,.0f} ×); closed form "
            f"{row['closed_form_seconds'] * 1e6:5.1f} µs ({row['closed_form_times_faster']:,.0f} ×), in a sweep "
            f"{row['closed_form_in_a_sweep_times_faster']:,.0f} ×"
        )
    print({name: f"{rate:,.0f} configurations/s" for name, rate in result["configurations_per_second"].items()})
    if not quick:
        path = HERE / "systolic.json"
        runs = json.loads(path.read_text("utf-8")) if path.exists() else []
        rounded = json.loads(json.dumps(result), parse_float=lambda text: float(f"{float(text):.4g}"))
        write_text(path, json.dumps([*runs, rounded], indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
