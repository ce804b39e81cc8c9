"""Result of an analysis: times and energy of a network, their ranges, and possible gains."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

from mlsys.formatting import natural
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.models.analysis.memory import MemoryNeed
from mlsys.models.analysis.network_run import NetworkRun
from mlsys.models.analysis.parts import AT_PEAK, NO_TIME, BottleneckGroup, OperatorTime, Repeated, WhatIf
from mlsys.models.energy.boards import InferenceEnergy, inference_energy
from mlsys.models.energy.cards import card_power
from mlsys.models.estimate.ranges import Range, speed_range
from mlsys.models.result import Result
from mlsys.models.software import SoftwareStack
from mlsys.provenance import Fact, origin_of, used_facts
from mlsys.units import Quantity, total
from mlsys.workloads.operator import DECODE, NETWORK, PREFILL

# Unit in which results of a pass are counted: for a decoding step, the one token of each sequence.
SAMPLES = {NETWORK: "samples", PREFILL: "prompts", DECODE: "tokens"}
_CHANGES_SHOWN, _WORTH_SHOWING = 9, 1.005


@dataclass(frozen=True)
class Analysis:
    """Time of a network on a device by operator and cause, with possible gains.

    Attributes
    ----------
    device, workload, precision
        Names of the device, the workload and the number format.
    samples, batched
        Samples of one pass: its batch, or 1 where the inputs have no batch axis.
    setting, calibration
        The requested kind of software, and the setting whose fitted parameters were used.
    roofline
        The lower bound, with one child per operator.
    estimate
        Calibrated time, s: the sum over ``operators``.
    peak, ridge
        Dense peak, and the lowest intensity at which it can be reached.
    operators
        In execution order.
    groups
        Longest time first; every operator is in exactly one group.
    changes
        What-ifs, largest gain first.
    assumptions
        Assumptions, in words.
    interval
        80 % interval of the estimate, and its basis.
    twin
        The device itself.
    memory
        Memory requirement, and whether it fits; the times assume that it does.
    network
        Sizes and fusion of the network.
    kind
        Kind of workload, as in :attr:`mlsys.workloads.Network.kind`.
    """

    device: str
    workload: str
    precision: str
    samples: int
    batched: bool
    setting: str
    calibration: str
    roofline: Result = field(repr=False)
    estimate: Quantity
    peak: Quantity
    ridge: Quantity
    operators: tuple[OperatorTime, ...] = field(repr=False)
    groups: tuple[BottleneckGroup, ...] = field(repr=False)
    changes: tuple[WhatIf, ...] = field(repr=False)
    assumptions: tuple[str, ...] = field(repr=False)
    interval: Range = field(repr=False)
    twin: Device = field(repr=False)
    memory: MemoryNeed = field(repr=False)
    network: NetworkRun = field(repr=False, compare=False)
    kind: str = NETWORK

    @property
    def time(self) -> Quantity:
        """The calibrated time, s: the same as ``estimate``."""
        return self.estimate

    @property
    def bound_by(self) -> str:
        """The cause of most of the time, ``"compute"``, ``"memory"`` or ``"launch"``: the same as ``limited_by``."""
        return self.limited_by

    @property
    def parts(self) -> FrozenDict[str, Quantity]:
        """Seconds by cause; they sum to ``time``."""
        held = {cause: self.share_limited_by(cause) * self.estimate for cause in ("compute", "memory", "launch")}
        return FrozenDict(held)

    @property
    def software(self) -> SoftwareStack:
        """The software that was requested, or the default."""
        return SoftwareStack.parse(self.setting)

    @property
    def energy(self) -> InferenceEnergy | None:
        """Energy of one pass at the estimated time, J; None if no power of the device or its class is known.

        A card's power depends on its work (:func:`mlsys.models.energy.cards.card_power`), that of other devices hardly.
        """
        low, high = (float((time / self.estimate).m_as("")) for time in self.range)
        drawn = card_power(self.twin, self.precision, self.flops, self.data, self.estimate)
        return inference_energy(self.twin, self.estimate, about=(low, high), power=drawn)

    @property
    def range(self) -> tuple[Quantity, Quantity]:
        """80 % interval of the time, s; neither end is below the bound."""
        low, high = (max(self.estimate * factor, self.bound) for factor in (self.interval.low, self.interval.high))
        return low, high

    def speed_over(self, other: Analysis) -> tuple[float, float, float]:
        """Return the speed of the device relative to another, and its 80 % interval.

        Analyse both with ``source=ALL_SOURCES``, as measured by one source; otherwise the interval is too wide.
        """
        speed = float((other.estimate / self.estimate).m_as(""))
        own, its = ([float((end / each.estimate).m_as("")) for end in each.range] for each in (self, other))
        low, high = speed_range((its[0], its[1]), (own[0], own[1]))
        return speed, low * speed, high * speed

    def differs_from(self, other: Analysis) -> bool:
        """Return whether the difference in speed is significant: the range of the ratio does not contain 1."""
        _, low, high = self.speed_over(other)
        return low > 1 or high < 1

    def overlaps(self, other: Analysis) -> bool:
        """Return whether the two time ranges overlap; the device ranked faster is then only probably faster."""
        (low, high), (its_low, its_high) = self.range, other.range
        return bool(low <= its_high and its_low <= high)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts that the analysis read, without duplicates."""
        own = origin_of(self)
        tried = used_facts(*(change.time for change in self.changes))
        return tuple(dict.fromkeys((*(own.facts() if own is not None else ()), *self.roofline.facts, *tried)))

    def record(self) -> dict[str, Any]:
        """Return the analysis as plain data, for JSON: a summary in SI units, operators, groups and changes."""
        from mlsys.models.analysis.record import report

        return report(self)

    @property
    def bound(self) -> Quantity:
        """Lower bound of the time by the roofline, s."""
        return self.roofline.time

    @property
    def batch_in_words(self) -> str:
        """Text such as ``"batch 32"`` or ``"no batch axis"``."""
        return f"batch {self.samples}" if self.batched else "no batch axis"

    @property
    def rate(self) -> Quantity:
        """Samples per second at the estimated time, 1/s."""
        rate: Quantity = (self.samples / self.estimate).to("1/s")
        return rate

    @property
    def flops(self) -> Quantity:
        """Work of all operators."""
        return total((operator.flops for operator in self.operators), "FLOP")

    @property
    def data(self) -> Quantity:
        """Compulsory bytes of all operators, each run separately."""
        return total((operator.data for operator in self.operators), "byte")

    @property
    def weights(self) -> Quantity:
        """Parameter bytes that one pass reads."""
        return total((operator.weights for operator in self.operators), "byte")

    @property
    def intensity(self) -> Quantity:
        """Arithmetic intensity of the whole network."""
        intensity: Quantity = (self.flops / self.data).to("FLOP/byte")
        return intensity

    @property
    def utilisation(self) -> float:
        """Attained fraction of the dense peak."""
        return float((self.flops / self.estimate / self.peak).m_as(""))

    def share_limited_by(self, cause: str) -> float:
        """Return the fraction of the estimate limited by ``"compute"``, ``"memory"`` or ``"launch"``."""
        return sum(operator.share for operator in self.operators if operator.limited_by == cause)

    @property
    def limited_by(self) -> str:
        """Cause that limits most of the estimate."""
        return max(("compute", "memory", "launch"), key=self.share_limited_by)

    @property
    def held_by(self) -> str:
        """Deprecated name of :attr:`limited_by`, kept for one release."""
        warnings.warn("Analysis.held_by is deprecated: write limited_by", DeprecationWarning, stacklevel=2)
        return self.limited_by

    def share_held_by(self, cause: str) -> float:
        """Return :meth:`share_limited_by`; deprecated, kept for one release."""
        warnings.warn(
            "Analysis.share_held_by() is deprecated: write share_limited_by()", DeprecationWarning, stacklevel=2
        )
        return self.share_limited_by(cause)

    def costliest(self, count: int = 5) -> tuple[Repeated, ...]:
        """Return the operators with the longest time, with identical operators combined.

        Parameters
        ----------
        count
            Maximum number of operators returned.
        """
        by_key: dict[tuple[object, ...], list[OperatorTime]] = {}
        for operator in self.operators:
            key = (
                operator.name,
                operator.kind,
                operator.estimate.m_as("s"),
                operator.flops.m_as("FLOP"),
                operator.data.m_as("byte"),
            )
            by_key.setdefault(key, []).append(operator)
        groups = [Repeated(members[0], len(members)) for members in by_key.values()]
        return tuple(sorted(groups, key=lambda entry: -entry.share)[:count])

    @property
    def first(self) -> str:
        """Advice in one sentence: what to fix first, and the upper bound of its gain."""
        reachable = [change for change in self.changes if change.change == AT_PEAK]
        if not reachable:
            return "Nothing to fix: every operator runs at the compute peak."
        best = reachable[0]
        text = (
            f"Fix first: {best.target}, {best.share:.0%} of the time. Running {AT_PEAK}, they would make it "
            f"{best.speedup:.2f}× as fast"
            + ("." if math.isinf(best.limit) else f"; the limit for these operators is {best.limit:.2f}×.")
        )
        step = next((change for change in self.changes if change.change not in (AT_PEAK, NO_TIME)), None)
        return text if step is None else f"{text} The largest practical step: {step.change}, {step.speedup:.2f}×."

    def explain(self, count: int = 10) -> str:
        """Return the analysis as text: totals, the costliest operators, and possible changes.

        Parameters
        ----------
        count
            Number of operators listed.
        """
        side = "above" if self.intensity >= self.ridge else "below"
        causes = ", ".join(f"{cause} {self.share_limited_by(cause):.0%}" for cause in ("compute", "memory", "launch"))
        listed = self.costliest(count)
        width = max(len("operator"), *(len(entry.operator.name) for entry in listed))
        lines = [
            f"{self.workload} on {self.device}, {self.precision}, {self.batch_in_words}",
            f"  at least      {self.bound.to_compact():.4g}  (roofline, bound by {self.roofline.bound_by})",
            f"  estimate      {self.estimate.to_compact():.4g}  (calibrated: {self.calibration})",
            f"  range         {' to '.join(f'{time.to_compact():.3g}' for time in self.range)}  "
            f"(80 % interval: {self.interval.why})",
            f"  rate          {natural(self.rate.m_as('1/s'))} {SAMPLES[self.kind]}/s",
            *_energy_lines(self.energy),
            f"  limited by    {causes}",
            f"  work          {self.flops.to_compact():.4g}, {self.utilisation:.1%} of {self.peak:.4g}",
            f"  bytes         {self.data.to_compact():.4g}, weights {self.weights.to_compact():.4g}",
            f"  memory        {self.memory}",
            f"  intensity     {self.intensity:.4g}, {side} the ridge of {self.ridge:.4g}",
            "",
            f"{'operator':<{width}}  {'kind':<14} {'times':>5} {'share':>6} {'each':>10} {'at least':>10} "
            f"{'of peak':>8}  limited by",
        ]
        for entry in listed:
            operator = entry.operator
            each, least = (f"{time.to_compact():.4g}" for time in (operator.estimate, operator.bound))
            lines.append(
                f"{operator.name:<{width}}  {operator.kind:<14} {entry.times:>5} {entry.share:>6.1%} {each:>10} "
                f"{least:>10} {operator.utilisation:>8.1%}  {operator.limited_by}"
            )
        rest = len(self.operators) - sum(entry.times for entry in listed)
        if rest:
            lines.append(f"and {rest} more, {1 - sum(entry.share for entry in listed):.1%} of the time")
        lines += ["", self.first, "What if:"]
        lines += [f"  {change}" for change in self.changes[:_CHANGES_SHOWN] if change.speedup >= _WORTH_SHOWING]
        lines += ["Assumptions:", *(f"  - {assumption}" for assumption in self.assumptions)]
        lines.append(str(self.network))
        return "\n".join(lines)


def _energy_lines(energy: InferenceEnergy | None) -> list[str]:
    if energy is None:
        return []
    low, high = (f"{bound.to_compact():.3g}" for bound in energy.range)
    return [
        f"  energy        {energy.energy.to_compact():.3g} per pass, {energy.static_share:.0%} of it idle power; "
        f"{energy.power.power.to_compact():.3g} under load",
        f"                {low} to {high}  (80 % interval: {energy.power.why})",
    ]
