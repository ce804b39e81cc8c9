"""The result of a training step: time, memory, communication and utilisation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mlsys.formatting import natural
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.mapping.parallel import Layout
from mlsys.models.record import amounts, facts_of
from mlsys.models.result import Result
from mlsys.provenance import Fact
from mlsys.unit_checks import checked_number, positive
from mlsys.units import Q_, Quantity

FASTER, SLOWER = 0.9, 1.3
"""Factors of the estimated time between which four published runs in five lie: ``evidence/tests/test_training_runs.py``
holds them."""


@dataclass(frozen=True)
class TrainingStep(Result):
    """One optimiser step of a language model on a system of chips.

    ``bound_by`` is ``"compute"``, ``"memory"``, ``"communication"`` or ``"pipeline"``.

    Attributes
    ----------
    layout
        How the model and the batch are split.
    chips
        Chips at work.
    memory
        Bytes on the fullest chip by part: *weights*, *gradients*, *optimizer*, *activations*, *logits*, *buffers*.
    capacity
        Memory of one chip, byte.
    sent
        Bytes that a chip sends in one step by axis of the layout: *tensor*, *pipeline*, *data*, *expert*, *context*.
    links
        The link that each of them takes.
    tokens
        Tokens of one step.
    chip
        The device of one chip.
    micro_batch, recompute, zero
        As of :func:`~mlsys.models.training.training_step`.
    """

    layout: Layout = field(kw_only=True)
    chips: int = field(kw_only=True)
    memory: FrozenDict[str, Quantity] = field(kw_only=True)
    capacity: Quantity = field(kw_only=True)
    sent: FrozenDict[str, Quantity] = field(kw_only=True)
    links: FrozenDict[str, str] = field(kw_only=True)
    tokens: int = field(kw_only=True)
    chip: Device = field(kw_only=True, repr=False)
    micro_batch: int = field(kw_only=True)
    recompute: str = field(kw_only=True)
    zero: int = field(kw_only=True)

    @property
    def range(self) -> tuple[Quantity, Quantity]:
        """Between which times four published runs in five lie, s."""
        return self.time * FASTER, self.time * SLOWER

    @property
    def needed(self) -> Quantity:
        """Memory that the fullest chip needs, byte."""
        return Q_(sum(part.m_as("byte") for part in self.memory.values()), "byte")

    @property
    def fits(self) -> bool:
        """Whether the memory of a chip suffices."""
        return bool(self.needed <= self.capacity)

    @property
    def tokens_per_second(self) -> Quantity:
        """Tokens per second of all chips, 1/s."""
        rate: Quantity = (self.tokens / self.time).to("1/s")
        return rate

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Every fact that the result depends on, without duplicates."""
        return tuple(dict.fromkeys((*super().facts, *facts_of(self.memory, self.sent, self.capacity))))

    def duration(self, tokens: float) -> Quantity:
        """Return the time of a run over so many tokens, s, at this step time and without interruptions.

        Raises
        ------
        ArgumentError
            If the budget is not a positive number.
        """
        budget = float(checked_number("duration", "tokens", tokens, positive(), {}))
        time: Quantity = budget / self.tokens * self.time
        return time

    def chip_hours(self, tokens: float) -> Quantity:
        """Return the chip-hours of a run over so many tokens, hour."""
        hours: Quantity = (self.duration(tokens) * self.chips).to("hour")
        return hours

    def record(self) -> dict[str, Any]:
        """Return the result as plain data, with layout, memory and communication."""
        low, high = self.range
        return {
            **super().record(),
            "layout": {name: getattr(self.layout, name) for name in ("tp", "pp", "ep", "dp", "cp")},
            "chips": self.chips,
            "micro_batch": self.micro_batch,
            "recompute": self.recompute,
            "zero": self.zero,
            "memory": amounts(self.memory),
            "needed_bytes": self.needed.m_as("byte"),
            "capacity_bytes": self.capacity.m_as("byte"),
            "fits": self.fits,
            "sent": amounts(self.sent),
            "links": dict(self.links),
            "tokens_per_step": self.tokens,
            "tokens_per_second": self.tokens_per_second.m_as("1/s"),
            "step_seconds": self.time.m_as("s"),
            "step_seconds_low": low.m_as("s"),
            "step_seconds_high": high.m_as("s"),
        }

    def explain(self) -> str:
        """Return the result in sentences and small tables."""
        low, high = self.range
        verdict = "fits" if self.fits else "does not fit"
        lines = [
            f"{self.workload} on {self.chips} chips of {self.device} ({self.layout}):",
            f"{self.time.to_compact():.4g} per step ({low.to_compact():.3g} to {high.to_compact():.3g}), "
            f"{natural(self.tokens_per_second.m_as('1/s'))} tokens/s, bound by {self.bound_by}.",
            f"MFU {self.figures['MFU'].magnitude:.1%}, HFU {self.figures['HFU'].magnitude:.1%}.",
            f"Memory: {self.needed.to('GB'):.4g} of {self.capacity.to('GB'):.4g} on the fullest chip: {verdict}.",
        ]
        lines += [f"  {name:<24} {part.to('GB'):>10.3f}" for name, part in self.memory.items()]
        lines.append("Time:")
        for name, part in self.parts.items():
            if part.magnitude:
                lines.append(f"  {name:<24} {part.to('s'):>10.4g}  {(part / self.time).m_as(''):6.1%}")
        lines.append("Sent by each chip per step:")
        lines += [
            f"  {name:<24} {size.to('GB'):>10.3f}  {self.links[name]}" for name, size in self.sent.items() if size
        ]
        lines.append("Assumptions:")
        lines += [f"  - {assumption}" for assumption in self.assumptions]
        return "\n".join(lines)
