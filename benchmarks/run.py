"""Measure in an environment of its own, print ratios, write ``results.json``.

    python benchmarks/run.py [--quick]

The first run makes ``.venv-bench`` beside this package and needs a package index.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from typing import Any

from mlsys.files import write_text

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
VENV = ROOT / ".venv-bench"
PYTHON = VENV / "bin" / "python"
FILES = [str(HERE / name) for name in ("test_import.py", "test_roofline_speed.py", "cache.py")]
PACKAGES = ("mlsys", "mlsysim", "pycachesim", "pint", "numpy", "pytest-benchmark")

# What is divided by what; import times first lose what an empty interpreter takes.
RATIOS = [
    ("import", "import mlsys", "pint and its registry"),
    ("import", "from mlsys import Q_, Hardware", "pint and its registry"),
    ("import", "first twin", "pint and its registry"),
    ("import", "import mlsysim", "pint and its registry"),
    ("import", "import mlsysim", "from mlsys import Q_, Hardware"),
    ("sweep", "bare formula, a million points", "numpy alone, a million points"),
    ("sweep", "checked formula, a million points", "numpy alone, a million points"),
    ("call", "checked formula, one call", "bare formula, one call"),
    ("call", "plain pint, one call", "checked formula, one call"),
    ("model", "mlsysim, ResNet-50 as one operator", "roofline, one operator"),
    ("model", "mlsysim, ResNet-50 as one operator", "roofline, ResNet-50 layer by layer"),
    ("cache", "ordered dictionaries, one level", "cache, 32 KiB in 8 ways"),
    ("cache", "pycachesim, one level", "cache, 32 KiB in 8 ways"),
]


def prepare() -> None:
    """Make or renew the environment when what it is made from has changed."""
    made_from = "\n".join((*needed(), (HERE / "requirements.txt").read_text("utf-8")))
    stamp = VENV / "made-from"
    if stamp.exists() and stamp.read_text("utf-8") == made_from:
        return
    print(f"Making {VENV.name} ...", file=sys.stderr)
    venv.create(VENV, with_pip=True, clear=True)
    pip = [str(PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "-e", str(ROOT), "-r", str(HERE / "requirements.txt")], check=True)
    write_text(stamp, made_from)


def needed() -> list[str]:
    """Return what the package needs, by which an environment is known to be still the right one."""
    requirements: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    return requirements


def measure(quick: bool) -> dict[str, Any]:
    """Run the benchmarks and return pytest-benchmark's report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [str(PYTHON), "-m", "pytest", *FILES, "-q", "--benchmark-only", f"--benchmark-json={report}"]
        command += ["--benchmark-columns=median,iqr,rounds", f"--confcutdir={HERE}", "-p", "no:cacheprovider"]
        command += ["--quick"] if quick else []
        subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "PYTHONHASHSEED": "0"})
        loaded: dict[str, Any] = json.loads(report.read_text())
    return loaded


def this_machine() -> dict[str, Any]:
    """Return what a reader of stored results must know about where they were taken."""
    return {
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load": list(os.getloadavg()),
    }


def versions() -> dict[str, str]:
    """Return the versions that were measured."""
    code = (
        f"from importlib.metadata import version; import json; print(json.dumps({{n: version(n) for n in {PACKAGES}}}))"
    )
    measured: dict[str, str] = json.loads(subprocess.check_output([str(PYTHON), "-c", code], text=True))
    return measured


def summary(report: dict[str, Any]) -> dict[str, Any]:
    """Return medians and ratios, with the machine they were taken on."""
    seconds: dict[str, dict[str, float]] = {}
    rates: dict[str, float] = {}
    for item in report["benchmarks"]:
        extra = item["extra_info"]
        seconds.setdefault(item["group"], {})[extra["name"]] = item["stats"]["median"]
        if extra.get("points", 1) > 1:
            rates[extra["name"]] = extra["points"] / item["stats"]["median"]
    idle = seconds["import"].pop("nothing")
    seconds["import"] = {name: value - idle for name, value in seconds["import"].items()}
    ratios = [
        {"what": over, "to": under, "ratio": seconds[group][over] / seconds[group][under]}
        for group, over, under in RATIOS
    ]
    return {
        "date": report["datetime"][:10],
        "machine": {"processor": report["machine_info"]["cpu"].get("brand_raw", "unknown"), **this_machine()},
        "versions": versions(),
        "median_seconds": seconds,
        "points_per_second": rates,
        "ratios": ratios,
    }


def _rounded(value: Any) -> Any:
    """Return plain data with four significant digits: a clock gives no more."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def main() -> None:
    """Parse the command line and do what it asks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds; writes nothing")
    quick = parser.parse_args().quick
    prepare()
    result = summary(measure(quick))
    print(f"\n{result['date']}, {result['machine']['processor']}, Python {result['machine']['python']}")
    for group, items in result["median_seconds"].items():
        for name, value in items.items():
            print(f"  {group:<7} {name:<40} {value * 1e6:>14,.2f} µs")
    for name, rate in result["points_per_second"].items():
        print(f"  rate    {name:<40} {rate:>14,.0f} points/s")
    print()
    for row in result["ratios"]:
        print(f"  {row['ratio']:>12,.3g} ×  {row['what']}  /  {row['to']}")
    if not quick:
        write_text(HERE / "results.json", json.dumps(_rounded(result), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
