"""``analyze``: the analysis of a network on a device."""

import re
from dataclasses import replace
from types import NoneType

import numpy as np
from numpy.typing import NDArray

from mlsys.errors import ArgumentError
from mlsys.hardware.device import Device
from mlsys.hardware.view import view
from mlsys.mapping.fusion import as_run, has_convolutions
from mlsys.models.analysis.answer import Analysis
from mlsys.models.analysis.assumed import (
    beside_operators,
    counted_as,
    effects_in_words,
    ground_rules,
    kept_on_chip,
    left_in_fp32,
    unfused_operators,
    waiting_threads,
    whole_buckets,
)
from mlsys.models.analysis.changes import TimingModel, changes_tried, fastest_rate, weights_of_twice_the_batch
from mlsys.models.analysis.memory import memory_need
from mlsys.models.analysis.network_run import NetworkRun, in_format, precision_of
from mlsys.models.analysis.parts import BottleneckGroup, OperatorTime
from mlsys.models.estimate.batch import CaseBatch
from mlsys.models.estimate.eager import Ran, of_network, run_as
from mlsys.models.estimate.library import parameters_of
from mlsys.models.estimate.machine import Snapshot, snapshot
from mlsys.models.estimate.parameters import Parameters
from mlsys.models.estimate.processors import widened
from mlsys.models.estimate.range_keys import work_of_network
from mlsys.models.estimate.ranges import Range, range_of
from mlsys.models.estimate.running import as_counted, kernels_run, usual_running
from mlsys.models.estimate.user_calibration import shape_if_calibrated
from mlsys.models.estimate.weight_residency import Residence, held_on, resident, sent_bytes
from mlsys.models.estimate.work import MATMUL, Work
from mlsys.models.result import Result
from mlsys.models.roofline import roofline
from mlsys.models.software import SoftwareStack, software_of
from mlsys.precision import element_size, precision_name
from mlsys.provenance import Seen, Step, comparing, recording, traced, unrecorded, used_facts
from mlsys.unit_checks import check_types, checked_count
from mlsys.units import Q_, computed, number_in, ureg
from mlsys.workloads.operator import Network, Operator
from mlsys.workloads.used_sizes import network_batch

_S, _FLOP = ureg.Unit("s"), ureg.Unit("FLOP")


