"""The model: time and energy of a network on a machine of its kind, operator by operator."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from mlsys.door import checked_number, nonnegative
from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.mapping import Mapping
from mlsys.models.architecture.choose import strategy_for
from mlsys.models.architecture.energy import ENERGY_PARTS, Energies, Spending, in_stacks
from mlsys.models.architecture.plan import Counted, TilingStrategy
from mlsys.models.architecture.result import ArchitectureResult
from mlsys.models.architecture.work import Work, work_of
from mlsys.provenance import Step
from mlsys.units import Quantity, computed, ureg
from mlsys.workloads.operator import Network, Operator

__all__ = ["PARTS", "run"]

PARTS = ("compute", "exposed on-chip memory", "exposed memory", "launch", "power limit")
_SECOND, _JOULE, _BYTE, _WATT, _NUMBER = (ureg.Unit(name) for name in ("s", "J", "byte", "W", ""))
_FLOP_PER_BYTE, _TFLOP_PER_SECOND = ureg.Unit("FLOP/byte"), ureg.Unit("TFLOP/s")


class _One(NamedTuple):
    """Times, energies and bytes of one operator, in plain numbers."""

    parts: tuple[float, ...]
    energy: tuple[float, ...]
    moved: tuple[float, ...]
    flops: float
    at_peak: float
    bound_by: str

    @property
    def time(self) -> float:
        return math.fsum(self.parts)


class _Rows(NamedTuple):
    """A network's distinct works, and which of them each operator is."""

    works: tuple[Work, ...]
    order: tuple[int, ...]


_rows_of: dict[int, tuple[weakref.ref[Network], _Rows]] = {}


def _rows(network: Network) -> _Rows:
    """Return the distinct works of a network, found once for each network."""
    known = _rows_of.get(id(network))
    if known is not None and known[0]() is network:
        return known[1]
    by_object: dict[int, int] = {}
    by_work: dict[Work, int] = {}
    for operator in network:
        if id(operator) not in by_object:
            by_object[id(operator)] = by_work.setdefault(work_of(operator), len(by_work))
    rows = _Rows(tuple(by_work), tuple(by_object[id(operator)] for operator in network))
    key = id(network)
    _rows_of[key] = weakref.ref(network, lambda _: _rows_of.pop(key, None)), rows
    return rows


def run(
    device: Device,
    network: Operator | Network,
    mapping: Mapping | None = None,
    *,
    overlap: bool = True,
    strategy: TilingStrategy | str | None = None,
    launch_overhead: Quantity | None = None,
    energies: Energies | None = None,
) -> ArchitectureResult:
    """Return time and energy of ``network`` on ``device``, each operator tiled as its kind of machine does.

    Parameters
    ----------
    device
        A twin with what the strategy needs.
    network
        Operators that run one after the other, or one operator; each is tiled by its own shape.
    mapping
        Rate and unit, as for the roofline; the strategy decides about the memory levels.
    overlap
        Whether blocks move while the units compute.
    strategy
        ``"cpu"``, ``"gpu"``, ``"tpu"``, ``"kpu"``, or a :class:`TilingStrategy` of this device; by default
        what its kind and parts suggest.
    launch_overhead
        Time that each kernel costs beside its work, s; by default none.
    energies
        What operations and accesses cost; by default the published constants at 45 nm.

    Returns
    -------
    ArchitectureResult
        ``parts`` sum to ``time``, ``energy`` to ``spent``; a network has one child for each operator.

    Raises
    ------
    ArgumentError
        If the network is empty, the device lacks what the strategy needs, or a block does not fit.
    UnknownNameError
        If the device lacks the precision, or the strategy is unknown.

    Notes
    -----
    With overlap an operator takes the longest of computing, feeding from the levels on the chip and
    moving between them and the main memory; without, blocks are moved first. To this comes the launch.
    Where the energy so spent would exceed the thermal design power, the time is stretched until it does
    not: clocks fall. No overhead is a flat percentage: bytes that tiles read again, partly filled tiles
    and waves, and launches are all there is.

    References
    ----------
    S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009: the bound below which no operator falls.
    M. Horowitz, Computing's energy problem, ISSCC 2014: energies.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads import gemm
    >>> found = run(Hardware.Generic.TPU, gemm(4096, 4096, 4096, "bf16"))
    >>> print(f"{found.time.to('ms'):.2f}, {found.spent.to('mJ'):.0f}, bound by {found.bound_by}")
    3.05 ms, 261 mJ, bound by compute
    """
    how = mapping or Mapping()
    how = replace(how, overlap=how.overlap and bool(overlap))
    chosen = _chosen(device, how, strategy, energies)
    launch = 0.0
    if launch_overhead is not None:
        launch = float(checked_number("run", "launch_overhead", launch_overhead, nonnegative("s"), {}))
    costs = chosen.spending
    origin = _origins(chosen, network)
    if not isinstance(network, Network):
        rows = _Rows((work_of(network),), (0,))
        names = [network.name]
    else:
        if not len(network):
            raise ArgumentError(
                f"run(): `network` must have at least one operator, got the empty network {network.name!r}. "
                "Write e.g. network=Network('mine', (gemm(64, 64, 64),))"
            )
        rows, names = _rows(network), [operator.name for operator in network]
    counts = [chosen.counted(work) for work in rows.works]
    ones = [_one(chosen, work, counted, costs, launch) for work, counted in zip(rows.works, counts, strict=True)]
    assumptions = _assumptions(chosen, costs, launch)
    first: dict[int, str] = {}
    for row, name in zip(rows.order, names, strict=True):
        first.setdefault(row, name)
    found = [
        _result(chosen, first[row], one, assumptions, origin, (work, counted))
        for row, (work, counted, one) in enumerate(zip(rows.works, counts, ones, strict=True))
    ]
    children = tuple(found[row].named(name) for row, name in zip(rows.order, names, strict=True))
    if not isinstance(network, Network):
        return children[0]
    return _summed(chosen, network, [ones[row] for row in rows.order], children, assumptions, origin)


