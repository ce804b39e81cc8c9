"""One training step of a decoder language model on a system of chips: time, memory and communication."""

from __future__ import annotations

from mlsys.choices import AttentionKernel, GradientFormat, Optimizer, Overlap, PipelineSchedule, Recompute
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.hardware.system import System, as_system
from mlsys.mapping.parallel import Layout
from mlsys.models.training.communication import (
    gradient_reduction,
    layer_communication,
    message_seconds,
    sent_bytes,
    sharded_weights,
)
from mlsys.models.training.memory import Shards, stage_memory
from mlsys.models.training.options import checked_options
from mlsys.models.training.partition import Partition
from mlsys.models.training.result import TrainingStep
from mlsys.models.training.schedule import pipeline_time
from mlsys.models.training.summary import assumptions, bound_by, figures
from mlsys.provenance import traced
from mlsys.unit_checks import check_types
from mlsys.units import Q_
from mlsys.workloads.zoo.decoder import Decoder
from mlsys.workloads.zoo.decoder_layer import DecoderLayer

Passes = dict[str, tuple[float, float]]
"""Seconds by cause, forward and backward."""


@traced
@check_types(
    system=((System, Device), "a system or a device, such as mlsys.hardware.systems['DGX_H100']"),
    model=(Decoder, "a decoder language model, such as language_model('llama-3-70b')"),
    layout=(Layout, "a layout, such as Layout(tp=8, dp=4)"),
)
def training_step(
    system: System | Device,
    model: Decoder,
    layout: Layout,
    *,
    batch: int,
    micro_batch: int = 1,
    sequence: int = 2048,
    schedule: PipelineSchedule = "1f1b",
    chunks: int = 1,
    recompute: Recompute = "none",
    zero: int = 1,
    sequence_parallel: bool = True,
    precision: str = "bf16",
    optimizer: Optimizer = "adam",
    gradients: GradientFormat = "fp32",
    attention: AttentionKernel = "flash",
    dropout: bool = False,
    overlap: Overlap = "data",
) -> TrainingStep:
    """Estimate one optimiser step of a decoder language model.

    Products run at the rate that was measured for the chip, attention and element-wise work at shares of peak and
    bandwidth, collectives at a share of the link's bandwidth. Nothing is fitted to published runs.

    Parameters
    ----------
    system
        Chips and their links; a device is a system of one chip.
    model
        A decoder, dense or with experts.
    layout
        Tensor, pipeline, expert, data and context parallelism. Chips of one tensor-parallel group are neighbours,
        then those of context, data and pipeline parallelism.
    batch, micro_batch
        Sequences of a step over all chips, and those that a chip processes at a time.
    sequence
        Tokens of a sequence.
    schedule, chunks
        Order of pipeline passes, and chunks of layers on each stage for ``"interleaved"``.
    recompute
        ``"selective"`` repeats attention scores in the backward pass, ``"full"`` whole layers.
    zero
        Stage of ZeRO: 1 shards the optimiser state over data-parallel chips, 2 also gradients, 3 also weights (FSDP).
    sequence_parallel
        Whether chips of tensor parallelism share the tokens of normalisations and residuals.
    precision
        Number format of the products. Activations, attention and the classifier are in 16 bits, or in 32 for FP32.
    optimizer, gradients
        Update rule, and number format in which gradients are kept and reduced.
    attention
        ``"flash"`` computes the scores that the mask keeps and stores none; ``"standard"`` computes and stores all.
    dropout
        Whether residual branches and attention have dropout, which stores masks.
    overlap
        ``"data"`` runs gradient reductions and weight gathers beside computation; ``"all"`` also tensor and expert
        parallelism (in four pieces, of which the first is exposed) and messages between stages.

    Returns
    -------
    TrainingStep
        With ``parts`` in seconds on the busiest stage, memory by part, bytes sent by axis, MFU and HFU.

    Raises
    ------
    ArgumentError
        If the layout does not divide the model, needs more chips than there are, or the batch is not a multiple of
        micro-batch times data parallelism.
    UnknownNameError
        If a name is unknown, the chip lacks the number format, or the system lacks a link that the layout needs.

    References
    ----------
    D. Narayanan et al., SC21, arXiv:2104.04473; V. Korthikanti et al., arXiv:2205.05198; S. Rajbhandari et al.,
    arXiv:1910.02054.

    Examples
    --------
    >>> from mlsys.hardware import systems
    >>> from mlsys.workloads.zoo import language_model
    >>> system = systems["DGX_H100"].with_nodes(2)
    >>> step = training_step(system, language_model("llama-3-8b"), Layout(tp=2, dp=8), batch=128, sequence=8192)
    >>> 0.3 < step.figures["MFU"].magnitude < 0.6, step.fits
    (True, True)
    """
    machine = as_system(system)
    options = checked_options(
        machine,
        model,
        layout,
        batch=batch,
        micro_batch=micro_batch,
        sequence=sequence,
        schedule=schedule,
        chunks=chunks,
        recompute=recompute,
        zero=zero,
        sequence_parallel=sequence_parallel,
        precision=precision,
        optimizer=optimizer,
        gradients=gradients,
        attention=attention,
        dropout=dropout,
        overlap=overlap,
    )
    return _estimate(Partition(machine, model, layout, options))


