"""``mlsys.train``: training a language model on a system of chips: memory, step time, days, chip-hours and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsys.choices import AttentionKernel, GradientFormat, Optimizer, Overlap, PipelineSchedule, Recompute
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.faults import short
from mlsys.formatting import natural
from mlsys.hardware import Device, System, as_system
from mlsys.hardware.view import view
from mlsys.mapping.parallel import Layout
from mlsys.models.cost import cost_of_run
from mlsys.models.inference.plan import learned_positions
from mlsys.models.record import with_units
from mlsys.models.result import ResultMembers
from mlsys.models.training import TrainingStep, training_step
from mlsys.models.training.search import rank_layouts
from mlsys.tables import Table
from mlsys.unit_checks import checked_count, checked_number, positive
from mlsys.units import Quantity
from mlsys.workloads.transformer_config import load_decoder
from mlsys.workloads.zoo.decoder import Decoder

_SEQUENCE = 4096  # tokens, by default
_STEP_TOKENS = 4_194_304
"""Tokens of a step where no batch is given: 4 Mi, about what recent large models train with."""
_COLUMNS = ("layout", "micro-batch", "recompute", "ZeRO", "memory", "fits", "step", "MFU", "tokens/s")
_SHOWN = 10
_AXES = ("tp", "pp", "ep", "dp", "cp")


@dataclass(frozen=True)
class TrainingPlan(ResultMembers):
    """Training of a language model on a system: one step in detail, the run, and the layouts that were compared.

    Attributes
    ----------
    result
        The step of the layout given, or of the fastest one that fits.
    layouts
        The steps of all layouts compared, those that fit first, the fastest first; one if a layout was given.
    tokens
        Tokens of the run; None if none were given.
    cost
        Rent of the run, USD; None without tokens or a known rent.
    """

    result: TrainingStep
    layouts: tuple[TrainingStep, ...]
    tokens: float | None
    cost: Quantity | None

    @property
    def fits(self) -> bool:
        """Whether the memory of a chip suffices."""
        return self.result.fits

    @property
    def duration(self) -> Quantity | None:
        """Time of the run, s; None without tokens."""
        return None if self.tokens is None else self.result.duration(self.tokens)

    @property
    def chip_hours(self) -> Quantity | None:
        """Chip-hours of the run, hour; None without tokens."""
        return None if self.tokens is None else self.result.chip_hours(self.tokens)

    @property
    def energy(self) -> Quantity | None:
        """Energy of the chips at their design power over the run, J; None without tokens or a design power."""
        hours, device = self.chip_hours, self.result.chip
        if hours is None or not view(device).has("tdp"):
            return None
        energy: Quantity = (hours * device.tdp).to("MWh")
        return energy

    def record(self) -> dict[str, Any]:
        """Return what ``mlsys train --json`` prints."""
        run: dict[str, Any] = {}
        if self.tokens is not None:
            duration, hours = self.result.duration(self.tokens), self.result.chip_hours(self.tokens)
            run = {
                "tokens": self.tokens,
                "days": duration.m_as("day"),
                "chip_hours": hours.m_as("hour"),
                "usd": None if self.cost is None else self.cost.m_as("USD"),
                "energy_kwh": None if self.energy is None else self.energy.m_as("kWh"),
            }
        return with_units({**self.result.record(), **run, "layouts": self.rows()})

    def rows(self) -> list[dict[str, Any]]:
        """Return one row of plain data for each layout."""
        return [
            {
                **{name: getattr(step.layout, name) for name in _AXES},
                "micro_batch": step.micro_batch,
                "recompute": step.recompute,
                "zero": step.zero,
                "needed_bytes": step.needed.m_as("byte"),
                "fits": step.fits,
                "step_seconds": step.time.m_as("s"),
                "mfu": float(step.figures["MFU"].magnitude),
                "tokens_per_second": step.tokens_per_second.m_as("1/s"),
                "bound_by": step.bound_by,
            }
            for step in self.layouts
        ]

    def table(self) -> Table:
        """Return the layouts as a table, the fastest that fit first."""
        rows = [
            (
                str(step.layout),
                step.micro_batch,
                step.recompute,
                step.zero,
                f"{step.needed.to('GB'):.3g}",
                "yes" if step.fits else "no",
                f"{step.time.to_compact():.3g}",
                f"{step.figures['MFU'].magnitude:.1%}",
                natural(step.tokens_per_second.m_as("1/s")),
            )
            for step in self.layouts[:_SHOWN]
        ]
        more = f", {_SHOWN} of {len(self.layouts)}" if len(self.layouts) > _SHOWN else ""
        return Table(f"Layouts{more}", _COLUMNS, rows)

    def explain(self) -> str:
        """Return the step, the run and the layouts as text."""
        lines = [self.result.explain()]
        if self.tokens is not None:
            duration, hours = self.result.duration(self.tokens), self.result.chip_hours(self.tokens)
            text = f"{natural(self.tokens)} tokens: {duration.to('day'):.3g~P}, {hours.m_as('hour'):,.0f} chip-hours"
            text += "" if self.energy is None else f", {self.energy.to('MWh'):,.4g~P} at the chips' design power"
            text += ", rent unknown: --rent gives one" if self.cost is None else f", {self.cost.m_as('USD'):,.0f} USD"
            lines.append(text)
        if len(self.layouts) > 1:
            lines.append(str(self.table()))
        return "\n".join(lines)


def train(
    model: Decoder | str | Path,
    on: System | Device | str | Path,
    *,
    nodes: int | None = None,
    tokens: float | None = None,
    layout: Layout | Mapping[str, int] | None = None,
    tp: int | None = None,
    pp: int | None = None,
    ep: int | None = None,
    dp: int | None = None,
    cp: int | None = None,
    batch: int | None = None,
    micro_batch: int | None = None,
    sequence: int | None = None,
    schedule: PipelineSchedule | None = None,
    chunks: int = 1,
    recompute: Recompute | None = None,
    zero: int | None = None,
    precision: str = "bf16",
    optimizer: Optimizer = "adam",
    gradients: GradientFormat = "fp32",
    attention: AttentionKernel = "flash",
    overlap: Overlap = "data",
    rent: Quantity | None = None,
) -> TrainingPlan:
    """Estimate the training of a language model on a system, as the command ``mlsys train`` does.

    Parameters
    ----------
    model
        A decoder, its name, or the path of its ``config.json``.
    on, nodes
        A system, a device or the name of one, and the number of its nodes.
    tokens
        Tokens of the run; without them there are no days, chip-hours and cost.
    layout
        How model and batch are split, or its sizes by axis, to which ``dp`` is added so that all chips are used.
        Without it, the layouts that use all chips are ranked.
    tp, pp, ep, dp, cp
        Sizes of the layout that do not vary in that ranking.
    batch, sequence
        Sequences of a step, by default as many as make 4 Mi tokens, and one or more a chip; and tokens of each, by
        default 4096, or as many as learned positions reach.
    micro_batch, recompute, zero
        Of :func:`~mlsys.models.training.training_step`; in a ranking they vary unless given.
    schedule, chunks
        Of the pipeline; interleaved if there is more than one chunk.
    precision, optimizer, gradients, attention, overlap
        As of :func:`~mlsys.models.training.training_step`.
    rent
        Rent of one chip, USD/hour, for the cost of `tokens`; by default the newest one recorded.

    Returns
    -------
    TrainingPlan
        Its ``record()`` is what ``mlsys train --json`` prints.

    Raises
    ------
    UnknownNameError
        If there is no such model, system or number format.
    ArgumentError
        If the layout does not go with model, chips or batch, the budget of tokens is not positive, or `rent` is given
        without it.

    Examples
    --------
    >>> plan = train("llama-3-8b", "DGX_H100", nodes=8, tokens=1e12, layout=Layout(tp=2, dp=32), batch=512, zero=1)
    >>> 0.3 < plan.result.figures["MFU"].magnitude < 0.6, 15 < plan.duration.m_as("day") < 50
    (True, True)
    """
    decoder, system = load_decoder(model), as_system(on, nodes)
    if tokens is not None:
        tokens = float(checked_number("train", "tokens", tokens, positive(), {}))
    elif rent is not None:
        raise ArgumentError("train(): `rent` needs the `tokens` of the run. Write e.g. tokens=1e12")
    learned = learned_positions(decoder)
    if sequence is None:
        sequence = min(_SEQUENCE, learned) if learned else _SEQUENCE
    sequence = checked_count("train", "sequence", sequence)
    if learned and sequence > learned:
        raise ArgumentError(
            f"train(): {decoder.name} has learned positions for {learned} tokens, got sequences of {sequence}. "
            f"Write e.g. sequence={learned}"
        )
    sizes = {"tp": tp, "pp": pp, "ep": ep, "dp": dp, "cp": cp}
    fixed = {name: checked_count("train", name, size) for name, size in sizes.items() if size is not None}
    if layout is not None and fixed:
        raise ArgumentError("train(): give either `layout` or its sizes, not both. Write e.g. layout=Layout(tp=8)")
    if isinstance(layout, Mapping):
        layout = _layout(layout, system)
    if not isinstance(layout, Layout | None):
        raise ArgumentError(
            f"train(): `layout` must be a layout or its sizes by axis, got {short(layout)}. Write e.g. Layout(tp=8)"
        )
    chunks = checked_count("train", "chunks", chunks)
    if batch is None:
        chips = system.chips if layout is None else layout.chips
        batch = max(1, -(-_STEP_TOKENS // (sequence * chips))) * chips
    options: dict[str, Any] = {
        "sequence": sequence,
        "schedule": schedule or ("interleaved" if chunks > 1 else "1f1b"),
        "chunks": chunks,
        "precision": precision,
        "optimizer": optimizer,
        "gradients": gradients,
        "attention": attention,
        "overlap": overlap,
    }
    given = {"micro_batch": micro_batch, "recompute": recompute, "zero": zero}
    options |= {name: value for name, value in given.items() if value is not None}
    batch = checked_count("train", "batch", batch)
    if layout is not None:
        steps: tuple[TrainingStep, ...] = (training_step(system, decoder, layout, batch=batch, **options),)
    else:
        steps = rank_layouts(system, decoder, batch=batch, fixed=fixed, options=options)
    best = steps[0]
    return TrainingPlan(best, steps, tokens, _cost(best, tokens, rent))


def _layout(sizes: Mapping[str, int], system: System) -> Layout:
    """Return the layout of these sizes; without ``dp``, that which uses all chips."""
    unknown = next((axis for axis in sizes if axis not in _AXES), None)
    if unknown is not None:
        raise ArgumentError(
            f"train(): `layout` has the axes {', '.join(_AXES)}, got {short(unknown)}. Write e.g. layout={{'tp': 8}}"
        )
    try:
        one = Layout(**{**sizes, "ep": 1})
        return Layout(**{**sizes, "dp": sizes.get("dp", max(1, system.chips // one.chips))})
    except ArgumentError as error:
        raise ArgumentError(f"train(): `layout`: {str(error).removeprefix('Layout(): ')}") from None


def _cost(step: TrainingStep, tokens: float | None, rent: Quantity | None) -> Quantity | None:
    if tokens is None:
        return None
    try:
        total: Quantity = cost_of_run(step.chip_hours(tokens), step.chip, rent=rent).total
    except (ArgumentError, UnknownNameError):
        if rent is not None:
            raise
        return None  # no rent of this chip is recorded
    return total