def _chosen(
    device: Device, how: Mapping, strategy: TilingStrategy | str | None, energies: Energies | None
) -> TilingStrategy:
    if not isinstance(strategy, TilingStrategy):
        found = strategy_for(device, how, strategy=strategy)
        return replace(found, energies=energies) if energies else found
    if strategy.device is not device and strategy.device != device:
        raise ArgumentError(
            f"run(): `strategy` was made for {strategy.device.name}, but the device is {device.name}. "
            f"Write strategy={type(strategy).__name__}(device)"
        )
    return replace(strategy, mapping=how, energies=energies or strategy.energies)


def _one(strategy: TilingStrategy, work: Work, counted: Counted, costs: Spending, launch: float) -> _One:
    computing = counted.computing
    feeding = max(
        moved / level.bandwidth for moved, level in zip(counted.moved[1:], strategy.levels, strict=True)
    )  # fmt: skip
    moving = counted.moved[0] / strategy.main.bandwidth
    exposed_on_chip = max(feeding - computing, 0.0)
    busy = computing + exposed_on_chip
    exposed = max(moving - busy, 0.0) if strategy.mapping.overlap else moving
    time = busy + exposed + launch
    precision = strategy.mapping.compute_precision or work.precision
    spent = costs.of(work, counted, precision)
    stretch = max(math.fsum(spent) / costs.budget - time, 0.0)
    if stretch > 0:
        bound_by = "power"
    elif launch > max(computing, feeding, moving):
        bound_by = "launch"
    else:
        longest = max(computing, feeding, moving)
        bound_by = "compute" if computing == longest else "memory" if moving == longest else "on-chip memory"
    whole = time + stretch
    flops = work.multiplying + work.beside
    return _One(
        (computing, exposed_on_chip, exposed, launch, stretch),
        (*spent, costs.idle * whole),
        counted.moved,
        flops,
        flops / strategy.rates(work.precision).peak,
        bound_by,
    )


class _Origins(NamedTuple):
    """What bytes, times, times that the design power stretches, and energies lean on."""

    moved: Step
    time: Step
    stretched: Step
    energy: Step


def _result(
    strategy: TilingStrategy,
    name: str,
    one: _One,
    assumptions: tuple[str, ...],
    origin: _Origins,
    planned: tuple[Work, Counted] | None = None,
    children: tuple[ArchitectureResult, ...] = (),
    extra: dict[str, Quantity] | None = None,
) -> ArchitectureResult:
    time, energy = one.time, math.fsum(one.energy)
    clock = origin.stretched if one.parts[-1] else origin.time
    levels = (strategy.main, *strategy.levels)
    figures = {
        "energy": computed(energy, _JOULE, origin.energy),
        "average power": computed(energy / time, _WATT, origin.stretched),
        "moved": computed(one.moved[0], _BYTE, origin.moved),
        "intensity": computed(one.flops / one.moved[0], _FLOP_PER_BYTE, origin.moved),
        "attained": computed(one.flops / time / 1e12, _TFLOP_PER_SECOND, clock),
        "utilisation": computed(one.at_peak / time, _NUMBER, clock),
    }
    return ArchitectureResult(
        model=f"architecture ({strategy.name})",
        device=strategy.device.name,
        workload=name,
        time=computed(time, _SECOND, clock),
        bound_by=one.bound_by,
        parts=FrozenDict({part: computed(value, _SECOND, clock) for part, value in zip(PARTS, one.parts, strict=True)}),
        figures=FrozenDict({**figures, **(extra or {})}),
        assumptions=assumptions,
        children=children,
        energy=FrozenDict(
            {part: computed(value, _JOULE, origin.energy) for part, value in zip(ENERGY_PARTS, one.energy, strict=True)}
        ),
        moved=FrozenDict(
            {level.name: computed(value, _BYTE, origin.moved) for level, value in zip(levels, one.moved, strict=True)}
        ),
        plan=strategy.described(name, *planned) if planned else None,
    )


