"""Simulated servers beside MLPerf Inference: the load at which 99 % of the requests meet the limits of a benchmark.

The logs state neither the lengths of prompts, nor the number format, nor the layout. One number for each data set, the
mean length of its prompts, is inferred from the rows of the offline scenario, which therefore count as fitted; those
of the server and interactive scenarios, which have limits on latency, are then predicted. Formats are the narrowest
that the chip multiplies, as the closed division allows. Submitters tune layouts: offline rows take the smallest one
with room for a cache, the others the best of a few.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mlsys.hardware import as_system
from mlsys.mapping.parallel import Layout
from mlsys.models.serving import Requests, ServerSettings, ServingRun, TabulatedSteps, simulate
from mlsys.models.serving.decoder_steps import served_model
from mlsys.workloads.transformer_config import load_decoder
from mlsys_evidence.evaluate.serving import Comparison

MODELS = {
    "llama2-70b-99": ("llama-2-70b", 1024),
    "mixtral-8x7b": ("mixtral-8x7b", 2048),
    "llama3.1-405b": ("llama-3.1-405b", 20000),
    "llama3.1-8b": ("llama-3.1-8b", 2540),
}
"""Names in the catalogue, and the most tokens of a prompt that are drawn."""
SYSTEMS = {
    "GB200": "GB200_NVL72", "B200": "DGX_B200", "H200": "DGX_H200", "H100": "DGX_H100", "MI300X": "MI300X_platform",
    "MI325X": "MI325X",
}  # fmt: skip
_LIMITS = re.compile(r"p99 TTFT<=(\d+) ms, p99 TPOT<=(\d+) ms")
_SERVER = ServerSettings(max_batch=1024, token_budget=8192, block_size=32)
_WIDER, _BUDGETS = (1, 2, 4), (1024, 8192)
_SECONDS = 200.0  # simulated for each load
_LONGEST_OUTPUT = 2000


def why_not(row: dict[str, str]) -> str | None:
    """Return why a row of MLPerf cannot be simulated; None if it can."""
    if not row["stack"].startswith("MLPerf"):
        return "not of MLPerf"
    if row["model"] not in MODELS:
        return "experts are spread over chips in a way that is not stated"
    if _system(row["chip"]) is None or not row["n_chips"]:
        return "no such system in the catalogue"
    return None


def _system(chip: str) -> str | None:
    return next((system for name, system in SYSTEMS.items() if name in chip), None)


@lru_cache(maxsize=64)
def _server(model: str, system: str, wider: int) -> tuple[int, ServerSettings, TabulatedSteps]:
    """Return the chips of a replica, its settings and the times of its iterations.

    ``wider`` multiplies the smallest tensor parallelism with room for a cache.
    """
    name, longest = MODELS[model]
    narrow = "fp4" if "B200" in system else "fp8"
    machine, decoder = as_system(system), load_decoder(name)
    served = served_model(machine, decoder, weight_format=narrow, kv_format="fp8")
    if wider > 1:
        layout = Layout(tp=wider * served.layout.tp)
        served = served_model(machine, decoder, layout=layout, weight_format=narrow, kv_format="fp8")
    settings = replace(_SERVER, blocks=served.blocks(_SERVER))
    return served.layout.chips, settings, served.steps(settings, longest + _LONGEST_OUTPUT)


def _lengths(mean: float, most: int, number: int, seed: int) -> npt.NDArray[np.int64]:
    """Return exponential lengths, cut at ``most``, with the requested mean."""
    drawn = np.random.default_rng(seed).exponential(1.0, number)
    low, high = 0.1 * mean, 50.0 * mean
    for _ in range(50):
        middle = math.sqrt(low * high)
        if np.minimum(np.ceil(middle * drawn), most).mean() < mean:
            low = middle
        else:
            high = middle
    return np.clip(np.ceil(high * drawn), 1, most).astype(np.int64)


def _run(
    row: dict[str, str], prompt: float, rate: float | None, wider: int = 1, budget: int = _SERVER.token_budget
) -> tuple[ServingRun, int]:
    """Return the run of one replica at its share of ``rate``, all at once without one, and the number of replicas."""
    chips, settings, steps = _server(row["model"], str(_system(row["chip"])), wider)
    settings = replace(settings, token_budget=budget)
    replicas = int(row["n_chips"]) // chips
    most = MODELS[row["model"]][1]
    number = 3000 if rate is None else int(np.clip(rate / replicas * _SECONDS, 200, 30_000))
    gaps = np.random.default_rng(3).exponential(1.0, number)
    arrivals = np.zeros(number) if rate is None else np.cumsum(gaps) * replicas / rate
    output = _lengths(float(row["OSL"]), _LONGEST_OUTPUT, number, 2)
    return simulate(Requests(arrivals, _lengths(prompt, most, number, 1), output), steps, settings), replicas


def offline_rate(row: dict[str, str], prompt: float) -> float:
    """Return the output tokens per second of an offline row, if prompts have this mean length."""
    run, replicas = _run(row, prompt, None)
    # The last requests run in a batch that empties, in thousands of requests as in a longer run: they are left out.
    ends = np.sort(run.end)
    first, last = int(0.1 * len(ends)), int(0.9 * len(ends))
    return replicas * float(run.requests.output.mean()) * (last - first) / float(ends[last] - ends[first])


def inferred_prompt(rows: Iterable[dict[str, str]]) -> float:
    """Return the mean length of the prompts of a data set at which its offline rows are met in the median."""
    listed = [row for row in rows if row["load_type"] == "offline"]
    low, high = 20.0, MODELS[listed[0]["model"]][1] * 0.8
    for _ in range(8):
        middle = math.sqrt(low * high)
        ratio = np.median([offline_rate(row, middle) / float(row["output_tok_per_s"]) for row in listed])
        low, high = (middle, high) if ratio > 1 else (low, middle)
    return math.sqrt(low * high)


def rate_within_limits(row: dict[str, str], prompt: float) -> tuple[float, int, int]:
    """Return the highest rate, 1/s, at which 99 % of the requests meet the limits of a row, and where it is reached.

    Submitters choose layout and token budget for each row: the best of a few is taken. It is returned as a multiple of
    the smallest tensor parallelism, and the budget.
    """
    match = _LIMITS.search(row["SLO"])
    assert match is not None, row["SLO"]
    first, later = (int(each) / 1e3 for each in match.groups())

    def meets(rate: float, wider: int, budget: int) -> bool:
        run, _ = _run(row, prompt, rate, wider, budget)
        return bool(np.percentile(run.ttft, 99) <= first and np.nanpercentile(run.tpot, 99) <= later)

    published, best, chosen = float(row["request_rate_per_s"]), 0.0, (_WIDER[0], _BUDGETS[-1])
    smallest = _server(row["model"], str(_system(row["chip"])), 1)[0]
    most = min(as_system(str(_system(row["chip"]))).chips, int(row["n_chips"]), 8)
    for wider, budget in itertools.product(_WIDER, _BUDGETS):
        if wider * smallest > most:
            continue
        low, high = max(published / 16, best), published * 16
        if best and not meets(best, wider, budget):
            continue
        for _ in range(9):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if meets(middle, wider, budget) else (low, middle)
        best, chosen = low, (wider, budget)
    return best, *chosen


PERCENTILES = tuple(f"{name} p{share}" for name in ("TTFT", "TPOT") for share in (50, 99))
"""Latencies that the logs state beside the load."""


def latencies(row: dict[str, str], prompt: float, load: float, wider: int, budget: int) -> list[Comparison]:
    """Return simulated percentiles of latency, ms, beside those of a row.

    Parameters
    ----------
    row, prompt
        The row, and the mean length of its prompts.
    load
        Requests per second that arrive: the published rate, or the simulated one within the limits, which is as near to
        the server's own limit as submitters went to theirs.
    wider, budget
        Where :func:`rate_within_limits` found the highest rate.
    """
    run, _ = _run(row, prompt, load, wider, budget)
    found = []
    for quantity in PERCENTILES:
        name, _, share = quantity.partition(" p")
        published = row[f"{name}_p{share}_ms"]
        values = run.ttft if name == "TTFT" else run.tpot
        if published:
            simulated = 1e3 * float(np.nanpercentile(values, int(share)))
            found.append(Comparison(row["id"], quantity, float(published), simulated))
    return found


def comparisons(rows: Iterable[dict[str, str]]) -> tuple[dict[str, float], list[Comparison], list[Comparison]]:
    """Return the inferred prompt lengths by data set, the load within the limits, and latencies at that load.

    Loads and latencies stand beside the published ones.
    """
    usable = [row for row in rows if why_not(row) is None]
    prompts = {
        model: inferred_prompt([row for row in usable if row["model"] == model])
        for model in dict.fromkeys(row["model"] for row in usable)
    }
    loads, percentiles = [], []
    for row in usable:
        if row["SLO"]:
            prompt = prompts[row["model"]]
            rate, wider, budget = rate_within_limits(row, prompt)
            loads.append(Comparison(row["id"], "requests/s within limits", float(row["request_rate_per_s"]), rate))
            percentiles += latencies(row, prompt, rate, wider, budget)
    return prompts, loads, percentiles
