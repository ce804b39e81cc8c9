"""Summary of a training step: utilisation and operations, assumptions, and what bounds the time."""

from __future__ import annotations

from mlsys.models.training.partition import Partition
from mlsys.units import Q_, Quantity


def figures(partition: Partition, time: float, piped: float, stage_times: list[float]) -> dict[str, Quantity]:
    """Return utilisation, operations and bubble of a step.

    Parameters
    ----------
    partition
        The model on its chips.
    time, piped
        Seconds of the step, and of its pipeline without the update.
    stage_times
        Seconds of each stage for one micro-batch, forward and backward.
    """
    options, layout = partition.options, partition.layout
    passes = options.micro_batches
    products = sum(count * partition.costs[layer].macs for layer, count in partition.kinds.items())
    computed = sum(count * partition.costs[layer].attention_macs for layer, count in partition.kinds.items())
    # On one chip and stage; all chips of a stage do as much, and each layer is on one stage.
    grid = layout.stage_chips * passes
    causal = computed if options.attention == "flash" else computed * (options.sequence + 1) / (2 * options.sequence)
    model_flops = 6 * grid * (products + causal + partition.classifier[2])
    hardware = 6 * grid * (products + computed + partition.classifier[2])
    if options.recompute == "full":
        hardware += 2 * grid * (products + computed)
    elif options.recomputes_scores:
        hardware += 2 * grid * computed
    rate = layout.chips * time
    peak = partition.chip.peak
    return {
        "MFU": Q_(model_flops / rate / peak, ""),
        "HFU": Q_(hardware / rate / peak, ""),
        "model FLOP": Q_(model_flops, "FLOP"),
        "hardware FLOP": Q_(hardware, "FLOP"),
        "model FLOP/s per chip": Q_(model_flops / rate / 1e12, "TFLOP/s"),
        "bubble share": Q_((piped - passes * sum(stage_times) / layout.pp) / time, ""),
        "micro-batches": Q_(passes, ""),
    }


def assumptions(partition: Partition) -> tuple[str, ...]:
    """Return the assumptions of a step, for people."""
    options, chip = partition.options, partition.chip
    scores = "those the mask keeps" if options.attention == "flash" else "all, stored"
    hidden = {
        "none": "no communication is hidden",
        "data": "data-parallel communication is hidden behind computation for as long as that lasts",
        "all": "communication of all axes is hidden as far as computation lasts",
    }
    recompute = {
        "none": "nothing is recomputed",
        "selective": "attention scores are recomputed"
        if options.recomputes_scores
        else "fused attention stores no scores, so that selective recomputation changes nothing",
        "full": "each layer's forward pass is recomputed",
    }
    rest = "the measured rate of this chip" if chip.measured else "an assumed share of peak"
    return (
        f"products at {chip.products / 1e12:.0f} of {chip.peak / 1e12:.0f} TFLOP/s, {rest}",
        f"attention scores: {scores}; model FLOP count those that a causal mask keeps",
        recompute[options.recompute],
        hidden[options.overlap],
        "a training loop without stalls: no data loading, checkpoints, evaluations or failures",
        f"{options.states.total} B for each parameter before sharding: weight {options.states.weight}, "
        f"gradient {options.states.gradient}, optimiser {options.states.optimizer}; ZeRO stage {options.zero}",
        "memory of the framework and fragmentation are not counted",
    )


def bound_by(parts: dict[str, float]) -> str:
    """Return ``"compute"``, ``"memory"``, ``"communication"`` or ``"pipeline"``: what takes the longest."""
    compute = parts.get("products", 0.0) + parts.get("attention", 0.0) + parts.get("classifier", 0.0)
    groups = {
        "compute": compute + parts.get("recomputation", 0.0),
        "memory": parts.get("element-wise", 0.0) + parts.get("optimizer", 0.0),
        "communication": sum(value for name, value in parts.items() if "communication" in name or "messages" in name),
        "pipeline": parts.get("pipeline bubble", 0.0),
    }
    return max(groups, key=lambda name: groups[name])