def _summed(
    strategy: TilingStrategy,
    network: Network,
    ones: Sequence[_One],
    children: tuple[ArchitectureResult, ...],
    assumptions: tuple[str, ...],
    origin: _Origins,
) -> ArchitectureResult:
    by_bound: dict[str, list[float]] = {}
    for one in ones:
        by_bound.setdefault(one.bound_by, []).append(one.time)
    held = {bound: math.fsum(times) for bound, times in by_bound.items()}
    columns = [tuple(map(math.fsum, zip(*rows, strict=True))) for rows in (
        [one.parts for one in ones], [one.energy for one in ones], [one.moved for one in ones]
    )]  # fmt: skip
    whole = _One(
        columns[0],
        columns[1],
        columns[2],
        math.fsum(one.flops for one in ones),
        math.fsum(one.at_peak for one in ones),
        max(sorted(held), key=lambda bound: held[bound]),
    )
    extra = {f"bound by {bound}": computed(held[bound] / whole.time, _NUMBER, origin.time) for bound in sorted(held)}
    also = "operators run one after the other; data return to the main memory between them"
    return _result(strategy, network.name, whole, (*assumptions, also), origin, None, children, extra)


def _origins(strategy: TilingStrategy, network: Operator | Network) -> _Origins:
    device, how, costs = strategy.device, strategy.mapping, strategy.spending
    operator = network.operators[0] if isinstance(network, Network) and len(network) else network
    computes = how.compute_precision or str(getattr(operator, "precision", device.headline))
    sizes, speeds = strategy.on_record
    time = {"peak": device.peak(computes, how.sparsity, how.unit), "bandwidth": device.level().bandwidth} | speeds
    energy = {"multiply_accumulate": costs.energies.mac_of(computes), "register": costs.energies.register}
    energy |= {f"word_of_{size:g}_KiB": cost for size, cost in costs.energies.sram.items()}
    if costs.off_chip:
        energy["memory"] = costs.energies.hbm if in_stacks(strategy.main) else costs.energies.dram
    power = {} if device._tdp is None else {"design_power": device.tdp}
    if device._idle_power is not None:
        power["idle_power"] = device.idle_power
    # A tile is cut to the sizes, and among those that fit the quickest is taken.
    stretched, spent = time | power | energy, energy | (time | power if costs.idle else {})
    steps = (sizes | time, sizes | time, sizes | stretched, sizes | time | spent)
    return _Origins(*(Step("architecture", tuple(inputs.values()), tuple(inputs)) for inputs in steps))


def _assumptions(strategy: TilingStrategy, costs: Spending, launch: float) -> tuple[str, ...]:
    unknown = [level.name for level in strategy.levels if math.isinf(level.bandwidth)]
    return (
        f"tiled as a {strategy.name.upper()}: {strategy.assumptions()[0]}",
        *strategy.assumptions()[1:],
        "sums stay until they are complete; the first pass over each operand is the operator's own bytes",
        "blocks move while units compute; the first load and the last store are hidden, too"
        if strategy.mapping.overlap
        else "blocks are moved first, then worked on",
        f"a launch of {launch:.3g} s for each operator" if launch else "no launch overhead",
        *([f"no bandwidth on record for {', '.join(unknown)}: never waited for"] if unknown else []),
        "energies as published for 45 nm, DDR-class memory at 160 pJ/byte and HBM2 at 31 pJ/byte; not scaled to the "
        "device's process",
        "time is stretched where the energy would exceed the thermal design power"
        if math.isfinite(costs.budget)
        else "no thermal design power on record: power is not limited",
        "static energy is the recorded idle power over the time"
        if costs.idle
        else "no idle power on record: static energy is not counted",
    )
