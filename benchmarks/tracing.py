"""Count networks with us and with other counters, each run in a fresh interpreter; write ``tracing.json``.

    python benchmarks/tracing.py [--quick]

The first run makes ``.venv-bench-tracing`` beside this package and needs a package index. Every counter gets the
same torch modules, built from code with random weights. The others run them on the CPU, as they are meant to be
used; we and torch's own counter on the meta device. Seconds are wall time of the count alone: neither the import of
torch nor the making of the network. "First" is the first count of a process, "again" the second, when whatever is
loaded on demand is there. Memory is the highest of the process above what it held before the count.

A count is "exact" if it is the multiply-accumulates of products, convolutions and attention counted by hand, and
"near" within a hundredth of them: some counters add biases, normalisation or activations, which is another
definition, not a mistake; those that are further off miss whole operators.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

import run  # the neighbour, which says what machine this is

from mlsys.files import write_text

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
VENV = ROOT / ".venv-bench-tracing"
PYTHON = VENV / "bin" / "python"
PEERS = ("torch==2.13.0", "fvcore==0.1.5.post20221221", "torchinfo==1.8.0", "ptflops==0.7.5", "calflops==0.3.2")
HELPERS = ("transformers==5.23.0", "accelerate==1.14.0", "psutil==7.2.2", "setuptools<81")
COUNTERS = ("mlsys", "torch", "fvcore", "torchinfo", "ptflops", "calflops")
# References by hand: tests/oracles/data/flop_counters.csv; GPT-2 XL from its shape (12·L·d²·n + 2·L·n²·d + n·d·words).
NETWORKS = {
    "resnet50": ({}, 4_089_184_256),
    "mobilenet-v2": ({}, 300_774_272),
    "bert-base": ({"sequence": 128}, 11_174_215_680),
    "gpt2": ({"sequence": 1024}, 145_824_153_600),
    "gpt2-xl": ({"sequence": 1024}, 12 * 48 * 1600**2 * 1024 + 2 * 48 * 1024**2 * 1600 + 1024 * 1600 * 50257),
}
TOO_LARGE = {"gpt2-xl"}  # six gigabytes of weights: only where none are allocated
NEAR = 0.01
RECORDED = {"resnet50", "mobilenet-v2"}  # without torch's compiler: no slower at first than torch's own counter
UNITS = {"mlsys": 1, "torch": 2, "fvcore": 1, "torchinfo": 1, "ptflops": 1, "calflops": 2}  # reported per MAC


def prepare() -> None:
    """Make or renew the environment when what it is made from has changed."""
    made_from = "\n".join((*run.needed(), *PEERS, *HELPERS))
    stamp = VENV / "made-from"
    if stamp.exists() and stamp.read_text("utf-8") == made_from:
        return
    print(f"Making {VENV.name} ...", file=sys.stderr)
    venv.create(VENV, with_pip=True, clear=True)
    pip = [str(PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "-e", str(ROOT), *PEERS, *HELPERS], check=True)
    write_text(stamp, made_from)


def count(counter: str, name: str) -> dict[str, Any]:
    """Count one network twice in this process."""
    import torch

    from mlsys.workloads.torch_models import recipe as recipe_of

    torch.set_num_threads(1)
    recipe = recipe_of(name)
    device = "meta" if counter in ("mlsys", "torch") else "cpu"
    sizes = [NETWORKS[name][0].get(size, recipe.default) if isinstance(size, str) else size for size in recipe.shape]
    with torch.device(device):
        module = recipe.make().eval()
        inputs = torch.zeros(1, *sizes, dtype=torch.long if recipe.free == "sequence" else torch.float32)
    module.requires_grad_(False)
    torch.zeros(2, 2) @ torch.zeros(2, 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, processor, reported = [], [], 0.0
    for _ in range(2):
        start, start_processor = time.perf_counter(), time.process_time()
        reported = float(COUNT[counter](module, inputs))
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - start_processor)
        if len(seconds) == 1:
            memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {
        "macs": reported / UNITS[counter],
        "first_seconds": seconds[0],
        "again_seconds": seconds[1],
        "first_cpu_seconds": processor[0],
        "memory_mib": memory,
    }


def _mlsys(module: Any, inputs: Any) -> float:
    from mlsys.workloads import Workload

    return Workload.from_torch(module, inputs).macs.m_as("MAC")


def _torch(module: Any, inputs: Any) -> float:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        module(inputs)
    return counter.get_total_flops()


def _fvcore(module: Any, inputs: Any) -> float:
    from fvcore.nn import FlopCountAnalysis

    return FlopCountAnalysis(module, inputs).unsupported_ops_warnings(False).uncalled_modules_warnings(False).total()


def _torchinfo(module: Any, inputs: Any) -> float:
    from torchinfo import summary

    return summary(module, input_data=inputs, verbose=0).total_mult_adds


def _ptflops(module: Any, inputs: Any) -> float:
    from ptflops import get_model_complexity_info

    # it would make float inputs of its own; these are the same for every counter
    given = {"tokens" if not inputs.is_floating_point() else "x": inputs}
    if inputs.is_floating_point():
        return get_model_complexity_info(
            module, tuple(inputs.shape[1:]), as_strings=False, print_per_layer_stat=False, backend="aten"
        )[0]
    return get_model_complexity_info(
        module, (1,), input_constructor=lambda _: given, as_strings=False, print_per_layer_stat=False, backend="aten"
    )[0]


def _calflops(module: Any, inputs: Any) -> float:
    from calflops import calculate_flops

    counts = calculate_flops(
        module,
        args=[inputs],
        output_as_string=False,
        print_results=False,
        print_detailed=False,
        include_backPropagation=False,
    )
    return counts[0]


COUNT = {name: globals()[f"_{name}"] for name in COUNTERS}


def again_at_another_batch() -> dict[str, float]:
    """Return how long a captured GPT-2 XL takes to be counted at another batch and sequence."""
    from mlsys.workloads import load

    start = time.perf_counter()
    network = load("gpt2-xl")
    captured = time.perf_counter() - start
    times = []
    for batch in range(2, 12):
        start = time.perf_counter()
        assert network.at(batch=batch, sequence=64 * batch).flops.magnitude
        times.append(time.perf_counter() - start)
    return {"capture_seconds": captured, "again_seconds": sorted(times)[len(times) // 2]}


def measured(*arguments: str) -> dict[str, Any]:
    """Run this file in the environment and return what it prints."""
    command = [str(PYTHON), str(HERE / "tracing.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1][:200]}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    """Parse the command line and do what it asks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one small network; writes nothing")
    parser.add_argument("--one", nargs=2, metavar=("COUNTER", "NETWORK"), help=argparse.SUPPRESS)
    parser.add_argument("--sizes", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one or given.sizes:
        print(json.dumps(count(*given.one) if given.one else again_at_another_batch()))
        return
    prepare()
    rows = []
    for name in ["mobilenet-v2"] if given.quick else NETWORKS:
        for counter in COUNTERS:
            if name in TOO_LARGE and counter not in ("mlsys", "torch"):
                continue
            row = {"network": name, "counter": counter, **measured("--one", counter, name)}
            if "macs" in row:
                row["over_reference"] = row["macs"] / NETWORKS[name][1]
                row["exact"] = row["macs"] == NETWORKS[name][1]
                row["near"] = abs(row["over_reference"] - 1) < NEAR
            rows.append(row)
            print(
                "  ".join(
                    f"{key} {value:.4g}" if isinstance(value, float) else f"{value}" for key, value in row.items()
                )
            )
    correct = {
        counter: {
            "networks": sum(row["counter"] == counter for row in rows),
            "exact": sum(row.get("exact", False) for row in rows if row["counter"] == counter),
            "near": sum(row.get("near", False) for row in rows if row["counter"] == counter),
        }
        for counter in COUNTERS
    }
    for counter, totals in correct.items():
        print(f"{counter:<10} {totals['exact']} exact, {totals['near']} near, of {totals['networks']}")
    sizes = measured("--sizes")
    print("GPT-2 XL with free sizes:", sizes)
    ours = {row["network"]: row for row in rows if row["counter"] == "mlsys"}
    ratios = [
        {
            "what": f"{row['counter']}, {row['network']}",
            "to": "mlsys",
            "first": row["first_seconds"] / ours[row["network"]]["first_seconds"],
            "again": row["again_seconds"] / ours[row["network"]]["again_seconds"],
            "first_cpu": row["first_cpu_seconds"] / ours[row["network"]]["first_cpu_seconds"],
        }
        for row in rows
        if row["counter"] != "mlsys" and "first_seconds" in row
    ]
    slow = [
        row["what"] for row in ratios if row["what"] in {f"torch, {name}" for name in RECORDED} and row["first_cpu"] < 1
    ]
    if not given.quick:
        result = {
            "date": time.strftime("%Y-%m-%d"),
            "machine": run.this_machine(),
            "versions": list(PEERS),
            "rows": rows,
            "correct": correct,
            "ratios": ratios,
            "gpt2-xl with free sizes": sizes,
        }
        text = json.dumps(_rounded(result), indent=1, ensure_ascii=False)
        write_text(HERE / "tracing.json", text + "\n")
    if slow:
        sys.exit(f"The first count takes more processor time than torch's own counter: {', '.join(slow)}")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item if key == "macs" else _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
