"""The performance model: time and energy of a network on a device, operator by operator."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.mapping import Mapping
from mlsys.models.architecture.choose import StrategyName, strategy_for
from mlsys.models.architecture.demand import Demand, DistinctDemands, PlanCounts, demand_of, distinct_demands
from mlsys.models.architecture.result import ArchitectureResult
from mlsys.models.architecture.spending import ENERGY_PARTS, Spending
from mlsys.models.architecture.strategy import TilingStrategy
from mlsys.models.energy import Energies
from mlsys.provenance import Step, traced
from mlsys.unit_checks import check_types, checked_number, nonnegative
from mlsys.units import Quantity, computed, ureg
from mlsys.workloads.operator import Network, Operator

PARTS = ("compute", "exposed on-chip memory", "exposed memory", "launch", "power limit")
_SECOND, _JOULE, _BYTE, _WATT, _NUMBER = (ureg.Unit(name) for name in ("s", "J", "byte", "W", ""))
_FLOP_PER_BYTE, _TFLOP_PER_SECOND = ureg.Unit("FLOP/byte"), ureg.Unit("TFLOP/s")


class _Spent(NamedTuple):
    """Times, energies and bytes of one operator, in plain numbers."""

    parts: tuple[float, ...]
    energy: tuple[float, ...]
    moved: tuple[float, ...]
    flops: float
    at_peak: float
    bound_by: str
    holds: frozenset[str]  # bottlenecks that determine the time: "compute", "power", names of levels

    @property
    def time(self) -> float:
        return math.fsum(self.parts)


@traced
@check_types(
    device=(Device, "a device, such as Hardware.Cloud.A100"),
    workload=((Operator, Network), "an operator or a network, such as gemm(64, 64, 64) or load('resnet50')"),
)
def architecture(
    device: Device,
    workload: Operator | Network,
    mapping: Mapping | None = None,
    *,
    strategy: TilingStrategy | StrategyName | None = None,
    launch_overhead: Quantity | None = None,
    energies: Energies | None = None,
) -> ArchitectureResult:
    """Return the time and energy of ``workload`` on ``device``, with each operator tiled for that kind of machine.

    Parameters
    ----------
    device
        A device twin with the data that the strategy needs.
    workload
        A network, whose operators run one after the other, or one operator; each is tiled by its own shape.
    mapping
        Rate, unit, and whether blocks move while the units compute, as for the roofline; the strategy maps
        data to memory levels.
    strategy
        ``"cpu"``, ``"gpu"``, ``"tpu"``, ``"kpu"``, or a :class:`TilingStrategy` of this device; by default
        chosen by its kind and parts.
    launch_overhead
        Time that each kernel launch adds, s; by default none.
    energies
        Price list of operations and accesses; by default that of the device's process node.
        ``Energies.of(device, bound="high")`` gives the high end of the energy.

    Returns
    -------
    ArchitectureResult
        ``parts`` sum to ``time``, ``energy`` to ``spent``; a network has one child per operator.

    Raises
    ------
    ArgumentError
        If the workload is empty, the device lacks data that the strategy needs, or a block does not fit.
    UnknownNameError
        If the device lacks the precision, or the strategy is unknown.

    Notes
    -----
    With overlap, an operator takes the maximum of the compute time, the on-chip memory time and the
    main memory time; without, blocks are moved first. The launch overhead is added. If the power would
    exceed the thermal design power, the time is stretched until it does not, as clocks are lowered. No
    overhead is a flat percentage: the only losses are repeated reads of tiles, partly filled tiles and
    waves, and launches.

    References
    ----------
    S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009: the lower bound of each operator's time.
    M. Horowitz, Computing's energy problem, ISSCC 2014, and N. Jouppi et al., ISCA 2021, Table 2: energies.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads import gemm
    >>> result = architecture(Hardware.Generic.TPU, gemm(4096, 4096, 4096, "bf16"))
    >>> print(f"{result.time.to('ms'):.2f}, {result.spent.to('mJ'):.0f}, bound by {result.bound_by}")
    3.05 ms, 66 mJ, bound by compute
    """
    how = mapping or Mapping()
    chosen = _chosen(device, how, strategy, energies)
    launch = 0.0
    if launch_overhead is not None:
        launch = float(checked_number("architecture", "launch_overhead", launch_overhead, nonnegative("s"), {}))
    if not isinstance(workload, Network):
        rows = DistinctDemands((demand_of(workload),), (0,))
        names = [workload.name]
    else:
        if not len(workload):
            raise ArgumentError(
                f"architecture(): `workload` must have at least one operator, got the empty network {workload.name!r}. "
                "Write e.g. workload=Network('mine', (gemm(64, 64, 64),))"
            )
        rows, names = distinct_demands(workload), [operator.name for operator in workload]
    with chosen.noting():
        costs = chosen.spending
        counts = [chosen.counted(work) for work in rows.demands]
        ones = [
            _spent(chosen, work, counted, costs, launch) for work, counted in zip(rows.demands, counts, strict=True)
        ]
    origin = _origins(
        chosen, {work.precision for work in rows.demands}, frozenset().union(*(element.holds for element in ones))
    )
    assumptions = _assumptions(chosen, costs, launch)
    first: dict[int, str] = {}
    for row, name in zip(rows.order, names, strict=True):
        first.setdefault(row, name)
    results = [
        _result(chosen, first[row], spent, assumptions, origin, (work, counted))
        for row, (work, counted, spent) in enumerate(zip(rows.demands, counts, ones, strict=True))
    ]
    children = tuple(results[row].named(name) for row, name in zip(rows.order, names, strict=True))
    if not isinstance(workload, Network):
        return children[0]
    return _summed(chosen, workload, [ones[row] for row in rows.order], children, assumptions, origin)


def _chosen(
    device: Device, how: Mapping, strategy: TilingStrategy | StrategyName | None, energies: Energies | None
) -> TilingStrategy:
    if not isinstance(strategy, TilingStrategy):
        tiler = strategy_for(device, how, strategy=strategy)
        return replace(tiler, energies=energies) if energies else tiler
    if strategy.device is not device and strategy.device != device:
        raise ArgumentError(
            f"architecture(): `strategy` was made for {strategy.device.name}, but the device is {device.name}. "
            f"Write strategy={type(strategy).__name__}(device)"
        )
    return replace(strategy, mapping=how, energies=energies or strategy.energies)


def _spent(strategy: TilingStrategy, work: Demand, counted: PlanCounts, costs: Spending, launch: float) -> _Spent:
    computing = counted.computing
    fed = [moved / speed for moved, speed in zip(counted.moved[1:], strategy.speeds, strict=True)]
    feeding = max(fed, default=0.0)
    moving = counted.moved[0] / strategy.main_speed
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
    longest = max(computing, feeding, moving) if strategy.mapping.overlap else max(computing, feeding)
    holds = {"compute"} if computing == longest else set()
    holds |= {level.name for level, own in zip(strategy.levels, fed, strict=True) if own == longest}
    if moving == longest or not strategy.mapping.overlap:
        holds.add(strategy.machine.main.name)
    whole = time + stretch
    flops = work.multiplying + work.beside
    return _Spent(
        (computing, exposed_on_chip, exposed, launch, stretch),
        (*spent, costs.idle * whole),
        counted.moved,
        flops,
        flops / strategy.rates(work.precision)[0],
        bound_by,
        frozenset(("power",) if stretch > 0 else holds),
    )


class _Origins(NamedTuple):
    """Provenance of bytes, times, their parts and shares of the peak, energies and powers."""

    moved: Step
    time: Step
    parts: Step
    energy: Step
    power: Step


def _result(
    strategy: TilingStrategy,
    name: str,
    spent: _Spent,
    assumptions: tuple[str, ...],
    origin: _Origins,
    planned: tuple[Demand, PlanCounts] | None = None,
    children: tuple[ArchitectureResult, ...] = (),
    extra: dict[str, Quantity] | None = None,
) -> ArchitectureResult:
    time, energy = spent.time, math.fsum(spent.energy)
    levels = (strategy.machine.main, *strategy.levels)
    figures = {
        "energy": computed(energy, _JOULE, origin.energy),
        "average power": computed(energy / time, _WATT, origin.power),
        "moved": computed(spent.moved[0], _BYTE, origin.moved),
        "intensity": computed(spent.flops / spent.moved[0], _FLOP_PER_BYTE, origin.moved),
        "attained": computed(spent.flops / time / 1e12, _TFLOP_PER_SECOND, origin.time),
        "utilisation": computed(spent.at_peak / time, _NUMBER, origin.parts),
    }
    return ArchitectureResult(
        model=f"architecture ({strategy.name})",
        device=strategy.device.name,
        workload=name,
        time=computed(time, _SECOND, origin.time),
        bound_by=spent.bound_by,
        parts=FrozenDict(
            {part: computed(value, _SECOND, origin.parts) for part, value in zip(PARTS, spent.parts, strict=True)}
        ),
        figures=FrozenDict({**figures, **(extra or {})}),
        assumptions=assumptions,
        children=children,
        energy=FrozenDict(
            {
                part: computed(value, _JOULE, origin.energy)
                for part, value in zip(ENERGY_PARTS, spent.energy, strict=True)
            }
        ),
        moved=FrozenDict(
            {level.name: computed(value, _BYTE, origin.moved) for level, value in zip(levels, spent.moved, strict=True)}
        ),
        plan=strategy.described(name, *planned) if planned else None,
    )


def _summed(
    strategy: TilingStrategy,
    network: Network,
    ones: Sequence[_Spent],
    children: tuple[ArchitectureResult, ...],
    assumptions: tuple[str, ...],
    origin: _Origins,
) -> ArchitectureResult:
    by_bound: dict[str, list[float]] = {}
    for element in ones:
        by_bound.setdefault(element.bound_by, []).append(element.time)
    held = {bound: math.fsum(times) for bound, times in by_bound.items()}
    columns = [tuple(map(math.fsum, zip(*rows, strict=True))) for rows in (
        [element.parts for element in ones], [element.energy for element in ones], [element.moved for element in ones]
    )]  # fmt: skip
    whole = _Spent(
        columns[0],
        columns[1],
        columns[2],
        math.fsum(element.flops for element in ones),
        math.fsum(element.at_peak for element in ones),
        max(sorted(held), key=lambda bound: held[bound]),
        frozenset(),
    )
    extra = {f"bound by {bound}": computed(held[bound] / whole.time, _NUMBER, origin.parts) for bound in sorted(held)}
    also = "operators run one after the other; data return to the main memory between them"
    return _result(strategy, network.name, whole, (*assumptions, also), origin, None, children, extra)


def _origins(strategy: TilingStrategy, precisions: set[str], holds: frozenset[str]) -> _Origins:
    """Return the provenance of each kind of number; other facts that were read only decided between candidates."""
    machine, costs = strategy.machine, strategy.spending
    peak = {
        name: each for precision in sorted(precisions) for name, each in strategy.rates_on_record(precision).items()
    }
    energy = {
        f"multiply_accumulate in {name}": costs.energies.mac(strategy.mapping.compute_precision or name).value
        for name in sorted(precisions)
    } | costs.operands
    power = {name: machine.quantity(name) for name in ("tdp", "idle_power") if machine.has(name)}
    every = {level.name: level.operands("bandwidth") for level in (machine.main, *strategy.levels)}
    time: dict[str, Quantity] = peak if "compute" in holds else {}
    for name in sorted(holds & every.keys()):
        time = time | every[name]
    if "power" in holds:
        time = time | power | energy
    spent = energy | ({"idle_power": power["idle_power"]} | time if costs.idle else {})
    steps: tuple[dict[str, Quantity], ...] = ({}, time, time | peak, spent, spent | time)
    return _Origins(*(strategy.origin("architecture", inputs) for inputs in steps))


def _assumptions(strategy: TilingStrategy, costs: Spending, launch: float) -> tuple[str, ...]:
    unknown = [level.name for level in strategy.levels if not level.has("bandwidth")]
    return (
        f"tiled as a {strategy.name.upper()}: {strategy.assumptions()[0]}",
        *strategy.assumptions()[1:],
        "sums stay until they are complete; the first pass over each operand is compulsory traffic",
        "blocks move while units compute; the first load and the last store are also hidden"
        if strategy.mapping.overlap
        else "blocks are moved first, then processed",
        f"a launch overhead of {launch:.3g} s per operator" if launch else "no launch overhead",
        *([f"no bandwidth recorded for {', '.join(unknown)}: taken as unlimited"] if unknown else []),
        *costs.energies.assumptions(),
        "time is stretched if the power would exceed the thermal design power"
        if math.isfinite(costs.budget)
        else "no thermal design power recorded: power is not limited",
        "static energy is the recorded idle power times the time"
        if costs.idle
        else "no idle power recorded: static energy is not counted",
    )