def _estimate(partition: Partition) -> TrainingStep:
    """Return the step: the busiest stage sets the time of the pipeline, the slowest update that of the rest."""
    options, layout, groups = partition.options, partition.layout, partition.groups
    stages = _stage_parts(partition)
    times = [(sum(a for a, _ in each.values()), sum(b for _, b in each.values())) for each in stages]
    both = [ahead + behind for ahead, behind in times]
    busiest = max(range(layout.pp), key=both.__getitem__)
    micro_batches = options.micro_batches
    piped = pipeline_time(both, micro_batches, options.chunks)
    parts = {name: micro_batches * sum(pair) for name, pair in stages[busiest].items()}
    parts["pipeline bubble"] = piped - micro_batches * both[busiest]
    if layout.pp > 1 and options.overlap == "all":
        parts["pipeline messages"] = 2 * (layout.pp - 1) * groups.pipeline.send(partition.message_bytes())
    shards = [partition.stage_shards(stage) for stage in range(layout.pp)]
    reductions = [gradient_reduction(partition, shards[stage], *times[stage]) for stage in range(layout.pp)]
    updates = [_update(partition, each) for each in shards]
    slowest = max(range(layout.pp), key=lambda stage: reductions[stage] + updates[stage])
    parts["data communication"] = parts.get("data communication", 0.0) + reductions[slowest]
    parts["optimizer"] = updates[slowest]
    time = sum(parts.values())
    memory = max((stage_memory(partition, stage) for stage in range(layout.pp)), key=lambda each: sum(each.values()))
    sent = sent_bytes(partition, busiest)
    return TrainingStep(
        model="training_step",
        device=partition.system.name,
        workload=f"{partition.model.name}, {options.batch} × {options.sequence} tokens, {options.precision}",
        time=Q_(time, "s"),
        bound_by=bound_by(parts),
        parts=FrozenDict({name: Q_(value, "s") for name, value in parts.items()}),
        figures=FrozenDict(figures(partition, time, piped, both)),
        assumptions=assumptions(partition),
        layout=layout,
        chips=layout.chips,
        memory=FrozenDict({name: Q_(value, "byte") for name, value in memory.items()}),
        capacity=partition.system.device.level().capacity,
        sent=FrozenDict({name: Q_(value, "byte") for name, value in sent.items()}),
        links=FrozenDict({axis: getattr(groups, axis).link for axis in sent}),
        tokens=options.batch * options.sequence,
        chip=partition.system.device,
        micro_batch=options.micro_batch,
        recompute=options.recompute,
        zero=options.zero,
    )


def _stage_parts(partition: Partition) -> list[Passes]:
    """Return the seconds of each stage for one micro-batch by cause, forward and backward."""
    by_layer = {layer: _layer_parts(partition, layer) for layer in partition.costs}
    message = message_seconds(partition)
    stages = []
    for index, layers in enumerate(partition.stages):
        total: Passes = {}
        for layer, count in layers:
            for name, (ahead, behind) in by_layer[layer].items():
                have = total.get(name, (0.0, 0.0))
                total[name] = have[0] + count * ahead, have[1] + count * behind
        if index == partition.layout.pp - 1:
            total["classifier"] = partition.classifier[:2]
        total["pipeline messages"] = message, message
        stages.append(total)
    return stages


def _layer_parts(partition: Partition, layer: DecoderLayer) -> Passes:
    """Return the exposed seconds of a layer for one micro-batch by cause, forward and backward."""
    cost, options = partition.costs[layer], partition.options
    communication = layer_communication(partition, layer)
    again = 0.0
    if options.recompute == "full":
        again = cost.forward + sum(forward for forward, _ in communication.values())
    elif options.recomputes_scores:
        again = cost.attention[0]
    parts = {
        "products": cost.products,
        "attention": cost.attention,
        "element-wise": cost.elementwise,
        "recomputation": (0.0, again),
        **communication,
    }
    if options.zero == 3:
        parts["data communication"] = sharded_weights(partition, layer, cost.forward, cost.backward + again)
    return parts


def _update(partition: Partition, shards: Shards) -> float:
    """Return the seconds of the optimiser, which reads gradients and state and writes state and weights."""
    states = partition.options.states
    moved = states.gradient + 2 * states.optimizer + states.weight
    if states.optimizer == 0:
        moved += states.weight
    ranks = (shards.dense_ranks, shards.expert_ranks) if partition.options.zero else (1, 1)
    return partition.chip.stream(moved * (shards.dense / ranks[0] + shards.experts / ranks[1]))
