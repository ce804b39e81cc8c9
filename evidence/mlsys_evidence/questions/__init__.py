"""From a typed row to a question for the models: an engine, its work and the time it took."""

from collections.abc import Callable
from dataclasses import replace

from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.questions import typed_case
from mlsys.calibration.rows import Row
from mlsys.errors import ArgumentError
from mlsys.provenance import remembered
from mlsys_evidence.questions import (
    attention,
    convolutions,
    diffusion,
    encoders,
    energy,
    experts,
    kernels,
    language,
    microcontrollers,
    networks,
    products,
    recurrences,
    training,
    transfers,
)
from mlsys_evidence.questions.metal_sync_overhead import crossing
from mlsys_evidence.questions.page_faults import on_fresh_pages
from mlsys_evidence.rows import typed
from mlsys_evidence.typed_rows import TypedRow

__all__ = ["ask", "interpret", "kind_of", "typed"]

_OPERATIONS: dict[str, Callable[[TypedRow], Case]] = {
    "product": products.gemm_kernel,
    "convolution": convolutions.convolution,
    **dict.fromkeys(("softmax", "layer norm"), kernels.reduction),
    **dict.fromkeys(("gelu", "relu", "tanh"), kernels.element_wise),
    **dict.fromkeys(
        (f"{name} of a layer" for name in ("product", "all-reduce", "softmax", "layer norm", "gelu")),
        kernels.operator_of_a_layer,
    ),
    "attention": attention.attention_kernel,
    "decode attention": attention.decode_attention,
    "experts": experts.experts,
    "recurrent layer": kernels.recurrence,
    "recurrent layers": recurrences.stacked,
    "stream": transfers.stream,
    "repeated read": transfers.beyond_cache,
    "intensity sweep": transfers.intensity_sweep,
    **dict.fromkeys(("all-reduce", "all-gather", "all-to-all"), transfers.collective),
    **dict.fromkeys(("training", "language training"), training.training),
    "prefill": language.prefill,
    "decode": language.decode,
    "generation": language.generation,
    "serving": language.serving,
    "encoder": encoders.encoder,
    "microcontroller network": microcontrollers.tiny,
    "microcontroller kernel": microcontrollers.tiny_kernel,
    "microcontroller layers": microcontrollers.tiny_layers,
    "denoising": diffusion.denoising,
    "network": networks.inference,
    "recommender": networks.recommender,
}


def kind_of(row: Row) -> str:
    """Return the kind of workload that a row is counted under."""
    if row.typed:
        return "network inference" if row.network else "copy and stream"
    return typed(row).kind


def interpret(row: Row) -> Case:
    """Return a row as a case: by its own typed columns, by those that are stored, or by those that ingest makes of it.

    Raises
    ------
    Inexpressible
        If no model can express it; the text is the reason.
    """
    if row.typed:
        return typed_case(row)
    return ask(typed(row))


def ask(row: TypedRow) -> Case:
    """Return a typed row as a case.

    Raises
    ------
    Inexpressible
        If no model can express it; the text is the reason.
    """
    answer = _answer(row)
    if isinstance(answer, str):
        raise Inexpressible(answer)
    return answer


@remembered
def _answer(row: TypedRow) -> Case | str:
    """Return a row as a case, or why it is none: the fit, the scores and the tables ask for the same rows again."""
    if row.refused:
        return row.refused
    try:
        case = crossing(row, on_fresh_pages(row, _case(row)))
    except (ArgumentError, Inexpressible) as reason:
        return str(reason)
    return replace(case, network=row.label or row.network, version=row.version)


def _case(row: TypedRow) -> Case:
    of_operation = _OPERATIONS[row.operation]
    if not row.has("energy"):
        return of_operation(row)
    timed = replace(row, row=replace(row.row, metric="latency", unit="ms", value=1.0))
    return energy.as_energy(row, of_operation(timed))