@traced
@check_types(
    device=(Device, "a device, such as Hardware.Cloud.A100"),
    workload=(Network, "a network, such as load('resnet50'); mlsys.analyze() takes a name"),
    mapping=((Network, NoneType), "the workload as kernels, such as fuse(workload), or None"),
)
def analyze(
    device: Device,
    workload: Network,
    mapping: Network | None = None,
    *,
    precision: str | None = None,
    software: SoftwareStack | str | None = None,
    samples: int | None = None,
    cached: bool = True,
    source: str = "",
) -> Analysis:
    """Return the time of a network on a device by operator and cause, with possible gains.

    Parameters
    ----------
    device
        A device with a peak in the precision.
    workload
        A network; its kernels run one after the other.
    mapping
        The kernels that the workload runs as, such as ``fuse(workload)``; the workload itself means one kernel per
        operator. By default the software fuses operators as it does in use. Operators built by hand, and fused
        workloads, are kernels already.
    precision
        Format in which every value is stored and computed; defaults to the format of the workload, else FP16; for
        operators built by hand, to the format of most of the work.
    software
        Software that runs the network, or its name, such as ``"eager network on GPU"``; defaults to the typical
        software for such work on such a device, see :func:`mlsys.models.software.software_of`.
    samples
        Images, sequences or rows of one pass; defaults to the batch of the network. Only the rate depends on it, and
        the way in which CPU threads share the work. A pass of inputs without a batch axis is one sample.
    cached
        Whether data that fit stay in the last-level cache between kernels, as assumed in the fit. False sends all data
        to the main memory, as the roofline does. In both cases no operator's estimate is below its bound.
    source
        Who measures, as for :func:`mlsys.models.estimate.ranges.range_of`; ``ALL_SOURCES`` of that module for analyses
        that are compared with each other, since one source brings the same habits to all of them.

    Returns
    -------
    Analysis
        Shares, times, bytes and work of the operators sum to those of the network.

    Raises
    ------
    ArgumentError
        If the network is empty, or the device has no bandwidth on record.
    UnknownNameError
        If the device lacks the precision, or the software was not fitted.

    References
    ----------
    S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009; G. Amdahl, AFIPS 1967.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads import load
    >>> network = load("resnet50", batch=32)
    >>> fused, alone = analyze(Hardware.Cloud.A100, network), analyze(Hardware.Cloud.A100, network, network)
    >>> [f"{answer.bound.to('ms'):.2f~}, {len(answer.operators)} kernels" for answer in (fused, alone)]
    ['1.05 ms, 54 kernels', '2.91 ms, 174 kernels']
    """
    if not len(workload):
        raise ArgumentError(
            f"analyze(): `workload` must have at least one operator, got the empty network {workload.name!r}"
        )
    precision = precision_of(workload, precision)
    given = in_format(workload, precision)
    setting = str(software_of(device, software, workload.kind, precision or workload.precision))
    network = as_run(given, run_as(setting)) if mapping is None else in_format(mapping, precision)
    run = NetworkRun.of(given, network)
    samples = network_batch(workload) if samples is None else samples
    batched, samples = samples is not None, 1 if samples is None else samples
    checked_count("analyze", "samples", samples)
    recounted = _in_precision(network, precision)
    chosen = recounted.operators[0].precision
    peak = device.peak(chosen)
    whose = of_network(setting, has_convolutions(network))
    with comparing():
        running = usual_running(whose, device, engine_used(device, chosen, whose))
    recounted = as_counted(recounted, running)
    ran = kernels_run(recounted, running)
    work = resident(ran.work, device, samples)
    held = held_on(device, ran.work, samples)
    recounted = recounted if held is None else _resident(recounted, held)
    shape = shape_if_calibrated(device.id, work)
    parameters, calibration = parameters_of(whose, device.id, network.name, precision=chosen, shape=shape)
    result = roofline(device, recounted)
    with comparing():
        with recording() as read:
            timing = timing_of(device, chosen, parameters, cached, whose).as_used(whose, samples)
            estimate = timing.seconds(work)
        origin = _origin(network, timing, work, read)
        operators, groups = _divided(recounted, result, timing, Ran(work, ran.owner), origin)
        half = narrower_format(device, chosen)
        narrower = (half, timing_of(device, half, parameters, cached, whose).as_used(whose, samples)) if half else None
        changes = changes_tried(work, timing, groups, weights_of_twice_the_batch(recounted, work), narrower)
    analysis = Analysis(
        device=device.name,
        workload=network.name,
        precision=chosen,
        samples=samples,
        batched=batched,
        setting=whose,
        calibration=calibration,
        roofline=result,
        estimate=computed(estimate, _S, origin),
        peak=peak,
        ridge=device.ridge_point(chosen),
        operators=operators,
        groups=tuple(group for group, _ in groups),
        changes=changes,
        assumptions=ground_rules(
            result, any(operator.kind == "recurrent" for operator in network), precision, whose, calibration, cached
        )
        + counted_as(network)
        + unfused_operators(network, run_as(whose))
        + effects_in_words(whose, device.id, network.name)
        + beside_operators(running)
        + left_in_fp32(network, device, chosen)
        + waiting_threads(timing.engine)
        + kept_on_chip(held)
        + whole_buckets(whose)
        + tuple(f"not on record, assumed: {words}" for words in timing.engine.assumed),
        interval=_interval(whose, device, network, source, estimate, result),
        twin=device,
        memory=memory_need(network, device, chosen, given),
        network=run,
        kind=network.kind,
    )
    object.__setattr__(analysis, "_origin", origin)  # the what-if trials depend on further facts
    return analysis


def _interval(setting: str, device: Device, network: Network, source: str, estimate: float, result: Result) -> Range:
    """Return the interval of an estimate, limited by its bound without depending on it."""
    with comparing():
        bound = number_in(result.time, _S)
        return range_of(
            setting,
            device.id,
            network.name,
            source=source,
            work=work_of_network(network.kind, setting),
            seconds=max(estimate, bound),
            bound=bound,
        )


def timing_of(
    device: Device, precision: str, parameters: Parameters, cached: bool = True, setting: str = ""
) -> TimingModel:
    """Return the calibrated model of a device in one precision, as :func:`analyze` uses it for a setting."""
    machine = view(device, precision)
    engine = engine_used(device, precision, setting)
    return TimingModel(engine, parameters, machine.require("rate"), machine.main.require("bandwidth"), machine, cached)


def engine_used(device: Device, precision: str, setting: str = "") -> Snapshot:
    """Return the rates of a device in one precision, for the instructions that a setting's programs use."""
    machine = view(device, precision)
    rates = snapshot(replace(machine, unit="vector") if precision in ("fp32", "fp64") else machine).on_one_core()
    if precision == "int8" and re.match(r"(ncnn|mobile runtime)\b.* on CPU", setting):
        rates = widened(rates, device)
    # The recorded vector rate is FP32's; no other format runs faster in the work between products.
    return rates.changed(vector=lambda: min(rates.vector, rates.matmul))


