"""One training step of a decoder language model on a system of chips: time, memory and communication."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import get_args

from mlsys.choices import AttentionKernel, GradientFormat, Optimizer, Overlap, PipelineSchedule, Recompute
from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.hardware.system import System, as_system
from mlsys.mapping.parallel import Layout
from mlsys.models.training.chip import ChipRates, chip_rates
from mlsys.models.training.layers import (
    LayerCost,
    Tokens,
    expert_tensor_shares,
    layer_cost,
    outer_cost,
)
from mlsys.models.training.memory import (
    Recipe,
    Shards,
    layer_activations,
    layer_shards,
    loss_buffers,
    recipe,
)
from mlsys.models.training.network import group
from mlsys.models.training.result import TrainingStep
from mlsys.models.training.schedule import check_schedule, live_micro_batches, pipeline_time
from mlsys.models.training.stages import stage_layers
from mlsys.precision import precision_name
from mlsys.provenance import traced
from mlsys.unit_checks import check_types, checked_choice, checked_count
from mlsys.units import Q_, Quantity
from mlsys.workloads.zoo.decoder import Decoder
from mlsys.workloads.zoo.decoder_layer import DecoderLayer

_PIECES = 4
"""Pieces into which overlapped tensor parallelism divides a product; the first piece's communication is exposed."""
_GRADIENT = {"fp32": 4, "bf16": 2}
_COMPUTE = ("products", "attention", "element-wise", "recomputation", "classifier", "optimizer")


@dataclass(frozen=True)
class _Options:
    """Checked options of a step."""

    batch: int
    micro_batch: int
    sequence: int
    schedule: PipelineSchedule
    chunks: int
    recompute: Recompute
    zero: int
    sequence_parallel: bool
    precision: str
    states: Recipe
    attention: AttentionKernel
    dropout: bool
    overlap: Overlap
    micro_batches: int


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
    options = _checked(
        machine, model, layout, batch, micro_batch, sequence, schedule, chunks, recompute, zero,
        sequence_parallel and layout.tp > 1, precision, optimizer, gradients, attention, dropout, overlap,
    )  # fmt: skip
    return _Step(machine, model, layout, options).result()


def _checked(
    system: System, model: Decoder, layout: Layout, batch: int, micro_batch: int, sequence: int,
    schedule: PipelineSchedule, chunks: int, recompute: Recompute, zero: int, sequence_parallel: bool,
    precision: str, optimizer: Optimizer, gradients: GradientFormat, attention: AttentionKernel,
    dropout: bool, overlap: Overlap,
) -> _Options:  # fmt: skip
    where = "training_step"
    counts = {"batch": batch, "micro_batch": micro_batch, "sequence": sequence, "chunks": chunks}
    batch, micro_batch, sequence, chunks = (checked_count(where, name, value) for name, value in counts.items())
    checked_choice(where, "schedule", schedule, get_args(PipelineSchedule))
    checked_choice(where, "recompute", recompute, get_args(Recompute))
    checked_choice(where, "optimizer", optimizer, get_args(Optimizer))
    checked_choice(where, "gradients", gradients, get_args(GradientFormat))
    checked_choice(where, "attention", attention, get_args(AttentionKernel))
    checked_choice(where, "overlap", overlap, get_args(Overlap))
    if isinstance(zero, bool) or zero not in (0, 1, 2, 3):
        raise ArgumentError(f"{where}(): `zero` must be 0, 1, 2 or 3, got {zero!r}. Write e.g. zero=1")
    _check_layout(model, layout)
    if layout.chips > system.chips:
        raise ArgumentError(
            f"{where}(): `layout` needs {layout.chips} chips ({layout}), and {system.name} has {system.chips}. "
            "Choose smaller sizes, or more nodes"
        )
    layers = len(model.layer_list)
    if layout.pp * chunks > layers and (layers + 2) % (layout.pp * chunks):
        raise ArgumentError(
            f"{where}(): `layout.pp` × `chunks` must be at most the {layers} layers of {model.name}, "
            f"got {layout.pp} × {chunks}. Write e.g. pp={max(1, layers // chunks)}"
        )
    if batch % (micro_batch * layout.dp):
        raise ArgumentError(
            f"{where}(): `batch` must be a multiple of micro_batch × dp = {micro_batch} × {layout.dp}, got {batch}. "
            f"Write e.g. batch={-(-batch // (micro_batch * layout.dp)) * micro_batch * layout.dp}"
        )
    if sequence % layout.cp:
        raise ArgumentError(
            f"{where}(): `sequence` must be a multiple of cp = {layout.cp}, got {sequence}. "
            f"Write e.g. sequence={-(-sequence // layout.cp) * layout.cp}"
        )
    micro_batches = batch // (micro_batch * layout.dp)
    check_schedule(where, schedule, layout.pp, micro_batches, chunks)
    name = precision_name(precision)
    element = 4 if name in ("fp32", "tf32") else 2
    return _Options(
        batch, micro_batch, sequence, schedule, chunks, recompute, zero, sequence_parallel, name,
        recipe(optimizer, element, _GRADIENT[gradients]), attention, dropout, overlap, micro_batches,
    )  # fmt: skip


