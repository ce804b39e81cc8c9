"""Run every benchmark that stores what it measured, and say each ratio before and after.

    python benchmarks/everything.py                      # all, one after the other; needs a quiet machine
    python benchmarks/everything.py --only sweep systolic
    python benchmarks/everything.py --compare            # measure nothing: what is stored beside the last commit

"Before" is what the last commit stores (``--since`` names another). A number that is worse than its aim is marked, and
so is one that fell by more than a tenth; the exit status is 1 if one misses its aim.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
Numbers = dict[str, float]


def _ratios(stored: Any) -> Numbers:
    return {f"{row['what']} / {row['to']}": row["ratio"] for row in stored["ratios"]}


def _results(stored: Any) -> Numbers:
    rates = {f"{name}, a second": rate for name, rate in stored["points_per_second"].items() if "cache" in name}
    return _ratios(stored) | rates


def _tracing(stored: Any) -> Numbers:
    seconds = {
        f"first count of {row['network']}, s": row["first_cpu_seconds"]
        for row in stored["rows"]
        if row["counter"] == "mlsys"
    }
    return seconds | {f"{row['what']} / mlsys, first": row["first_cpu"] for row in stored["ratios"]}


def _systolic(stored: Any) -> Numbers:
    kinds = ("machine", "closed_form", "closed_form_in_a_sweep")
    return {f"{row['case']}, {kind}": row[f"{kind}_times_faster"] for row in stored[-1]["rows"] for kind in kinds}


def _mapper(stored: Any) -> Numbers:
    return {name: stored[name] for name in ("least_times_faster", "geometric_mean_times_faster")} | {
        f"{name}, s": seconds for name, seconds in stored["seconds_of_proven_optima"].items()
    }


def _commands(stored: Any) -> Numbers:
    return {f"{name}, s": seconds for name, seconds in stored["cpu_seconds"].items()}


def _sizing(stored: Any) -> Numbers:
    result = {f"{row['what']}, mlsys / {row['tool']}": row["we_over_tool"] for row in stored["published"]}
    return {**stored["ratios"], **result}


SCRIPTS: dict[str, tuple[str, list[str], Callable[[Any], Numbers]]] = {
    "commands": ("commands.json", ["commands.py"], _commands),
    "systolic": ("systolic.json", ["systolic.py"], _systolic),
    "sweep": ("sweep.json", ["sweep.py"], _ratios),
    "tracing": ("tracing.json", ["tracing.py"], _tracing),
    "results": ("results.json", ["run.py"], _results),
    "mapper": ("mapper.json", ["mapper.py", "--ours"], _mapper),
    "sizing": ("sizing.json", ["sizing.py"], _sizing),
}
LEAST = {
    "128×128×128 on 128×128, ws, machine": 50,
    "512×512×512 on 32×32, ws, machine": 50,
    "answered points a second, catalogue / mlsysim": 20,
    "answered points a second, captured from torch / mlsysim": 20,
    "answered points a second, captured and fused / mlsysim": 20,
    "cache, fully associative, 28 million accesses, a second": 20e6,
    "least_times_faster": 100,
}
MOST = {"first count of resnet50, s": 1.0, "mlsys analyze, s": 0.6, "mlsys flops, s": 0.6, "mlsys validate, s": 10.0}
FELL = 0.9


def committed(name: str, since: str) -> Any:
    """Return what a commit stores under a name; None where it has no such file."""
    shown = subprocess.run(["git", "show", f"{since}:benchmarks/{name}"], cwd=HERE, capture_output=True, text=True)
    return json.loads(shown.stdout) if shown.returncode == 0 else None


def mark(name: str, before: float | None, after: float) -> str:
    """Return what is to be said of a number: that it misses its aim, or that it fell."""
    if after < LEAST.get(name, 0.0) or after > MOST.get(name, float("inf")):
        return f"MISSES {LEAST.get(name, MOST.get(name)):g}"
    better = None if before is None else before / after if name.endswith(", s") else after / before
    return "fell" if better is not None and better < FELL else ""


def main() -> None:
    """Run, and print what was and what is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(SCRIPTS), default=list(SCRIPTS))
    parser.add_argument("--compare", action="store_true", help="run nothing")
    parser.add_argument("--since", default="HEAD", help="the commit whose numbers stand as before")
    given = parser.parse_args()
    failed = []
    for name in given.only:
        if not given.compare:
            print(f"--- {name}", flush=True)
            done = subprocess.run([sys.executable, *(str(HERE / SCRIPTS[name][1][0]), *SCRIPTS[name][1][1:])])
            failed += [f"{name} ended with {done.returncode}"] if done.returncode else []
    for name in given.only:
        file, _, numbers = SCRIPTS[name]
        old = committed(file, given.since)
        before: Numbers = {} if old is None else numbers(old)
        if not (HERE / file).exists():
            continue
        print(f"\n{name}")
        for what, after in numbers(json.loads((HERE / file).read_text("utf-8"))).items():
            line = mark(what, before.get(what), after)
            was = f"{before[what]:>14,.4g}" if what in before else f"{'':>14}"
            print(f"  {was} → {after:>14,.4g}  {what}  {line}".rstrip())
            failed += [f"{what}: {after:.4g} {line}"] if line.startswith("MISSES") else []
    if failed:
        sys.exit("\n" + "\n".join(failed))


if __name__ == "__main__":
    main()
