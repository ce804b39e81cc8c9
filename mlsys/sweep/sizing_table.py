"""Results of a sweep of sizings: one row per model, system, layout, batch, length and format, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from mlsys.formatting import natural
from mlsys.models.record import unit_of_name
from mlsys.sweep.point_table import Column, PointTable, columns_of, reasons_of
from mlsys.tables import Table
from mlsys.unit_checks import checked_choice
from mlsys.units import Q_

_FRONT = 40  # maximum lines of a table


class SizingRow(NamedTuple):
    """One sizing: the request, and the members of the result of :func:`mlsys.size`, or why there is none.

    Attributes
    ----------
    id
        Content id: of the request, the facts of the system and the code that evaluates it.
    model, system, device, nodes
        Name of the language model as given, ids of the system and of its chip, nodes.
    tp, pp, ep, dp
        The layout of one copy: as requested, or the one ranked first; without an answer the requested sizes.
    replicas, chips
        Copies of the model, and chips of all copies.
    batch, sequence, prompt, output, phase
        Requested of each copy; ``output`` is 0 where a sequence alone is given.
    weight_format, kv_format, precision
        Stored formats as requested, None for the model's own; the arithmetic's.
    parameters, active_parameters, weight_bytes, context
        The model.
    kv_cache_bytes_per_token, kv_cache_bytes, kv_cache_bytes_per_token_per_chip, cross_cache_bytes
        The key-value cache, and the part of it that an encoder left.
    state_bytes, activation_bytes
        The rest of the memory by part.
    needed_bytes, needed_bytes_per_chip, capacity_bytes, fits, largest_batch, largest_sequence
        What one copy needs, what the fullest chip needs and has, and what fits.
    ttft_seconds, ttft_seconds_low, ttft_seconds_high
        Time to the first token, and its 80 % range.
    tpot_seconds, tpot_seconds_low, tpot_seconds_high
        Time between two tokens, and its 80 % range.
    tokens_per_second, tokens_per_second_low, tokens_per_second_high
        Tokens per second of all copies, and their 80 % range.
    tokens_per_second_per_user, tokens_per_second_per_chip
        The rate of one sequence, and of one chip.
    usd_per_million_tokens, kwh_per_million_tokens, gco2e_per_million_tokens
        Cost and carbon; None where not known.
    bound_by
        What limits a step of decoding, or the prefill.
    error
        Why there is no answer; None if there is one.
    """

    id: str
    model: str
    system: str
    device: str
    nodes: int
    tp: int | None
    pp: int | None
    ep: int | None
    dp: int | None
    replicas: int
    chips: int | None
    batch: int
    sequence: int | None
    prompt: int | None
    output: int | None
    phase: str | None
    weight_format: str | None
    kv_format: str | None
    precision: str | None
    parameters: int | None
    active_parameters: int | None
    weight_bytes: float | None
    context: int | None
    kv_cache_bytes_per_token: float | None
    kv_cache_bytes: float | None
    kv_cache_bytes_per_token_per_chip: float | None
    cross_cache_bytes: float | None
    state_bytes: float | None
    activation_bytes: float | None
    needed_bytes: float | None
    needed_bytes_per_chip: float | None
    capacity_bytes: float | None
    fits: bool | None
    largest_batch: int | None
    largest_sequence: int | None
    ttft_seconds: float | None
    ttft_seconds_low: float | None
    ttft_seconds_high: float | None
    tpot_seconds: float | None
    tpot_seconds_low: float | None
    tpot_seconds_high: float | None
    tokens_per_second: float | None
    tokens_per_second_low: float | None
    tokens_per_second_high: float | None
    tokens_per_second_per_user: float | None
    tokens_per_second_per_chip: float | None
    usd_per_million_tokens: float | None
    kwh_per_million_tokens: float | None
    gco2e_per_million_tokens: float | None
    bound_by: str | None
    error: str | None

    @property
    def layout(self) -> str:
        """The layout in words."""
        sizes = (("tp", self.tp), ("pp", self.pp), ("ep", self.ep), ("dp", self.dp))
        return ", ".join(f"{name} {size}" for name, size in sizes if size is not None and size > 1) or "one chip"


_UNITS = {
    **dict.fromkeys(("sequence", "prompt", "output", "context", "largest_sequence"), "token"),
    **dict.fromkeys(("kv_cache_bytes_per_token", "kv_cache_bytes_per_token_per_chip"), "byte/token"),
    **{name: "token/s" for name in SizingRow._fields if name.startswith("tokens_per_second")},
    "usd_per_million_tokens": "USD/Mtoken",
    "kwh_per_million_tokens": "kWh/Mtoken",
    "gco2e_per_million_tokens": "g/Mtoken",
}
SIZING_COLUMNS = columns_of(SizingRow, {name: _UNITS.get(name, unit_of_name(name)) for name in SizingRow._fields})
Ranking = Literal["latency", "throughput", "cost"]
"""What points are ranked by: time between tokens, tokens per second and chip, or USD per million tokens."""
SizingCost = Literal["cost", "energy", "chips"]
_COSTS: dict[SizingCost, tuple[str, str]] = {
    "cost": ("usd_per_million_tokens", "USD/Mtoken"),
    "energy": ("kwh_per_million_tokens", "kWh/Mtoken"),
    "chips": ("chips", "chips"),
}


@dataclass(frozen=True)
class SizingTable(PointTable[SizingRow]):
    """The sizings of a sweep in order, as columns.

    Attributes
    ----------
    columns
        One tuple of values for each name of :class:`SizingRow`; None where there is no value.
    provenance
        Version, date, hashes of the catalogue and of the code, and the specification.
    facts
        Facts that are recorded for each system; empty if the rows come from a folder.

    Examples
    --------
    >>> from mlsys.sweep import SizingSpec, sweep
    >>> table = sweep(SizingSpec(models=["llama-3-8b"], systems=["DGX_H100"], tp=[1, 8, 3], batches=[1, 64]))
    >>> [(row.tp, row.batch) for row in table.pareto("llama-3-8b", "chips")]
    [(8, 1), (1, 1)]
    >>> print(table.columns["error"][-1])
    Layout(tp 3): `tp` must divide the 32 query heads of Llama 3 8B. Possible: 1, 2, 4, 8, 16, 32
    """

    ROW: ClassVar[type[Any]] = SizingRow
    COLUMNS: ClassVar[tuple[Column, ...]] = SIZING_COLUMNS
    OWNER: ClassVar[str] = "system"

    def best(self, by: Ranking = "latency") -> tuple[SizingRow, ...]:
        """Return, for each model, the first point that fits by time between tokens, rate per chip, or cost."""
        checked_choice("best", "by", by, get_args(Ranking))
        chosen: dict[str, SizingRow] = {}
        for row in self:
            key = _rank(row, by)
            if key is not None and row.fits:
                held = chosen.get(row.model)
                if held is None or key < (_rank(held, by) or 0.0):
                    chosen[row.model] = row
        return tuple(chosen[model] for model in self.models if model in chosen)

    def pareto(self, model: str, against: SizingCost = "cost") -> tuple[SizingRow, ...]:
        """Return the Pareto-optimal points of a model in latency and cost, fastest first.

        Parameters
        ----------
        model
            One of ``models``.
        against
            ``"cost"`` in USD or ``"energy"`` in kWh for a million tokens, or ``"chips"``.

        Returns
        -------
        tuple of SizingRow
            By time between tokens (of prefill alone: to the first token); points that do not fit or lack the cost are
            omitted.

        Raises
        ------
        UnknownNameError
            If the sweep has no such model.
        ArgumentError
            If there is no such cost.
        """
        self._check_model("pareto", model)
        checked_choice("pareto", "against", against, get_args(SizingCost))
        usable = [
            (latency, cost, row)
            for row in self
            if row.model == model and row.fits
            for latency, cost in [(_latency(row), getattr(row, _COSTS[against][0]))]
            if latency is not None and cost is not None
        ]
        front: list[SizingRow] = []
        least = float("inf")
        for _, cost, row in sorted(usable, key=lambda entry: entry[:2]):
            if cost < least:
                front.append(row)
                least = cost
        return tuple(front)

    def explain(self) -> str:
        """Return the best points of each model, the Pareto fronts and the reasons of missing answers, as text."""
        answered = sum(error is None for error in self.columns["error"])
        lines = [
            f"{len(self):,} points, {answered:,} answered, {sum(fits is True for fits in self.columns['fits']):,} fit: "
            f"{len(self.models)} models, {len(set(self.columns['system']))} systems"
        ]
        titles: dict[Ranking, str] = {
            "latency": "Least time between tokens",
            "throughput": "Most tokens per second and chip",
            "cost": "Least cost",
        }
        for by, title in titles.items():
            rows = self.best(by)
            if rows:
                lines += ["", repr(_listed(f"{title} among points that fit in memory", rows))]
        for against in get_args(SizingCost)[:1]:
            front = [row for model in self.models for row in self.pareto(model, against)]
            if front:
                lines += ["", repr(_listed("Pareto front: latency against USD/Mtoken", front[:_FRONT]))]
            if len(front) > _FRONT:
                lines.append(f"and {len(front) - _FRONT:,} more, shown by `pareto()`")
        return "\n".join(lines + reasons_of(self.columns["error"]))


def _latency(row: SizingRow) -> float | None:
    return row.tpot_seconds if row.tpot_seconds is not None else row.ttft_seconds


def _rank(row: SizingRow, by: Ranking) -> float | None:
    if by == "latency":
        return _latency(row)
    if by == "cost":
        return row.usd_per_million_tokens
    return None if row.tokens_per_second_per_chip is None else -row.tokens_per_second_per_chip


def _listed(title: str, rows: Sequence[SizingRow]) -> Table:
    columns = ("model", "system", "layout", "point", "chips", "TTFT", "TPOT", "80 % range", "tokens/s", "USD/Mtoken")
    return Table(
        title,
        columns,
        [
            (
                row.model,
                row.system if row.nodes == 1 else f"{row.nodes} × {row.system}",
                row.layout if row.replicas == 1 else f"{row.replicas} × ({row.layout})",
                point_label(row),
                f"{row.chips:,}",
                _time(row.ttft_seconds),
                _time(row.tpot_seconds),
                "–" if row.tpot_seconds is None else f"{_time(row.tpot_seconds_low)} to {_time(row.tpot_seconds_high)}",
                natural(row.tokens_per_second or 0.0),
                "–" if row.usd_per_million_tokens is None else natural(row.usd_per_million_tokens),
            )
            for row in rows
        ],
    )


def point_label(row: SizingRow) -> str:
    """Return a label that distinguishes a point from others of its model, system and layout."""
    length = f"{row.prompt} + {row.output} tokens" if row.output else f"{row.sequence} tokens"
    formats = [f"{what} {name}" for what, name in (("weights", row.weight_format), ("cache", row.kv_format)) if name]
    return ", ".join((f"batch {row.batch}", length, *formats, *([row.phase] if row.phase else [])))


def _time(seconds: float | None) -> str:
    return "–" if seconds is None else f"{Q_(seconds, 's').to_compact():.3g}"