def _check_layout(model: Decoder, layout: Layout) -> None:
    """Raise if a layout does not divide heads, widths or experts; stages may differ by a layer."""
    try:
        replace(layout, pp=1).check(model)
    except ArgumentError as error:
        reason = str(error).partition("): ")[2] or str(error)
        raise ArgumentError(f"training_step(): `layout` ({layout}): {reason}") from None


class _Step:
    """Sums of one step; floats in SI units."""

    def __init__(self, system: System, model: Decoder, layout: Layout, options: _Options) -> None:
        self.system, self.model, self.layout, self.options = system, model, layout, options
        self.chip: ChipRates = chip_rates(system.device, options.precision)
        sequences = options.micro_batch
        self.tokens = Tokens(sequences, options.sequence, sequences * options.sequence / layout.cp)
        stride = layout.tp * layout.cp
        self.tensor = group(system, layout.tp, 1)
        self.context = group(system, layout.cp, layout.tp)
        self.data = group(system, layout.dp * layout.cp, layout.tp)
        self.pipeline = group(system, layout.pp, stride * layout.dp)
        shares = expert_tensor_shares(layout)
        self.expert = group(system, layout.ep, shares)
        self.expert_data = group(system, layout.stage_chips // (layout.ep * shares), layout.ep * shares)
        self.counts = stage_layers(len(model.layer_list), layout.pp, options.chunks)
        self.outer = outer_cost(model, self.tokens, layout, self.chip)
        self.stages, first = [], 0
        for count in self.counts:
            self.stages.append(tuple(Counter(model.layer_list[first : first + count]).items()))
            first += count
        self.kinds: Counter[DecoderLayer] = Counter()
        for stage in self.stages:
            for layer, count in stage:
                self.kinds[layer] += count
        self.costs: dict[DecoderLayer, LayerCost] = {
            layer: layer_cost(
                layer, model.hidden, self.tokens, layout, self.chip,
                attention=options.attention, sequence_parallel=options.sequence_parallel, dropout=options.dropout,
            )
            for layer in self.kinds
        }  # fmt: skip
        self.shards = {layer: layer_shards(layer, model.hidden, layout) for layer in self.kinds}

    # --- one layer and micro-batch ------------------------------------------------------------

    def _layer_parts(self, layer: DecoderLayer) -> dict[str, tuple[float, float]]:
        """Return the exposed seconds of a layer for one micro-batch by cause, forward and backward."""
        cost, options = self.costs[layer], self.options
        exposed = 1 / _PIECES if options.overlap == "all" else 1.0
        tensor = self.tensor.reduce(cost.tensor_bytes / 2) * 2
        tensor = max(tensor * exposed, tensor - cost.products[0]) if exposed < 1 else tensor
        expert = 2 * self.expert.exchange(cost.expert_bytes / 2, max(1, layer.active_experts))
        expert = max(expert * exposed, expert - cost.products[0] - cost.attention[0]) if exposed < 1 else expert
        passes = self.context.ranks - 1
        context = passes * self.context.send(cost.context_bytes)
        contexts = max(0.0, context - cost.attention[0]), max(0.0, 2 * context - cost.attention[1])
        again = 0.0
        if options.recompute == "full":
            again = cost.forward + tensor + expert + contexts[0]
        elif options.recompute == "selective" and options.attention == "standard":
            again = cost.attention[0]
        parts = {
            "products": cost.products,
            "attention": cost.attention,
            "element-wise": cost.elementwise,
            "recomputation": (0.0, again),
            "tensor communication": (tensor, tensor),
            "expert communication": (expert, expert),
            "context communication": contexts,
        }
        if options.zero == 3:
            gather, scatter = self._sharded(layer)
            ahead = cost.forward * (options.overlap != "none")
            behind = (cost.backward + again) * (options.overlap != "none")
            parts["data communication"] = max(0.0, gather - ahead), max(0.0, gather + scatter - behind)
        return parts

    def _sharded(self, layer: DecoderLayer) -> tuple[float, float]:
        """Return the seconds in which ZeRO-3 gathers a layer's weights once, and scatters its gradients."""
        dense, experts = self.shards[layer]
        states = self.options.states
        gather = self.data.gather(dense * states.weight) + self.expert_data.gather(experts * states.weight)
        scatter = self.data.gather(dense * states.gradient) + self.expert_data.gather(experts * states.gradient)
        return gather, scatter

    # --- stages --------------------------------------------------------------------------------

    def _stages(self) -> list[dict[str, tuple[float, float]]]:
        """Return the seconds of each stage for one micro-batch by cause, forward and backward."""
        by_layer = {layer: self._layer_parts(layer) for layer in self.costs}
        message = self._message_seconds()
        stages = []
        for index, layers in enumerate(self.stages):
            total: dict[str, tuple[float, float]] = {}
            for layer, count in layers:
                for name, (ahead, behind) in by_layer[layer].items():
                    have = total.get(name, (0.0, 0.0))
                    total[name] = have[0] + count * ahead, have[1] + count * behind
            if index == self.layout.pp - 1:
                total["classifier"] = self.outer[0], self.outer[1]
            total["pipeline messages"] = message, message
            stages.append(total)
        return stages

    def _message_bytes(self) -> float:
        """Return the bytes that one chip sends to the next stage for one micro-batch and chunk."""
        if self.layout.pp == 1:
            return 0.0
        return self.tokens.here * self.model.hidden * self.chip.element / self.layout.tp

    def _message_seconds(self) -> float:
        """Return the exposed seconds of messages for one micro-batch and direction, over all chunks of a stage."""
        if self.layout.pp == 1 or self.options.overlap == "all":
            return 0.0
        return self.options.chunks * self.pipeline.send(self._message_bytes())

    def _stage_shards(self, stage: int) -> Shards:
        dense = sum(count * self.shards[layer][0] for layer, count in self.stages[stage])
        experts = sum(count * self.shards[layer][1] for layer, count in self.stages[stage])
        outside = self.model.outside_parameters() / self.layout.tp
        if self.layout.pp > 1:
            # The embedding table is on the first stage and the classifier, a copy of it if tied, on the last.
            table = self.model.vocabulary * (self.model.embedding_width or self.model.hidden) / self.layout.tp
            ends = (0, self.layout.pp - 1)
            outside = table if stage in ends else 0.0
        return Shards(dense + outside, experts, self.data.ranks, self.expert_data.ranks)

    # --- data parallelism and the update -----------------------------------------------------------

    def _reduction(self, shards: Shards, forward: float, backward: float) -> float:
        """Return the exposed seconds of sharing gradients and weights once in a step (ZeRO 0 to 2)."""
        options = self.options
        if options.zero == 3:
            return 0.0
        weight, gradient = options.states.weight, options.states.gradient
        scatter = self.data.gather(shards.dense * gradient) + self.expert_data.gather(shards.experts * gradient)
        size = weight if options.zero else gradient
        gather = self.data.gather(shards.dense * size) + self.expert_data.gather(shards.experts * size)
        if options.overlap == "none":
            return scatter + gather
        if options.zero:
            return max(0.0, scatter - backward) + max(0.0, gather - forward)
        return max(0.0, scatter + gather - backward)

    def _update(self, shards: Shards) -> float:
        """Return the seconds of the optimiser, which reads gradients and state and writes state and weights."""
        states = self.options.states
        moved = states.gradient + 2 * states.optimizer + states.weight
        if states.optimizer == 0:
            moved += states.weight
        ranks = (shards.dense_ranks, shards.expert_ranks) if self.options.zero else (1, 1)
        return self.chip.stream(moved * (shards.dense / ranks[0] + shards.experts / ranks[1]))

    # --- memory ------------------------------------------------------------------------------------

    def _memory(self, stage: int) -> dict[str, float]:
        layout, options, model = self.layout, self.options, self.model
        shards = self._stage_shards(stage)
        keep = {
            layer: layer_activations(
                layer, model.hidden, self.tokens, layout, element=self.chip.element, attention=options.attention,
                sequence_parallel=options.sequence_parallel, dropout=options.dropout, recompute=options.recompute,
            )
            for layer, _ in self.stages[stage]
        }  # fmt: skip
        live = live_micro_batches(options.schedule, stage, layout.pp, options.micro_batches, options.chunks)
        activations = live * sum(count * keep[layer] for layer, count in self.stages[stage])
        if options.recompute == "full":
            # One layer at a time holds all of its activations while its backward pass runs.
            activations += max(
                layer_activations(
                    layer, model.hidden, self.tokens, layout, element=self.chip.element, attention=options.attention,
                    sequence_parallel=options.sequence_parallel, dropout=options.dropout,
                )
                for layer in keep
            )  # fmt: skip
        buffers = 0.0
        if options.zero == 3:
            # The layer at work and the next one are gathered.
            largest = max(sum(self.shards[layer]) for layer in keep)
            buffers = 2 * largest * options.states.weight
        logits = loss_buffers(model, self.tokens, layout, self.chip.element) if stage == layout.pp - 1 else 0.0
        return {
            **shards.bytes(options.zero, options.states),
            "activations": activations,
            "logits": logits,
            "buffers": buffers,
        }

    # --- the answer ----------------------------------------------------------------------------------

    def result(self) -> TrainingStep:
        """Return the step."""
        options, layout = self.options, self.layout
        stages = self._stages()
        times = [(sum(a for a, _ in each.values()), sum(b for _, b in each.values())) for each in stages]
        both = [ahead + behind for ahead, behind in times]
        busiest = max(range(layout.pp), key=both.__getitem__)
        m = options.micro_batches
        piped = pipeline_time(both, m, options.chunks)
        parts = {name: m * sum(pair) for name, pair in stages[busiest].items()}
        parts["pipeline bubble"] = piped - m * both[busiest]
        if layout.pp > 1 and options.overlap == "all":
            parts["pipeline messages"] = 2 * (layout.pp - 1) * self.pipeline.send(self._message_bytes())
        shards = [self._stage_shards(stage) for stage in range(layout.pp)]
        reductions = [self._reduction(shards[stage], *times[stage]) for stage in range(layout.pp)]
        slowest = max(range(layout.pp), key=lambda stage: reductions[stage] + self._update(shards[stage]))
        parts["data communication"] = parts.get("data communication", 0.0) + reductions[slowest]
        parts["optimizer"] = self._update(shards[slowest])
        time = sum(parts.values())
        memory = max((self._memory(stage) for stage in range(layout.pp)), key=lambda each: sum(each.values()))
        capacity = self.system.device.level().capacity
        return TrainingStep(
            model="training_step",
            device=self.system.name,
            workload=f"{self.model.name}, {options.batch} × {options.sequence} tokens, {options.precision}",
            time=Q_(time, "s"),
            bound_by=_bound_by(parts),
            parts=FrozenDict({name: Q_(value, "s") for name, value in parts.items()}),
            figures=FrozenDict(self._figures(time, piped, both)),
            assumptions=self._assumptions(),
            layout=layout,
            chips=layout.chips,
            memory=FrozenDict({name: Q_(value, "byte") for name, value in memory.items()}),
            capacity=capacity,
            sent=FrozenDict({name: Q_(value, "byte") for name, value in self._sent(shards[busiest], busiest).items()}),
            links=FrozenDict(
                {
                    "tensor": self.tensor.link,
                    "pipeline": self.pipeline.link,
                    "data": self.data.link,
                    "expert": self.expert.link,
                    "context": self.context.link,
                }
            ),
            tokens=options.batch * options.sequence,
            chip=self.system.device,
            micro_batch=options.micro_batch,
            recompute=options.recompute,
            zero=options.zero,
        )

    def _figures(self, time: float, piped: float, both: list[float]) -> dict[str, Quantity]:
        options, layout = self.options, self.layout
        passes = options.micro_batches
        products = sum(count * self.costs[layer].macs for layer, count in self.kinds.items())
        computed = sum(count * self.costs[layer].attention_macs for layer, count in self.kinds.items())
        # On one chip and stage; all chips of a stage do as much, and each layer is on one stage.
        grid = layout.stage_chips * passes
        causal = (
            computed if options.attention == "flash" else computed * (options.sequence + 1) / (2 * options.sequence)
        )
        model_flops = 6 * grid * (products + causal + self.outer[2])
        hardware = 6 * grid * (products + computed + self.outer[2])
        if options.recompute == "full":
            hardware += 2 * grid * (products + computed)
        elif options.recompute == "selective" and options.attention == "standard":
            hardware += 2 * grid * computed
        rate = layout.chips * time
        peak = self.chip.peak
        return {
            "MFU": Q_(model_flops / rate / peak, ""),
            "HFU": Q_(hardware / rate / peak, ""),
            "model FLOP": Q_(model_flops, "FLOP"),
            "hardware FLOP": Q_(hardware, "FLOP"),
            "model FLOP/s per chip": Q_(model_flops / rate / 1e12, "TFLOP/s"),
            "bubble share": Q_((piped - passes * sum(both) / layout.pp) / time, ""),
            "micro-batches": Q_(passes, ""),
        }

    def _sent(self, shards: Shards, stage: int) -> dict[str, float]:
        """Return the bytes that a chip of a stage sends in one step, by axis."""
        options, m = self.options, self.options.micro_batches
        layers = self.stages[stage]
        runs = 3 if options.recompute == "full" else 2

        def ring(ranks: int) -> float:
            return (ranks - 1) / ranks

        weight, gradient = options.states.weight, options.states.gradient
        each = ((shards.dense, self.data.ranks), (shards.experts, self.expert_data.ranks))
        if options.zero == 3:
            data = m * sum(size * (2 * weight + gradient) * ring(ranks) for size, ranks in each)
        else:
            second = weight if options.zero else gradient
            data = sum(size * (gradient + second) * ring(ranks) for size, ranks in each)
        tensor = sum(2 * count * self.costs[layer].tensor_bytes for layer, count in layers) * ring(self.tensor.ranks)
        expert = sum(
            count * sum(self.expert.exchanged(self.costs[layer].expert_bytes, max(1, layer.active_experts)))
            for layer, count in layers
        )
        context = sum(3 * count * self.costs[layer].context_bytes for layer, count in layers) * (self.context.ranks - 1)
        return {
            "tensor": m * runs * tensor,
            "pipeline": m * 2 * options.chunks * self._message_bytes(),
            "data": data,
            "expert": m * runs * expert,
            "context": m * context,
        }

    def _assumptions(self) -> tuple[str, ...]:
        options = self.options
        scores = "those the mask keeps" if options.attention == "flash" else "all, stored"
        hidden = {
            "none": "no communication is hidden",
            "data": "data-parallel communication is hidden behind computation as far as that lasts",
            "all": "communication of all axes is hidden as far as computation lasts",
        }
        recompute = {
            "none": "nothing is recomputed",
            "selective": "attention scores are recomputed",
            "full": "each layer's forward pass is recomputed",
        }
        rest = "the measured rate of this chip" if self.chip.measured else "an assumed share of peak"
        return (
            f"products at {self.chip.products / 1e12:.0f} of {self.chip.peak / 1e12:.0f} TFLOP/s, {rest}",
            f"attention scores: {scores}; model FLOP count those that a causal mask keeps",
            recompute[options.recompute],
            hidden[options.overlap],
            "a training loop without stalls: no data loading, checkpoints, evaluations or failures",
            f"{options.states.total} B for each parameter before sharding: weight {options.states.weight}, "
            f"gradient {options.states.gradient}, optimiser {options.states.optimizer}; ZeRO stage {options.zero}",
            "memory of the framework and fragmentation are not counted",
        )


def _bound_by(parts: dict[str, float]) -> str:
    compute = parts.get("products", 0.0) + parts.get("attention", 0.0) + parts.get("classifier", 0.0)
    groups = {
        "compute": compute + parts.get("recomputation", 0.0),
        "memory": parts.get("element-wise", 0.0) + parts.get("optimizer", 0.0),
        "communication": sum(value for name, value in parts.items() if "communication" in name or "messages" in name),
        "pipeline": parts.get("pipeline bubble", 0.0),
    }
    return max(groups, key=lambda name: groups[name])
