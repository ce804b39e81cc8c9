"""The roofline model: a lower bound on time from peak and bandwidth."""

from typing import Any

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.mapping import Mapping
from mlsys.models.result import Result
from mlsys.precision import element_size
from mlsys.provenance import Step
from mlsys.unit_checks import check_types, checked_number, efficiency, nonnegative, positive
from mlsys.units import Q_, Quantity, Unit, computed, total, ureg
from mlsys.workloads.operator import Network, Operator

_SECOND, _NUMBER = ureg.Unit("s"), ureg.Unit("")
_FLOP_PER_BYTE, _TFLOP_PER_SECOND = ureg.Unit("FLOP/byte"), ureg.Unit("TFLOP/s")
_NO_TIME = Q_(0.0, "s")
_WANTED = {
    "operations": nonnegative("FLOP"),
    "data": positive("byte"),
    "peak": positive("FLOP/s"),
    "bandwidth": positive("byte/s"),
    "launch": nonnegative("s"),
}
_FACTORS: dict[str, dict[Any, float]] = {name: {} for name in _WANTED}


def _base(name: str, value: Quantity) -> float:
    label = "launch_overhead" if name == "launch" else name
    return float(checked_number("roofline", label, value, _WANTED[name], _FACTORS[name]))


@check_types(
    device=(Device, "a device, such as Hardware.Cloud.A100"),
    workload=((Operator, Network), "an operator or a network, such as gemm(64, 64, 64) or load('resnet50')"),
)
def roofline(
    device: Device,
    workload: Operator | Network,
    mapping: Mapping | None = None,
    *,
    compute_efficiency: float = 1.0,
    bandwidth_efficiency: float = 1.0,
    launch_overhead: Quantity | None = None,
) -> Result:
    """Return the least time of ``workload`` on ``device`` by the roofline model.

    Parameters
    ----------
    device
        A device, such as ``Hardware.Cloud.A100``.
    workload
        An operator, or a network whose operators run one after the other.
    mapping
        Rate, unit, memory level and overlap; defaults: the data's own precision, dense, main memory, with overlap.
    compute_efficiency, bandwidth_efficiency
        Attained fractions of peak and bandwidth, above 0 and up to 1.
    launch_overhead
        Time added for each operator, s; zero by default.

    Returns
    -------
    Result
        With ``parts`` *compute*, *exposed memory* and *launch*, in seconds.

    Raises
    ------
    UnknownNameError
        If the device lacks the precision, unit or level; there is no silent fallback.
    ArgumentError
        If the bytes were counted with another element size than that of the chosen rate.

    References
    ----------
    S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads import dense
    >>> result = roofline(Hardware.Cloud.A100, dense(32, 2048, 2048))
    >>> print(f"{result.time.to('us'):.2f}, bound by {result.bound_by}")
    4.24 µs, bound by memory
    """
    compute_efficiency = checked_number("roofline", "compute_efficiency", compute_efficiency, efficiency(), {})
    bandwidth_efficiency = checked_number("roofline", "bandwidth_efficiency", bandwidth_efficiency, efficiency(), {})
    launch = _NO_TIME if launch_overhead is None else launch_overhead
    _base("launch", launch)
    how = mapping or Mapping()
    assumptions = _assumptions(how, compute_efficiency, bandwidth_efficiency, launch)
    if isinstance(workload, Network):
        if not len(workload):
            raise ArgumentError(
                f"roofline(): `workload` must have at least one operator, got the empty network {workload.name!r}. "
                "Write e.g. workload=Network('mine', (gemm(64, 64, 64),))"
            )
        results = tuple(
            _of_operator(device, operator, how, compute_efficiency, bandwidth_efficiency, launch, assumptions)
            for operator in workload
        )
        return _sum(device, workload, results, assumptions)
    return _of_operator(device, workload, how, compute_efficiency, bandwidth_efficiency, launch, assumptions)


