"""Time our mapper against ZigZag 3.9.1, print ratios, write ``mapper.json``.

    python benchmarks/mapper.py [--ours]

Both get the same memories, the same lanes and the same layers, and look for least energy. The
tool runs in an environment of its own, ``.venv-zigzag``, that the first run makes; its time
is one call of its API without the import, in processor time as ours. Ours is the median of
several calls after one that warms up. With ``--ours``, the times recorded of the tool are kept.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from time import process_time
from typing import Any

from mlsys.files import write_text

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
VENV = ROOT / ".venv-zigzag"
PYTHON = VENV / "bin" / "python"
PACKAGES = ["zigzag-dse==3.9.1", "six"]

# Name to batch, output and input channels, output rows and columns, filter rows and columns.
LAYERS = {
    "gemm 512×256×32": (512, 256, 32, 1, 1, 1, 1),
    "gemm 128×128×128": (128, 128, 128, 1, 1, 1, 1),
    "gemm 1024×1024×1024": (1024, 1024, 1024, 1, 1, 1, 1),
    "gemm 32×2048×2048": (32, 2048, 2048, 1, 1, 1, 1),
    "conv 1×1, 64→256 @ 56": (1, 256, 64, 56, 56, 1, 1),
    "conv 3×3, 64→64 @ 56": (1, 64, 64, 56, 56, 3, 3),
}
MACHINES = {"tpu_like": "tpu_like", "edge_tpu_like": "edge_tpu_like", "eyeriss_like": "default"}

PEER = """
import json, logging, sys, tempfile, time
from pathlib import Path
import zigzag
from zigzag.api import get_hardware_performance_zigzag
logging.disable(logging.CRITICAL)
inputs = Path(zigzag.__file__).parent / "inputs"
machine, mapping, sizes = json.loads(sys.argv[1])
layer = {
    "id": 0, "name": "layer", "operator_type": "Conv",
    "equation": "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]",
    "dimension_relations": ["ix=1*ox+1*fx", "iy=1*oy+1*fy"],
    "loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"], "loop_sizes": sizes,
    "operand_precision": {"O": 16, "O_final": 8, "W": 8, "I": 8}, "operand_source": {"I": 0, "W": 0},
}
with tempfile.TemporaryDirectory() as folder:
    start = time.process_time()
    energy, *_ = get_hardware_performance_zigzag(
        [layer], str(inputs / f"hardware/{machine}.yaml"), str(inputs / f"mapping/{mapping}.yaml"),
        opt="energy", dump_folder=folder, loma_show_progress_bar=False,
    )
    taken = time.process_time() - start
print("answer", json.dumps([energy, taken]))
"""


def prepare() -> None:
    """Make the environment of the tool once."""
    if not PYTHON.exists():
        print(f"Making {VENV.name} ...", file=sys.stderr)
        venv.create(VENV, with_pip=True)
        subprocess.run([str(PYTHON), "-m", "pip", "install", "-q", *PACKAGES], check=True)


def of_the_tool(machine: str, sizes: tuple[int, ...]) -> tuple[float, float]:
    """Return energy in pJ and seconds of one search of the tool."""
    question = json.dumps([machine, MACHINES[machine], sizes])
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [str(PYTHON), "-c", PEER, question], capture_output=True, text=True, check=True, cwd=folder
        )
    line = next(line for line in done.stdout.splitlines() if line.startswith("answer "))
    energy, seconds = json.loads(line.removeprefix("answer "))
    return energy, seconds


def of_ours(machine: str, sizes: tuple[int, ...], rounds: int = 7) -> tuple[float, float]:
    """Return energy in pJ and the median seconds of one search of ours."""
    from mlsys.mapping import conv_space
    from mlsys.planner.mapper.accelerator import accelerator
    from mlsys.planner.mapper.paths import least_energy

    batch, out_channels, in_channels, *rest = sizes
    chip, space = accelerator(machine), conv_space(batch, in_channels, out_channels, *rest)
    energy, times = least_energy(chip, space, ("few",)).energy, []
    for _ in range(rounds):
        start = process_time()
        least_energy(chip, space, ("few",))
        times.append(process_time() - start)
    return energy, statistics.median(times)


def of_hierarchies() -> dict[str, float]:
    """Return seconds of proven optima of our own machines: three levels, one core."""
    from mlsys import Hardware
    from mlsys.planner.mapper import best_mapping, best_two_level, cache, map_network
    from mlsys.workloads import gemm, zoo

    a100, seconds = Hardware.Cloud.A100, {}
    questions = {
        "gemm 4096³, three levels, energy, A100": lambda: best_mapping(a100, gemm(4096, 4096, 4096)),
        "gemm 4096³, three levels, EDP, A100": lambda: best_mapping(a100, gemm(4096, 4096, 4096), "edp"),
        "ResNet-50, 54 layers, three levels, energy, A100": lambda: map_network(
            a100, zoo.network("resnet50", precision="fp16")
        ),
        "gemm (10⁶)³, two levels, all tiles": lambda: best_two_level(10**6, 10**6, 10**6, 10**6),
    }
    for name, ask in questions.items():
        cache.clear()
        start = process_time()
        ask()
        seconds[name] = process_time() - start
    cache.clear()
    seconds["slowest layer of ResNet-50"] = max(
        _timed(lambda layer=layer: best_mapping(a100, layer)) for layer in zoo.network("resnet50", precision="fp16")
    )
    return seconds


def _timed(ask: Any) -> float:
    start = process_time()
    ask()
    return process_time() - start


def main() -> None:
    """Parse the command line and do what it asks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", action="store_true", help="keep the recorded times of the tool")
    only_ours = parser.parse_args().ours
    path, rows = HERE / "mapper.json", []
    kept = {(r["machine"], r["layer"]): r for r in json.loads(path.read_text())["rows"]} if only_ours else {}
    if not only_ours:
        prepare()
    for machine in MACHINES:
        for layer, sizes in LAYERS.items():
            energy, seconds = of_ours(machine, sizes)
            if only_ours:
                theirs = kept[machine, layer]
                tool_energy, tool_seconds = theirs["zigzag_pJ"], theirs["zigzag_seconds"]
            else:
                tool_energy, tool_seconds = of_the_tool(machine, sizes)
            row = {
                "machine": machine,
                "layer": layer,
                "zigzag_pJ": tool_energy,
                "our_pJ": energy,
                "zigzag_seconds": float(f"{tool_seconds:.4g}"),
                "our_seconds": float(f"{seconds:.4g}"),
                "times_faster": float(f"{tool_seconds / seconds:.4g}"),
                "energy_ratio": float(f"{energy / tool_energy:.6g}"),
            }
            rows.append(row)
            print(
                f"{machine:<14} {layer:<24} {row['times_faster']:>8,.0f} × faster, energy × {row['energy_ratio']:.4f}"
            )
    faster = [row["times_faster"] for row in rows]
    alone = {name: float(f"{seconds:.3g}") for name, seconds in of_hierarchies().items()}
    for name, seconds in alone.items():
        print(f"{name:<52} {seconds:8.3f} s")
    print(f"geometric mean {statistics.geometric_mean(faster):,.0f} ×, least {min(faster):,.0f} ×")
    result = {
        "packages": PACKAGES,
        "lpf_limit": "the tool's default, 6",
        "python": platform.python_version(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "geometric_mean_times_faster": float(f"{statistics.geometric_mean(faster):.4g}"),
        "least_times_faster": min(faster),
        "rows": rows,
        "seconds_of_proven_optima": alone,
    }
    write_text(path, json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
