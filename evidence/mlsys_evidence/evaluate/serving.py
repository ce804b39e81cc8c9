"""Simulated servers beside published throughput and latency of language-model serving."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from mlsys.hardware import as_system
from mlsys.inputs import csv_records
from mlsys.mapping.parallel import Layout
from mlsys.models.serving import ServerSettings, ServingRun, TabulatedSteps, offline_requests, simulate
from mlsys.models.serving.decoder_steps import served_model
from mlsys.workloads.transformer_config import load_decoder

ROWS = Path(__file__).parents[1] / "data" / "scale" / "serving_points.csv"

MODELS = {
    "Llama 3.1 405B": "llama-3.1-405b",
    "Llama 3.1 8B": "llama-3.1-8b",
    "Llama 3.3 70B": "llama-3.3-70b",
}
"""Names of the rows, and of the catalogue."""
SYSTEMS = {"H100": "DGX_H100", "H200": "DGX_H200", "B200": "DGX_B200", "GB200": "GB200_NVL72"}
"""The GPUs that trtllm-bench ran on, by the systems that the page names."""
QUEUED = {
    (128, 128): 30000, (128, 2048): 3000, (128, 4096): 1500, (1000, 2000): 1500, (2048, 128): 3000,
    (2048, 2048): 1500, (5000, 500): 1500, (1000, 1000): 3000, (500, 2000): 3000, (20000, 2000): 1000,
}  # fmt: skip
"""Number of requests by prompt and output, NVIDIA/TensorRT-LLM@00f37686:docs/source/performance/perf-overview.md."""
# The same page: 0.95 of the memory that is free goes to the cache. Its checkpoints of FP8 and FP4 cache in FP8.
_FREE, _CACHE = 0.95, "fp8"
_SERVER = ServerSettings(max_batch=2048, token_budget=8192, block_size=32, preemption="reserve")


@dataclass(frozen=True)
class Comparison:
    """A published number beside the simulated one.

    Attributes
    ----------
    row
        Name of the row.
    quantity
        What is compared, such as ``"output tokens/s"``.
    published, simulated
        Its values.
    """

    row: str
    quantity: str
    published: float
    simulated: float

    @property
    def error(self) -> float:
        """Error of the simulated number as a share of the published one, without its sign."""
        return abs(self.simulated / self.published - 1)


def rows(path: Path = ROWS) -> list[dict[str, str]]:
    """Return the published rows."""
    (_, heads), *records = csv_records(path)
    return [dict(zip(heads, cells, strict=True)) for _, cells in records]


def why_not(row: dict[str, str]) -> str | None:
    """Return why a row cannot be simulated; None if it can."""
    if row["stack"].startswith("MLPerf"):
        return "the lengths of the prompts are not in the log"
    if not row["load_type"].startswith("offline max"):
        return "neither load nor number format is stated"
    if row["model"] not in MODELS or row["chip"] not in SYSTEMS:
        return "no such model or system in the catalogue"
    return None


@lru_cache(maxsize=64)
def _server(model: str, chip: str, chips: int, precision: str) -> tuple[ServerSettings, TabulatedSteps]:
    served = served_model(
        as_system(SYSTEMS[chip]),
        load_decoder(MODELS[model]),
        layout=Layout(tp=chips),
        weight_format=precision.lower(),
        kv_format=_CACHE,
        usable=_FREE,
    )
    settings = replace(_SERVER, blocks=served.blocks(_SERVER))
    return settings, served.steps(settings, max(prompt + output for prompt, output in QUEUED))


def offline(row: dict[str, str]) -> ServingRun:
    """Return the simulated run of a row whose requests are all queued at the start."""
    prompt, output = int(row["ISL"]), int(row["OSL"])
    settings, steps = _server(row["model"], row["chip"], int(row["TP"]), row["precision"])
    return simulate(offline_requests(QUEUED[prompt, output], prompt, output), steps, settings)


def comparisons(published: Iterable[dict[str, str]]) -> list[Comparison]:
    """Return the simulated throughput beside the published one, for the rows that can be simulated."""
    found = []
    for row in published:
        if why_not(row) is None:
            run = offline(row)
            rate = float(run.requests.output.sum()) / run.span
            found.append(Comparison(row["id"], "output tokens/s", float(row["output_tok_per_s"]), rate))
    return found


def summary(compared: Iterable[Comparison]) -> tuple[int, float, float, Comparison]:
    """Return the number of comparisons, the median and the 90th percentile of their errors, and the worst of them."""
    listed = list(compared)
    errors = np.array([each.error for each in listed])
    return len(listed), float(np.median(errors)), float(np.percentile(errors, 90)), listed[int(errors.argmax())]