def _of_operator(
    device: Device,
    operator: Operator,
    how: Mapping,
    compute_efficiency: float,
    bandwidth_efficiency: float,
    launch: Quantity,
    assumptions: tuple[str, ...],
) -> Result:
    precision = how.compute_precision or operator.precision
    if element_size(precision) != element_size(operator.precision):
        raise ArgumentError(
            f"roofline(): `mapping.compute_precision` is {precision}, but the bytes of {operator.name!r} were "
            f"counted in {operator.precision}. Build the operator with precision={precision!r}"
        )
    peak = device.peak(precision, how.sparsity, how.unit)
    bandwidth = device.level(how.level).bandwidth
    inputs = {"operations": operator.operations, "data": operator.data, "peak": peak, "bandwidth": bandwidth}
    origin = Step("roofline", tuple(inputs.values()), tuple(inputs))
    flops, data, full_rate, full_speed = (_base(name, value) for name, value in inputs.items())
    rate, speed, start = full_rate * compute_efficiency, full_speed * bandwidth_efficiency, _base("launch", launch)
    computing, moving = flops / rate, data / speed
    exposed = max(moving - computing, 0.0) if how.overlap else moving
    time = (max(computing, moving) if how.overlap else computing + moving) + start

    def quantity(value: float, unit: Unit) -> Quantity:
        return computed(value, unit, origin)

    bound_by = "launch" if start > max(computing, moving) else "compute" if computing >= moving else "memory"
    parts = {
        "compute": quantity(computing, _SECOND),
        "exposed memory": quantity(exposed, _SECOND),
        "launch": quantity(start, _SECOND),
    }
    figures = {
        "intensity": quantity(flops / data, _FLOP_PER_BYTE),
        "ridge": quantity(rate / speed, _FLOP_PER_BYTE),
        "roof": quantity(min(rate, speed * flops / data) / 1e12, _TFLOP_PER_SECOND),
        "attained": quantity(flops / time / 1e12, _TFLOP_PER_SECOND),
        "utilisation": quantity(flops / time / full_rate, _NUMBER),
    }
    return Result(
        model="roofline",
        device=device.name,
        workload=operator.name,
        time=quantity(time, _SECOND),
        bound_by=bound_by,
        parts=FrozenDict(parts),
        figures=FrozenDict(figures),
        assumptions=assumptions,
    )


def _sum(device: Device, network: Network, results: tuple[Result, ...], assumptions: tuple[str, ...]) -> Result:
    parts = {name: total((result.parts[name] for result in results), "s") for name in results[0].parts}
    time = total((result.time for result in results), "s")
    by_bound = {
        bound: total((result.time for result in results if result.bound_by == bound), "s")
        for bound in ("compute", "memory", "launch")
    }
    at_peak = total((result.figures["utilisation"] * result.time for result in results), "s")
    return Result(
        model="roofline",
        device=device.name,
        workload=network.name,
        time=time,
        bound_by=max(by_bound, key=lambda bound: by_bound[bound]),
        parts=FrozenDict(parts),
        figures=FrozenDict(
            {
                "intensity": network.intensity,
                "attained": (network.flops / time).to("TFLOP/s"),
                "utilisation": (at_peak / time).to(""),
                "memory-bound share": (by_bound["memory"] / time).to(""),
            }
        ),
        assumptions=(
            *assumptions,
            "operators run one after the other; data returns to memory between them",
            *_kernels_counted(network),
        ),
        children=results,
    )


def _kernels_counted(network: Network) -> tuple[str, ...]:
    """Return the kernels, sizes and format of a captured network, in words."""
    from mlsys.mapping.fusion import FusedWorkload
    from mlsys.workloads import Workload

    if not isinstance(network, Workload):
        return ()
    sizes = ", ".join([*(f"{name} {size}" for name, size in network.sizes.items()), network.precision])
    if isinstance(network, FusedWorkload):
        return (f"{len(network)} kernels for {len(network.unfused)} operators, fused by the caller; {sizes}",)
    hint = ". mlsys.analyze() fuses them as software does" if network.is_unfused else ""
    return (f"{len(network)} operators, each a separate kernel; {sizes}{hint}",)


def _assumptions(how: Mapping, compute: float, bandwidth: float, launch: Quantity) -> tuple[str, ...]:
    kind = "dense" if how.sparsity == "dense" else f"{how.sparsity} structured-sparse"
    return (
        f"{kind} peak, {compute:.0%} of it reached",
        f"{how.level or 'main memory'} at {bandwidth:.0%} of its peak bandwidth",
        "compulsory traffic only: every input read once, every output written once",
        "data moves while units compute" if how.overlap else "data moves first, then units compute",
        f"launch overhead {launch:.3g} for each operator" if launch.magnitude else "no launch overhead",
    )
