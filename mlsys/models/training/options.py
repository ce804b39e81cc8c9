"""Options of a training step, checked against the system, the model and the layout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

from mlsys.choices import AttentionKernel, GradientFormat, Optimizer, Overlap, PipelineSchedule, Recompute
from mlsys.errors import ArgumentError
from mlsys.hardware.system import System
from mlsys.mapping.parallel import Layout
from mlsys.models.training.chip import activation_bytes
from mlsys.models.training.memory import Recipe, recipe
from mlsys.models.training.schedule import check_schedule
from mlsys.models.training.stages import enough_layers
from mlsys.precision import precision_name
from mlsys.unit_checks import checked_choice, checked_count
from mlsys.workloads.zoo.decoder import Decoder

_GRADIENT_BYTES: dict[GradientFormat, int] = {"fp32": 4, "bf16": 2}
_WHERE = "training_step"


@dataclass(frozen=True)
class StepOptions:
    """Checked options of a training step.

    Attributes
    ----------
    batch, micro_batch, sequence, schedule, chunks, recompute, zero, precision, attention, dropout, overlap
        As of :func:`~mlsys.models.training.training_step`.
    sequence_parallel
        As there; false without tensor parallelism.
    states
        Bytes of weight, gradient and optimiser state for each parameter.
    micro_batches
        Micro-batches that each pipeline processes in a step.
    """

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

    @property
    def recomputes_scores(self) -> bool:
        """Whether the backward pass repeats attention scores alone; fused kernels store none."""
        return self.recompute == "selective" and self.attention == "standard"


def checked_options(
    system: System,
    model: Decoder,
    layout: Layout,
    *,
    batch: int,
    micro_batch: int,
    sequence: int,
    schedule: PipelineSchedule,
    chunks: int,
    recompute: Recompute,
    zero: int,
    sequence_parallel: bool,
    precision: str,
    optimizer: Optimizer,
    gradients: GradientFormat,
    attention: AttentionKernel,
    dropout: bool,
    overlap: Overlap,
) -> StepOptions:
    """Return the options of a training step.

    Raises
    ------
    ArgumentError
        If a count is not a whole number from 1, or layout, batch and sequence do not suit each other, the model or
        the system.
    UnknownNameError
        If a choice or the number format is unknown.
    """
    counts = {"batch": batch, "micro_batch": micro_batch, "sequence": sequence, "chunks": chunks}
    batch, micro_batch, sequence, chunks = (checked_count(_WHERE, name, value) for name, value in counts.items())
    checked_choice(_WHERE, "schedule", schedule, get_args(PipelineSchedule))
    checked_choice(_WHERE, "recompute", recompute, get_args(Recompute))
    checked_choice(_WHERE, "optimizer", optimizer, get_args(Optimizer))
    checked_choice(_WHERE, "gradients", gradients, get_args(GradientFormat))
    checked_choice(_WHERE, "attention", attention, get_args(AttentionKernel))
    checked_choice(_WHERE, "overlap", overlap, get_args(Overlap))
    if isinstance(zero, bool) or zero not in (0, 1, 2, 3):
        raise ArgumentError(f"{_WHERE}(): `zero` must be 0, 1, 2 or 3, got {zero!r}. Write e.g. zero=1")
    _check_layout(model, layout)
    if chunks > 1 and layout.pp == 1:
        raise ArgumentError(
            f"{_WHERE}(): `chunks` divides the stages of a pipeline, and `layout` ({layout}) has one. Write chunks=1, "
            "or a layout with pp=2"
        )
    if layout.chips > system.chips:
        raise ArgumentError(
            f"{_WHERE}(): `layout` needs {layout.chips} chips ({layout}), and {system.name} has {system.chips}. "
            "Choose smaller sizes, or more nodes"
        )
    layers = len(model.layer_list)
    if not enough_layers(layers, layout.pp, chunks):
        raise ArgumentError(
            f"{_WHERE}(): `layout.pp` × `chunks` must be at most the {layers} layers of {model.name}, "
            f"got {layout.pp} × {chunks}. Write e.g. pp={max(1, layers // chunks)}"
        )
    if batch % (micro_batch * layout.dp):
        raise ArgumentError(
            f"{_WHERE}(): `batch` must be a multiple of micro_batch × dp = {micro_batch} × {layout.dp}, got {batch}. "
            f"Write e.g. batch={-(-batch // (micro_batch * layout.dp)) * micro_batch * layout.dp}"
        )
    if sequence % layout.cp:
        raise ArgumentError(
            f"{_WHERE}(): `sequence` must be a multiple of cp = {layout.cp}, got {sequence}. "
            f"Write e.g. sequence={-(-sequence // layout.cp) * layout.cp}"
        )
    micro_batches = batch // (micro_batch * layout.dp)
    check_schedule(_WHERE, schedule, layout.pp, micro_batches, chunks)
    name = precision_name(precision)
    if name.startswith("int"):
        raise ArgumentError(
            f"{_WHERE}(): `precision` must be a floating-point format, as gradients need its range, got {name}. "
            "Write e.g. precision='bf16'"
        )
    return StepOptions(
        batch=batch,
        micro_batch=micro_batch,
        sequence=sequence,
        schedule=schedule,
        chunks=chunks,
        recompute=recompute,
        zero=zero,
        sequence_parallel=sequence_parallel and layout.tp > 1,
        precision=name,
        states=recipe(optimizer, activation_bytes(name), _GRADIENT_BYTES[gradients]),
        attention=attention,
        dropout=dropout,
        overlap=overlap,
        micro_batches=micro_batches,
    )


def _check_layout(model: Decoder, layout: Layout) -> None:
    """Raise if a layout does not divide heads, widths or experts; stages may differ by a layer."""
    try:
        replace(layout, pp=1).check(model)
    except ArgumentError as error:
        reason = str(error).partition("): ")[2] or str(error)
        raise ArgumentError(f"{_WHERE}(): `layout` ({layout}): {reason}") from None
