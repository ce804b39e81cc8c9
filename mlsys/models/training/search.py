"""Search of layouts for training: every division of the chips that the model, the batch and the memory permit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.hardware.system import System
from mlsys.mapping.parallel import Layout, divisors, tensor_sizes
from mlsys.models.training.result import TrainingStep
from mlsys.models.training.stages import enough_layers
from mlsys.models.training.step import training_step
from mlsys.provenance import unrecorded
from mlsys.workloads.zoo.decoder import Decoder

_MICRO_BATCHES = (1, 2, 4)
_RECOMPUTE = ("none", "full")


def rank_layouts(
    system: System, model: Decoder, *, batch: int, fixed: Mapping[str, int], options: Mapping[str, Any]
) -> tuple[TrainingStep, ...]:
    """Return the steps of all layouts that use all chips of a system: those that fit first, the fastest first.

    Parameters
    ----------
    system, model, batch
        As of :func:`~mlsys.models.training.training_step`.
    fixed
        Sizes of the layout that do not vary, such as ``{"tp": 8}``.
    options
        Options of the step that do not vary. ``micro_batch`` otherwise is 1, 2 or 4, ``recompute`` none or full, and
        ``zero`` 1, or also 3 without pipeline stages.

    Raises
    ------
    ArgumentError
        If no layout divides model, chips and batch.

    Examples
    --------
    >>> from mlsys.hardware import systems
    >>> from mlsys.workloads.zoo import language_model
    >>> steps = rank_layouts(systems["DGX_H100"], language_model("llama-3-8b"), batch=64, fixed={}, options={})
    >>> steps[0].fits, steps[0].time <= steps[1].time
    (True, True)
    """
    found: list[TrainingStep] = []
    for layout in _layouts(system, model, fixed, options.get("chunks", 1)):
        for choice in _choices(layout, batch, options):
            with unrecorded():
                found.append(training_step(system, model, layout, batch=batch, **choice))
    if not found:
        _raise_reason(system, model, fixed)
        given = {name: options[name] for name in ("micro_batch", "chunks") if name in options}
        sizes = ", ".join(f"{name}={size}" for name, size in {**fixed, **given}.items())
        raise ArgumentError(
            f"train(): no layout{' with ' + sizes if sizes else ''} divides {model.name}, the {system.chips} chips of "
            f"{system.name} and a batch of {batch}. Write e.g. batch={max(1, -(-batch // system.chips)) * system.chips}"
        )
    found.sort(key=lambda step: (not step.fits, step.time.m_as("s")))
    best = found[0]
    chosen = {"micro_batch": best.micro_batch, "recompute": best.recompute, "zero": best.zero}
    # Once more, so that the fastest names the facts it rests on.
    found[0] = training_step(system, model, best.layout, batch=batch, **{**options, **chosen})
    return tuple(found)


def _raise_reason(system: System, model: Decoder, fixed: Mapping[str, int]) -> None:
    """Raise if the sizes that are fixed do not divide the model or the chips, whatever the others are."""
    sizes = {"ep": 1, **fixed}
    try:  # as many copies as the experts span
        Layout(**{**sizes, "pp": 1, "dp": sizes.get("dp", sizes["ep"])}).check(model)
    except ArgumentError as error:
        reason = str(error).partition("): ")[2] or str(error)
        raise ArgumentError(f"train(): {reason}") from None
    chips = sizes.get("tp", 1) * sizes.get("pp", 1) * sizes.get("cp", 1)
    if "dp" not in sizes and system.chips % chips:
        words = " × ".join(f"{name} {sizes[name]}" for name in ("tp", "pp", "cp") if name in sizes)
        raise ArgumentError(
            f"train(): the {system.chips} chips of {system.name} are no multiple of {words}. Choose divisors of "
            f"{system.chips}, or give dp"
        )


def _layouts(system: System, model: Decoder, fixed: Mapping[str, int], chunks: int) -> Iterator[Layout]:
    chips, layers = system.chips, len(model.layer_list)
    experts = {layer.experts for layer in model.layer_list if layer.experts}
    context = fixed.get("cp", 1)
    tensors = (
        [fixed["tp"]] if "tp" in fixed else [size for size in tensor_sizes(model) if size <= system.chips_per_node]
    )
    stages = [fixed["pp"]] if "pp" in fixed else [
        size for size in divisors(chips)
        if size <= layers and (layers % size == 0 or (layers + 2) % size == 0) and enough_layers(layers, size, chunks)
        and (size > 1 or chunks == 1)
    ]  # fmt: skip
    shared = [size for size in divisors(min(experts, default=1)) if all(count % size == 0 for count in experts)]
    for tensor in tensors:
        for stage in stages:
            grid = tensor * stage * context
            data = fixed.get("dp", chips // grid if grid <= chips and chips % grid == 0 else 0)
            if not data or grid * data > chips:
                continue
            for expert in [fixed["ep"]] if "ep" in fixed else shared:
                if (tensor * data * context) % expert == 0:
                    yield Layout(tp=tensor, pp=stage, ep=expert, dp=data, cp=context)


def _choices(layout: Layout, batch: int, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    micros = [options["micro_batch"]] if "micro_batch" in options else _MICRO_BATCHES
    recomputes = [options["recompute"]] if "recompute" in options else _RECOMPUTE
    zeros = [options["zero"]] if "zero" in options else ([1, 3] if layout.pp == 1 else [1])
    chunks = options.get("chunks", 1)
    for micro in micros:
        if batch % (micro * layout.dp):
            continue
        if chunks > 1 and (batch // (micro * layout.dp)) % layout.pp:
            continue
        for recompute in recomputes:
            for zero in zeros:
                yield {**options, "micro_batch": micro, "recompute": recompute, "zero": zero}