def _origin(network: Network, timing: TimingModel, work: Work, read: Seen) -> Step:
    """Return the derivation of the estimate; facts read but not decisive are listed as compared."""
    with unrecorded():
        names, idle = timing.decisive_and_idle(work)
    with recording() as held:
        for name in names:
            getattr(timing.engine, name)
    with unrecorded(), recording() as unused:
        for name in idle:
            getattr(timing.engine, name)
    with unrecorded(), recording() as kept:  # one fact may determine both a decisive rate and an idle one
        for name in (name for name in (*CaseBatch.RECORDED, "cache") if name not in idle):
            getattr(timing.engine, name)
    for name in unused.keys() - held.keys() - kept.keys():
        read.pop(name, None)
    words = {"device": timing.engine.name, "workload": network.name}
    return Step.from_facts("analyze", words, used_facts(*held.values()), used_facts(*read.values()))


def narrower_format(device: Device, precision: str) -> str | None:
    """Return the fastest half-size precision for which the device has a dense peak."""
    half = element_size(precision) / 2
    have = [name for name in device.precisions if element_size(name) == half and view(device, name).has("rate")]
    return max(have, key=lambda name: fastest_rate(view(device, name)), default=None)


def _in_precision(network: Network, precision: str | None) -> Network:
    """Return the network with all operators in one precision; bytes scale with the size of a value."""
    if precision is None:
        work: dict[str, float] = {}
        for operator in network:
            work[operator.precision] = work.get(operator.precision, 0.0) + number_in(operator.flops, _FLOP)
        wanted, ratios = max(work, key=lambda name: work[name]), dict.fromkeys(work, 1.0)
    else:
        wanted = precision_name(precision)
        size = element_size(wanted).m_as("byte")
        ratios = {name: size / element_size(name).m_as("byte") for name in {operator.precision for operator in network}}
    changed: dict[int, Operator] = {}
    for operator in network:
        if id(operator) not in changed:
            changed[id(operator)] = _recounted(operator, wanted, ratios[operator.precision])
    return Network(network.name, tuple(changed[id(operator)] for operator in network), network.kind)


def _recounted(operator: Operator, precision: str, ratio: float) -> Operator:
    if operator.precision == precision:
        return operator
    return replace(operator, precision=precision, data=operator.data * ratio, weights=operator.weights * ratio)


def _resident(network: Network, held: Residence) -> Network:
    """Return the network with the traffic of a chip without external memory: only what its host sends."""
    arrays = network.arrays
    sent, changed = sent_bytes(held.times, arrays.weights), {}
    for row, operator in zip(arrays.order.tolist(), network, strict=True):
        if row not in changed:
            changed[row] = replace(operator, data=Q_(float(sent[row]), "byte"), weights=operator.weights * held.times)
    return Network(network.name, tuple(changed[row] for row in arrays.order.tolist()), network.kind)


def _divided(
    network: Network, result: Result, timing: TimingModel, ran: Ran, origin: Step
) -> tuple[tuple[OperatorTime, ...], tuple[tuple[BottleneckGroup, NDArray[np.bool_]], ...]]:
    """Return the time of each operator, and the groups with their kernel masks."""
    work, owner = ran
    times = timing.times(work)
    order = network.arrays.order
    spent = times.seconds * work["count"]
    whole = float(spent.sum())
    # An operator may run as several kernels, and with layout copies.
    seconds = np.bincount(owner, spent) / network.arrays.repeats
    held = np.where(
        times.launch > np.maximum(times.working, times.moving),
        "launch",
        np.where(times.working >= times.moving, "compute", "memory"),
    )
    longest = {row: index for index, row in sorted(enumerate(owner.tolist()), key=lambda pair: spent[pair[0]])}
    kinds = np.empty(len(network.arrays), dtype=object)
    fastest = timing.fastest
    product = work["kind"] == MATMUL
    operators = []
    for row, operator, child in zip(order, network, result.children, strict=True):
        # Convolutions that are not matrix products run on the vector units and form groups of their own.
        kinds[row] = "depthwise conv2d" if operator.kind == "conv2d" and not product[row] else operator.kind
        time = float(seconds[row])
        flops = operator.flops
        operators.append(
            OperatorTime(
                name=operator.name,
                kind=str(kinds[row]),
                bound=child.time,
                estimate=computed(time, _S, origin),
                share=time / whole,
                bound_by=child.bound_by,
                limited_by=str(held[longest[row]]),
                flops=flops,
                data=operator.data.to("byte"),
                weights=operator.weights.to("byte"),
                intensity=operator.intensity,
                utilisation=number_in(flops, _FLOP) / time / fastest,
            )
        )
    groups = []
    whose = kinds[owner]
    for kind, cause in dict.fromkeys(zip(whose, held, strict=True)):
        here = (whose == kind) & (held == cause)
        time = float(spent[here].sum())
        groups.append(
            (
                BottleneckGroup(
                    str(kind), str(cause), int(work["count"][here].sum()), computed(time, _S, origin), time / whole
                ),
                here,
            )
        )
    return tuple(operators), tuple(sorted(groups, key=lambda pair: -pair[0].share))
