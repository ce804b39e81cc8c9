"""Result of a simulated server: latency percentiles, goodput, rates and utilisation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlsys.frozen import FrozenDict
from mlsys.models.inference.words import amount
from mlsys.models.record import with_units
from mlsys.models.serving.objectives import Objectives
from mlsys.models.serving.requests import Floats
from mlsys.models.serving.simulate import ServingRun
from mlsys.models.serving.static import StaticRun
from mlsys.provenance import Fact
from mlsys.tables import Table
from mlsys.units import Q_, Quantity

SHARES = (50, 90, 99)
"""Percentiles that are reported."""
_LATENCIES = ("ttft", "tpot", "latency", "queue")


@dataclass(frozen=True)
class ServingResult:
    """A simulated service.

    Attributes
    ----------
    model, device, workload
        Names of the language model, of the system with its layout, and of the requests.
    run
        Times of each request.
    slower, faster
        The same requests where every iteration takes as long as the upper and lower end of its range; None for a
        step function of one's own.
    objectives
        Latency that requests must meet to count as good; None without objectives.
    static
        Static batching with buckets, beside it; None if not requested.
    chips
        Chips of all replicas; None where no system is known.
    assumptions, facts
        What the simulation takes for granted, and the facts it rests on.

    Notes
    -----
    Percentiles are over all requests, from the empty server at the start until the last request has ended.
    """

    model: str
    device: str
    workload: str
    run: ServingRun = field(repr=False)
    slower: ServingRun | None = field(repr=False)
    faster: ServingRun | None = field(repr=False)
    objectives: Objectives | None
    static: StaticRun | None = field(repr=False)
    chips: int | None
    assumptions: tuple[str, ...] = field(repr=False)
    facts: tuple[Fact, ...] = field(repr=False)

    # --- members of every result ------------------------------------------------------------------

    @property
    def time(self) -> Quantity:
        """Mean end-to-end latency, s."""
        return Q_(float(self.run.latency.mean()), "s")

    @property
    def parts(self) -> FrozenDict[str, Quantity]:
        """Mean seconds in the queue, until the first token and until the last; they sum to ``time``."""
        run = self.run
        return FrozenDict(
            {
                "queue": Q_(float(run.queue_time.mean()), "s"),
                "prefill": Q_(float((run.first - run.begin).mean()), "s"),
                "decode": Q_(float((run.end - run.first).mean()), "s"),
            }
        )

    @property
    def range(self) -> tuple[Quantity, Quantity]:
        """Mean latency with every iteration at the lower and at the upper end of its range, s."""
        if self.faster is None or self.slower is None:
            return self.time, self.time
        return Q_(float(self.faster.latency.mean()), "s"), Q_(float(self.slower.latency.mean()), "s")

    @property
    def bound_by(self) -> str:
        """What sets the latency: ``"queue"``, ``"prefill"`` or ``"decode"``, whichever part is longest."""
        parts = self.parts
        return max(parts, key=lambda name: parts[name].magnitude)

    # --- numbers ----------------------------------------------------------------------------------

    def percentile(self, name: str, share: float) -> Quantity:
        """Return a percentile of ``"ttft"``, ``"tpot"``, ``"latency"`` or ``"queue"``, s.

        Raises
        ------
        UnknownNameError
            If there is no such latency.
        """
        from mlsys.unit_checks import checked_choice

        checked_choice("percentile", "name", name, _LATENCIES)
        found = _percentile(self._values(self.run, name), share)
        return Q_(float("nan") if found is None else found, "s")

    @staticmethod
    def _values(run: ServingRun, name: str) -> Floats:
        values: Floats = run.queue_time if name == "queue" else getattr(run, name)
        return values

    @property
    def good(self) -> float | None:
        """Share of the requests that meet all objectives; None without objectives."""
        if self.objectives is None:
            return None
        run, limits = self.run, self.objectives
        met = np.ones(len(run.end), dtype=bool)
        for limit, values in ((limits.ttft, run.ttft), (limits.tpot, run.tpot), (limits.e2e, run.latency)):
            if limit is not None:
                met &= ~(values > limit)  # a request of one token has no TPOT
        return float(met.mean())

    @property
    def tokens_per_second(self) -> float:
        """Output tokens of all requests over the time from the first arrival to the last end."""
        return float(self.run.requests.output.sum() / self.run.span) if self.run.span else 0.0

    @property
    def utilisation(self) -> float:
        """Share of the time in which replicas run iterations."""
        whole = self.run.span * self.run.settings.replicas
        return float(self.run.busy / whole) if whole else 0.0

    def record(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON; numbers stand in the unit that their name ends with."""
        run, settings = self.run, self.run.settings
        requests = run.requests
        rate = len(requests) / run.span if run.span else 0.0
        numbers: dict[str, Any] = {}
        for name in _LATENCIES:
            values = self._values(run, name)
            numbers[f"{name}_mean_seconds"] = _mean(values)
            for share in SHARES:
                numbers[f"{name}_p{share}_seconds"] = _percentile(values, share)
        static = None
        if self.static is not None:
            static = {
                "batches": self.static.batches,
                "prompt_waste": self.static.prompt_waste,
                "output_waste": self.static.output_waste,
                **{f"ttft_p{share}_seconds": _percentile(self.static.ttft, share) for share in SHARES},
                **{f"latency_p{share}_seconds": _percentile(self.static.latency, share) for share in SHARES},
                "busy_seconds": self.static.busy,
            }
        low, high = self.range
        return with_units(
            {
                "model": self.model,
                "device": self.device,
                "workload": self.workload,
                "requests": len(requests),
                "left_out": requests.left_out,
                "arrivals_per_second": requests.rate if np.isfinite(requests.rate) else None,
                "time_seconds": float(self.time.magnitude),
                "time_low_seconds": float(low.magnitude),
                "time_high_seconds": float(high.magnitude),
                "bound_by": self.bound_by,
                "parts": {name: float(part.magnitude) for name, part in self.parts.items()},
                **numbers,
                "span_seconds": run.span,
                "requests_per_second": rate,
                "tokens_per_second": self.tokens_per_second,
                "tokens_per_second_per_chip": None if not self.chips else self.tokens_per_second / self.chips,
                "objectives": None if self.objectives is None else vars(self.objectives),
                "good_share": self.good,
                "goodput_requests_per_second": None if self.good is None else self.good * rate,
                "utilisation": self.utilisation,
                "mean_batch": run.mean_batch,
                "requests_in_system": run.in_system,
                "block_share": run.block_share,
                "most_blocks": run.most_blocks,
                "preemptions": int(run.preemptions.sum()),
                "prefilled_tokens": run.prefilled,
                "prefix_hit_share": run.prefix_hit_share,
                "shared_blocks": settings.shared_blocks,
                "swapping_seconds": run.swapping,
                "iterations": run.iterations,
                "settings": vars(settings),
                "chips": self.chips,
                "static_batching": static,
                "assumptions": list(self.assumptions),
                "facts": [fact.name for fact in self.facts],
            }
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one line for each request, for tables; its arrivals and lengths can be read again as a trace."""
        run = self.run
        columns = {
            "arrival_seconds": run.requests.arrival,
            "prompt_tokens": run.requests.prompt,
            "output_tokens": run.requests.output,
            "replica": run.replica,
            "queue_seconds": run.queue_time,
            "ttft_seconds": run.ttft,
            "tpot_seconds": run.tpot,
            "latency_seconds": run.latency,
            "preemptions": run.preemptions,
        }
        lists = [column.tolist() for column in columns.values()]
        return [
            {name: None if value != value else value for name, value in zip(columns, row, strict=True)}
            for row in zip(*lists, strict=True)
        ]

    def table(self) -> Table:
        """Return a table of latency percentiles."""
        titles = {"ttft": "TTFT", "tpot": "TPOT", "latency": "end to end", "queue": "queue"}
        rows = [
            (titles[name], *(_words(value) for value in (_mean(values), *(_percentile(values, s) for s in SHARES))))
            for name in _LATENCIES
            for values in [self._values(self.run, name)]
        ]
        return Table(f"{self.model} on {self.device}", ("", "mean", *(f"p{share}" for share in SHARES)), rows)

    def explain(self) -> str:
        """Return the result as text, for people."""
        run = self.run
        low, high = self.range
        lines = [
            f"{self.model} on {self.device}: {self.workload}.",
            str(self.table()),
            f"mean latency {_words(float(self.time.magnitude))}, {_words(float(low.magnitude))} to "
            f"{_words(float(high.magnitude))} if every iteration is at an end of its range; most of it {self.bound_by}",
            f"{len(run.end):,} requests in {_words(run.span)}: {len(run.end) / max(run.span, 1e-300):,.4g} requests/s, "
            f"{self.tokens_per_second:,.4g} output tokens/s"
            + (f", {self.tokens_per_second / self.chips:,.4g} per chip" if self.chips else ""),
        ]
        if self.objectives is not None and self.good is not None:
            rate = self.good * len(run.end) / max(run.span, 1e-300)
            lines.append(f"{self.good:.1%} meet {self.objectives}: goodput {rate:,.4g} requests/s")
        lines.append(
            f"busy {self.utilisation:.0%} of the time, mean batch {run.mean_batch:.3g}, cache blocks used "
            f"{run.block_share:.0%} on average and {run.most_blocks / run.settings.blocks:.0%} at most, "
            f"{int(run.preemptions.sum()):,} preemptions"
        )
        if run.requests.found is not None:
            lines.append(f"prefixes: {run.prefix_hit_share:.1%} of the prompts' tokens are found in the store")
        if run.settings.shared_prefix:
            lines.append(
                f"shared prefix: {run.prefix_hit_share:.1%} of the prompts' tokens are found in the cache, "
                f"{run.settings.shared_blocks:,} blocks are shared"
            )
        if self.static is not None:
            static = self.static
            lines.append(
                f"static batching: TTFT p50 {_words(_percentile(static.ttft, 50))}, end to end p50 "
                f"{_words(_percentile(static.latency, 50))}, p99 {_words(_percentile(static.latency, 99))}; padding is "
                f"{static.prompt_waste:.1%} of prompt tokens, {static.output_waste:.1%} of decoded tokens are unused"
            )
        lines.append("Assumptions:")
        lines += [f"  - {text}" for text in self.assumptions]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.table()._repr_mimebundle_(include, exclude)


def _percentile(values: Floats, share: float) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.percentile(known, share)) if len(known) else None


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _words(seconds: float | None) -> str:
    return amount(seconds, "s")
