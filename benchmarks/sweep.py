"""Time a sweep of 19,200 points on one core, beside mlsysim's points; print ratios, write ``sweep.json``.

    python benchmarks/sweep.py [--quick]

Seconds are processor time (user and system) of one process, without the import of the package
but with everything else: reading the devices, writing the networks down or capturing them, and
the table of results. Each number is the median of fresh interpreters. Rates count the points that
have an answer: one that is refused for want of a precision costs us nothing, and mlsysim answers
those from another precision. The environments are those of ``run.py`` (mlsysim) and ``tracing.py``
(torch); both are made on first use.

What is compared, and what is not: a point of ours is a whole network kernel by kernel, with a
roofline bound and a calibrated estimate (84 tilings of every product); a point of mlsysim is one
call of its ``Engine.solve``, a network taken as one operator. It has no sweep of its own that is
faster than calling it; its points are its eight networks of the same names on all its devices.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from mlsys.files import write_text

sys.path.insert(0, str(Path(__file__).resolve().parent))

import run  # the neighbour, which makes the environment with mlsysim
import tracing  # and the one with torch

HERE = Path(__file__).resolve().parent
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
PRECISIONS = ["fp32", "fp16", "int8", "int4"]
NETWORKS = ["resnet50", "mobilenet_v2", "bert-base", "gpt2", "vit-l16", "llama-3-8b", "efficientnet_b0", "vgg16"]
CAPTURED = ["resnet50", "mobilenet-v2", "bert-base", "gpt2", "vit-l16", "squeezenet-1.0", "efficientnet-b0", "vgg16"]

OURS = """
import json, sys, time
from mlsys.sweep import SweepSpec, sweep
models, batches, precisions, fusion = json.loads(sys.argv[1])
start, wall = time.process_time(), time.perf_counter()
from mlsys import Hardware
devices = [device.id for device in Hardware.Cloud][:60]
spec = SweepSpec(models=models, devices=devices, batches=batches, precisions=precisions, fusion=fusion)
found = sweep(spec, jobs=1)
seconds = time.process_time() - start
print(json.dumps({"points": len(found), "answered": len(found.answered), "cpu_seconds": seconds,
                  "wall_seconds": time.perf_counter() - wall}))
"""
PEER = """
import json, sys, time
import mlsysim
batches, precisions = json.loads(sys.argv[1])
m = mlsysim.Models
models = [m.Vision.ResNet50, m.Vision.MobileNetV2, m.Language.BERT_Base, m.Language.GPT2_Small, m.Vision.ViT_Large,
          m.Language.Llama3_8B, m.Vision.EfficientNetB0, m.Vision.VGG16]
start = time.process_time()
groups = (getattr(mlsysim.Hardware, name) for name in ("Cloud", "Edge", "Mobile", "Tiny", "Workstation"))
devices = [found for group in groups for name in dir(group) if not name.startswith("_") and name != "list"
           for found in [getattr(group, name)]]
points = failed = 0
for model in models:
    for device in devices:
        for precision in precisions:
            for batch in batches:
                points += 1
                try:
                    mlsysim.Engine.solve(model, device, batch_size=batch, precision=precision)
                except Exception:
                    failed += 1
print(json.dumps({"points": points, "answered": points - failed, "cpu_seconds": time.process_time() - start}))
"""
AGAIN = """
import json, statistics, time
from mlsys.sweep import SweepSpec
from mlsys.sweep.evaluate import evaluate_points
from mlsys.sweep.points import enumerate_points
devices = ["A100", "H100", "T4", "L4", "V100", "MI300X", "TPUv4", "A10", "L40S", "H200"]
found = {}
for name in ("resnet50", "gpt2", "gpt2-xl"):
    spec = SweepSpec(models=[name], devices=devices, batches=list(range(1, 9)),
                     precisions=["bf16"], fusion=["off"])
    points = enumerate_points(spec)
    start = time.process_time()
    evaluate_points(points[:1])
    capture = time.process_time() - start
    device, batch = [], []
    for point in points[1:10]:
        start = time.process_time()
        evaluate_points([point])
        device.append(time.process_time() - start)
    for point in points[10::10]:
        start = time.process_time()
        evaluate_points([point])
        batch.append(time.process_time() - start)
    found[name] = {"capture_cpu_seconds": capture, "another_device_cpu_seconds": statistics.median(device),
                   "another_batch_cpu_seconds": statistics.median(batch)}
print(json.dumps(found))
"""


def measured(python: Path, code: str, *given: Any) -> dict[str, Any]:
    """Run code in a fresh interpreter on one core and return what it prints."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # modules that are loaded on the way would be compiled each time
    command = [str(python), "-c", code, *map(json.dumps, given)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, cwd=HERE.parent)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def median(python: Path, code: str, rounds: int, *given: Any) -> dict[str, Any]:
    """Return the run with the median of processor time."""
    runs = sorted((measured(python, code, *given) for _ in range(rounds)), key=lambda each: each["cpu_seconds"])
    middle = runs[len(runs) // 2]
    return {**middle, "answered_per_cpu_second": middle["answered"] / middle["cpu_seconds"], "rounds": rounds,
            "spread": [runs[0]["cpu_seconds"], runs[-1]["cpu_seconds"]]}  # fmt: skip


def main() -> None:
    """Parse the command line and do what it asks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round; writes nothing")
    quick = parser.parse_args().quick
    run.prepare()
    tracing.prepare()
    rounds = 1 if quick else 5
    rows = {}
    for name, python, code, count, given in (
        ("catalogue", run.PYTHON, OURS, rounds, (NETWORKS, BATCHES, PRECISIONS, ["on"])),
        ("mlsysim", run.PYTHON, PEER, rounds, (BATCHES, PRECISIONS)),
        ("captured from torch", tracing.PYTHON, OURS, min(rounds, 3), (CAPTURED, BATCHES, PRECISIONS, ["off"])),
        ("captured and fused", tracing.PYTHON, OURS, min(rounds, 3), (CAPTURED, BATCHES, PRECISIONS, ["on"])),
    ):
        row = rows[name] = median(python, code, count, given)
        print(f"{name:<22} {row['points']:>8,} points  {row['cpu_seconds']:>8.2f} s CPU  "
              f"{row['answered_per_cpu_second']:>10,.0f} answers/s", flush=True)  # fmt: skip
    again = measured(tracing.PYTHON, AGAIN)
    for name, row in again.items():
        print(f"{name}: " + ", ".join(f"{key} {value:.4g}" for key, value in row.items()))
    peer = rows["mlsysim"]["answered_per_cpu_second"]
    ratios = [
        {"what": f"answered points a second, {name}", "to": "mlsysim", "ratio": row["answered_per_cpu_second"] / peer}
        for name, row in rows.items()
        if name != "mlsysim"
    ]
    for ratio in ratios:
        print(f"{ratio['ratio']:>8.1f} × {ratio['what']} / {ratio['to']}")
    if quick:
        return
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": run.this_machine(),
        "versions": {**run.versions(), "torch": tracing.PEERS[0].partition("==")[2]},
        "rows": rows,
        "a captured network again": again,
        "ratios": ratios,
    }
    text = json.dumps(run._rounded(result), indent=1, ensure_ascii=False)
    write_text(HERE / "sweep.json", text + "\n")


if __name__ == "__main__":
    main()
