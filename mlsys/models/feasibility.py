"""Feasibility: memory, bandwidth, compute, latency and money of a language model on a system, in one verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.faults import short
from mlsys.hardware import System, as_system
from mlsys.hardware.device import Device
from mlsys.mapping.parallel import Layout
from mlsys.models.inference.formats import formats_on
from mlsys.models.inference.limits import Limits
from mlsys.models.inference.memory import largest
from mlsys.models.inference.money import Money, hour_of
from mlsys.models.inference.placed import Placed
from mlsys.models.inference.plan import InferenceRequest, Tokens
from mlsys.models.inference.words import amount
from mlsys.models.record import facts_behind, with_units
from mlsys.provenance import Fact, traced
from mlsys.unit_checks import checked_count, checked_number, efficiency, nonnegative
from mlsys.units import Q_, Quantity
from mlsys.workloads.zoo.decoder import Decoder

__all__ = ["Check", "Feasibility", "LanguageWorkload", "feasible"]

_MOST = 1 << 24
"""Longest sequence and largest batch for which checks of time are tried."""


@dataclass(frozen=True)
class LanguageWorkload:
    """A language model with its sequences: what is to be feasible.

    Attributes
    ----------
    model
        A decoder, such as ``language_model("llama-2-7b")``.
    sequence, batch
        Tokens of each sequence, and sequences at once.
    prompt
        Tokens of a prompt, for the time to the first token; by default the whole sequence.
    weight_format, kv_format
        Formats of weights and cache; by default the model's own, or 16 bits.
    layout
        How the model is split over chips.
    activations
        Whether the values of a pass count as memory.
    overhead
        Further bytes on each chip, such as those of a runtime.
    """

    model: Decoder
    sequence: int
    batch: int = 1
    prompt: int | None = None
    weight_format: str | None = None
    kv_format: str | None = None
    layout: Layout = field(default_factory=Layout)
    activations: bool = True
    overhead: Quantity = field(default_factory=lambda: Q_(0, "byte"))

    def __post_init__(self) -> None:
        if not isinstance(self.model, Decoder):
            raise ArgumentError(
                "LanguageWorkload(): `model` must be a language model, such as language_model('llama-2-7b'), got "
                f"{short(self.model)}"
            )
        for name in ("sequence", "batch", *(() if self.prompt is None else ("prompt",))):
            object.__setattr__(self, name, checked_count("LanguageWorkload", name, getattr(self, name)))
        checked_number("LanguageWorkload", "overhead", self.overhead, nonnegative("byte"), {})


@dataclass(frozen=True)
class Check:
    """One check of a verdict.

    Attributes
    ----------
    name
        ``"memory"``; of the time between tokens ``"bandwidth"``, ``"compute"`` and ``"latency"``; of the time to the
        first token ``"compute of prompt"`` and ``"latency of prompt"``; or ``"money"``.
    what
        What is compared, in words.
    value, limit
        What it takes, and what there is or is allowed; in ``unit``.
    unit
        ``"byte"``, ``"s"`` or ``"USD"``.
    largest_sequence, largest_batch
        Most tokens at the requested batch, and most sequences at the requested sequence, that pass; one more fails. 0
        where none passes, None where none fails.
    """

    name: str
    what: str
    value: float
    limit: float
    unit: str
    largest_sequence: int | None
    largest_batch: int | None

    @property
    def passes(self) -> bool:
        """Whether the value is within the limit."""
        return self.value <= self.limit

    def __str__(self) -> str:
        verdict = "passes" if self.passes else "fails"
        most = "any sequence" if self.largest_sequence is None else f"{self.largest_sequence:,} tokens"
        batch = "any batch" if self.largest_batch is None else f"batch {self.largest_batch:,}"
        value, limit = amount(self.value, self.unit), amount(self.limit, self.unit)
        return f"{self.name:<10} {verdict:<6} {self.what}: {value} of {limit}; up to {most}, {batch}"


@dataclass(frozen=True)
class Feasibility:
    """A verdict on a language model on a system.

    Attributes
    ----------
    device, workload
        Name of the system, and the request in words.
    checks
        Those that the limits ask for, memory first.
    assumptions
        In words.
    """

    device: str
    workload: str
    checks: tuple[Check, ...]
    assumptions: tuple[str, ...]

    @property
    def feasible(self) -> bool:
        """Whether all checks pass."""
        return all(check.passes for check in self.checks)

    def __bool__(self) -> bool:
        return self.feasible

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that fail."""
        return tuple(check for check in self.checks if not check.passes)

    @property
    def first(self) -> Check | None:
        """The check that fails first as the sequence grows, at this batch; None where none ever fails."""
        failing = [check for check in self.checks if check.largest_sequence is not None]
        return min(failing, key=lambda check: check.largest_sequence or 0, default=None)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts that the verdict depends on, without duplicates."""
        return facts_behind(self)

    def check(self, name: str) -> Check:
        """Return a check by name.

        Raises
        ------
        KeyError
            If the limits do not ask for it.
        """
        return {check.name: check for check in self.checks}[name]

    def record(self) -> dict[str, Any]:
        """Return the verdict as plain data, for JSON."""
        checks = [
            {
                "name": check.name,
                "what": check.what,
                "passes": check.passes,
                "value": {"value": check.value, "unit": check.unit},
                "limit": {"value": check.limit, "unit": check.unit},
                "largest_sequence": check.largest_sequence,
                "largest_batch": check.largest_batch,
            }
            for check in self.checks
        ]
        return with_units(
            {
                "device": self.device,
                "workload": self.workload,
                "feasible": self.feasible,
                "first": None if self.first is None else self.first.name,
                "checks": checks,
                "assumptions": list(self.assumptions),
                "facts": sorted({fact.name for fact in self.facts}),
            }
        )

    def explain(self) -> str:
        """Return the verdict as text."""
        verdict = "feasible" if self.feasible else "not feasible"
        lines = [f"{self.workload} on {self.device}: {verdict}", *(f"  {check}" for check in self.checks)]
        if self.first is not None:
            lines.append(f"With longer sequences {self.first.name} fails first.")
        return "\n".join([*lines, "Assumptions:", *(f"  - {text}" for text in self.assumptions)])


@traced
def feasible(
    system: System | Device | str,
    workload: LanguageWorkload,
    limits: Limits | str | None = None,
    *,
    usable: float = 1.0,
    rent: Quantity | None = None,
) -> Feasibility:
    """Return whether a language model is feasible on a system, and at which token or batch that changes.

    Parameters
    ----------
    system
        A system or a device, or the name of one.
    workload
        The model and its sequences.
    limits
        Limits on latency and money, such as ``"TPOT<50 ms, TTFT<1 s, cost<2 USD"``; by default memory alone counts.
    usable
        Part of each chip's memory that may be filled, above 0 and up to 1.
    rent
        Rent of one chip, USD/hour, instead of the recorded one.

    Returns
    -------
    Feasibility
        Bandwidth and compute are floors: at full bandwidth, and at the peak rate; latency is the estimate.

    Raises
    ------
    UnknownNameError
        If there is no such system, or its memory is not on record.
    ArgumentError
        If the layout does not go with model and system, money is limited and no rent is known, a rent is given and
        money is not limited, or chips are.

    Examples
    --------
    >>> from mlsys.workloads.zoo import language_model
    >>> small = LanguageWorkload(language_model("llama-2-7b"), sequence=2048, activations=False)
    >>> verdict = feasible("T4", small)
    >>> verdict.feasible, verdict.check("memory").largest_sequence
    (True, 4812)
    """
    if not isinstance(workload, LanguageWorkload):
        raise ArgumentError(
            "feasible(): `workload` must be a LanguageWorkload, such as "
            f"LanguageWorkload(language_model('llama-2-7b'), sequence=4096), got {short(workload)}"
        )
    requested = Limits.parse(limits) if isinstance(limits, str) else limits or Limits()
    found, part = as_system(system), checked_number("feasible", "usable", usable, efficiency(), {})
    if rent is not None:
        checked_number("feasible", "rent", rent, nonnegative("USD/hour"), {})
    workload.layout.check(workload.model, found)
    if requested.chips is not None:
        raise ArgumentError(
            f"feasible(): `limits` has a number of chips, which the layout ({workload.layout}) sets. Leave it out, or "
            "search layouts with find_systems()"
        )
    if rent is not None and requested.cost is None:
        raise ArgumentError("feasible(): `rent` is for a limit on cost. Add one, such as limits='cost<2 USD'")
    money = hour_of(found, rent) if requested.cost is not None else Money()
    if requested.cost is not None and money.usd_per_hour is None:
        raise ArgumentError(
            f"feasible(): `limits` has a cost, and no rent of {found.device.name} is on record. Give rent, such as "
            'rent=Q_(2, "USD/hour")'
        )
    question = _Question(found, workload, part, money)
    checks = [_check(question, *each) for each in _wanted(question, requested)]
    lengths = f"{workload.model.name}, batch {workload.batch}, {workload.sequence} tokens, {workload.layout}"
    return Feasibility(found.name, lengths, tuple(checks), _words(question, requested))


@dataclass(frozen=True)
class _Question:
    """A workload on a system, with the functions of tokens and batch that checks compare."""

    system: System
    workload: LanguageWorkload
    usable: float
    money: Money

    @cached_property
    def placed(self) -> Placed:
        workload = self.workload
        tokens = Tokens(workload.sequence, 0, workload.sequence)
        request = InferenceRequest(
            tokens,
            workload.batch,
            weight_format=workload.weight_format,
            kv_format=workload.kv_format,
            usable=self.usable,
        )
        formats = formats_on(self.system.device, workload.model, workload.weight_format, workload.kv_format, None)
        return Placed(self.system, workload.model, workload.layout, formats, request)

    def memory(self, tokens: int, batch: int) -> float:
        parts = self.placed.memory_model.per_chip(tokens, batch, self.prompt(tokens))
        needed = parts if self.workload.activations else replace(parts, activations=0.0)
        return needed.needed + float(self.workload.overhead.m_as("byte"))

    def prompt(self, tokens: int) -> int:
        return tokens if self.workload.prompt is None else min(self.workload.prompt, tokens)

    def by_bandwidth(self, tokens: int, batch: int) -> float:
        return self.placed.times.step_floors(batch, tokens)[0]

    def by_compute(self, tokens: int, batch: int) -> float:
        return self.placed.times.step_floors(batch, tokens)[1]

    def prompt_by_compute(self, tokens: int, batch: int) -> float:
        return self.placed.times.prefill_floor(self.prompt(tokens))

    def tpot(self, tokens: int, batch: int) -> float:
        return self.placed.times.decode_step(batch, tokens).seconds

    def ttft(self, tokens: int, batch: int) -> float:
        return self.placed.times.prefill(self.prompt(tokens)).seconds

    def cost(self, tokens: int, batch: int) -> float:
        rate = batch / self.tpot(tokens, batch)
        cost = self.money.at(rate, self.workload.layout.chips).usd_per_million_tokens
        assert cost is not None
        return cost


_Wanted = tuple[str, str, Callable[[int, int], float], float, str]


def _wanted(question: _Question, limits: Limits) -> list[_Wanted]:
    """Return the checks that limits ask for: name, words, value by tokens and batch, limit and unit."""
    found: list[_Wanted] = [
        ("memory", "bytes of the fullest chip", question.memory, question.placed.room, "byte"),
    ]
    if limits.step is not None:
        found += [
            ("bandwidth", "a step at full bandwidth", question.by_bandwidth, limits.step, "s"),
            ("compute", "a step at the peak rate", question.by_compute, limits.step, "s"),
            ("latency", "estimated time between tokens", question.tpot, limits.step, "s"),
        ]
    if limits.ttft is not None:
        found += [
            ("compute of prompt", "a prompt at the peak rate", question.prompt_by_compute, limits.ttft, "s"),
            ("latency of prompt", "estimated time to the first token", question.ttft, limits.ttft, "s"),
        ]
    if limits.cost is not None:
        found.append(("money", "a million tokens", question.cost, limits.cost, "USD"))
    return found


def _check(
    question: _Question, name: str, what: str, value: Callable[[int, int], float], limit: float, unit: str
) -> Check:
    tokens, batch = question.workload.sequence, question.workload.batch
    sequence = _flip(lambda each: value(each, batch) <= limit)
    # The cost of a token falls as the batch grows, and a prompt is alone: no batch is too large for either.
    any_batch = name == "money" or name.endswith("prompt")
    sequences = None if any_batch else _flip(lambda each: value(tokens, each) <= limit)
    return Check(name, what, value(tokens, batch), limit, unit, sequence, sequences)


def _flip(holds: Callable[[int], bool]) -> int | None:
    """Return the largest number for which a check passes; None where it passes up to ``_MOST``."""
    most = largest(lambda number: number <= _MOST and holds(number))
    return None if most >= _MOST else most


def _words(question: _Question, limits: Limits) -> tuple[str, ...]:
    workload = question.workload
    texts = [f"{question.usable:.0%} of a chip's memory may be filled"]
    texts.append("activations count" if workload.activations else "activations are left out")
    if limits.step is not None:
        texts.append("floors leave out exchanges between chips; estimates have them")
    if limits.cost is not None:
        texts.append("the chips do nothing but decode")
    return (*texts, *question.placed.formats.notes, *question.money.notes)
