"""Time what the chapters of the edge promise: 1,000 modelled points, and a plan of 60 stages on 4 devices.

    python benchmarks/edge.py

Prints one JSON object with seconds of wall and processor time, of the work alone: neither the import of torch nor
the training of the network is in it. The promises are 5 s and 2 s on a quiet core; nothing is asserted, a benchmark
is no test.
"""

import json
import random
import time
from typing import Any

from mlsys.edge import Config
from mlsys.edge.evaluate import VariantMeasurement, modelled_times
from mlsys.edge.points import points_of
from mlsys.planner.placement import Scenario, plan
from mlsys.workloads import load

DEVICES, STAGES, SCALES = 4, 60, 25
CUTS = {"structured": [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], "unstructured": [0.5, 0.9]}


def clocks() -> tuple[float, float]:
    """Return wall and processor time, s."""
    return time.perf_counter(), time.process_time()


def since(began: tuple[float, float]) -> dict[str, float]:
    """Return what has gone by of both since then: on a shared machine only the second says what the work takes."""
    return {name: now - then for name, now, then in zip(("wall_s", "cpu_s"), clocks(), began, strict=True)}


def modelled_points() -> dict[str, Any]:
    """Model a network in four formats at ten levels of pruning and 25 clocks on a board, and find the front."""
    config = Config(
        {
            "network": "small-cnn",
            "latency": {"source": "modelled", "device": "RaspberryPi5"},
            "precisions": ["fp32", "fp16", "int8-dynamic", "int8-static"],
            "pruning": CUTS,
            "clocks": [1 - 0.03 * step for step in range(SCALES)],
        }
    )
    work = load("small-cnn", precision="fp32")
    draw = random.Random(0)
    began = clocks()
    measured = []
    for variant in config.variants:
        core, memory = modelled_times("RaspberryPi5", work, variant.precision)
        share = 1 - variant.level
        measured.append(
            VariantMeasurement(
                *variant,
                accuracy=0.9 + 0.08 * draw.random(),
                core_ms=core * share,
                memory_ms=memory * share,
                weight_bytes=int(81_960 * share),
                activation_bytes=15_680,
                moved_bytes=100_000,
                macs=1_031_744,
                parameters=20_490,
                nonzero=int(20_490 * share),
            )
        )
    points = points_of(config, measured)
    return {"points": len(points), "front": sum(point.pareto for point in points), **since(began)}


def long_chain() -> dict[str, Any]:
    """Plan 60 stages on 4 devices under tight memory, to the proof."""
    draw = random.Random(0)
    names = [f"d{number}" for number in range(DEVICES)]
    scenario = Scenario(
        {
            "name": "sixty",
            "devices": [{"name": name, "memory_mb": 40} for name in names],
            "links": [
                {"from": sender, "to": receiver, "latency_ms": 0.1, "bandwidth_gb_s": 2.0, "energy_mj_per_mb": 0.1}
                for sender in names
                for receiver in names
                if sender != receiver
            ],
            "stages": [
                {
                    "name": f"s{number}",
                    "output_mb": draw.randint(1, 8) / 4,
                    "profiles": {
                        name: {
                            "latency_ms": draw.randint(5, 100) / 10,
                            "energy_mj": draw.randint(5, 100) / 10,
                            "memory_mb": draw.randint(1, 5),
                        }
                        for name in names
                    },
                }
                for number in range(STAGES)
            ],
            "constraints": {},
        }
    )
    began = clocks()
    result = plan(scenario)
    return {"stages": STAGES, "devices": DEVICES, "proven": result.optimal, **since(began)}


def main() -> None:
    """Print the times."""
    print(json.dumps({"modelled_points": modelled_points(), "long_chain": long_chain()}, indent=1))


if __name__ == "__main__":
    main()
