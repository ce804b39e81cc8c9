"""From the words of a published row to an engine, its work and the time it took."""

import functools
import re
from collections.abc import Callable
from dataclasses import replace

from mlsys.calibration.case import Case, Inexpressible, without_zeros
from mlsys.calibration.questions import typed_case
from mlsys.calibration.rows import Row
from mlsys.errors import ArgumentError
from mlsys.provenance import remembered
from mlsys_evidence.ingest import (
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
from mlsys_evidence.ingest.metal_sync_overhead import crossing
from mlsys_evidence.ingest.page_faults import on_fresh_pages
from mlsys_evidence.ingest.shapes import usual_name

Reader = Callable[[Row], Case]


def _not(reason: str) -> Reader:
    def refuse(row: Row) -> Case:
        raise Inexpressible(reason)

    return refuse


def _energy(row: Row) -> Case:
    tiny = "MLPerf Tiny" in row.workload
    return energy.energy_of_tiny(row) if tiny else energy.energy_of_network(row)


# What a metric that is no time says, whatever the workload.
_METRICS: tuple[tuple[str, str, Reader], ...] = (
    (r"power", "power", _not("no time: the power of a whole system, which is judged with energy, apart")),
    (r"energy per inference", "energy", _energy),
    (r"energy", "energy", _not("energy of a whole board: what it did is not stated")),
    (r"^(flash|peak SRAM|DRAM acc|global buffer|active PEs|MFU)", "counts", _not("no time: a count or a size")),
    (r"cycles|useful MACs", "counts", _not("no time: a count of hardware events")),
    (r"^speedup$", "speedup", _not("a ratio of two times, neither of them stated")),
)
# The first pattern found in the workload's name decides.
_WORKLOADS: tuple[tuple[str, str, Reader], ...] = (
    (r"GPT-3 layer operator", "", kernels.layer_of_gpt3),
    (r"^GEMM", "gemm", products.gemm_kernel),
    (r"^2D convolution", "convolution", convolutions.convolution),
    (r"^(softmax|layernorm)", "", kernels.reduction),
    (r"^GELU", "gelu", kernels.element_wise),
    (r"^(ReLU|tanh)", "element-wise", kernels.element_wise),
    (r"^attention decode", "decode attention", attention.decode_attention),
    (r"^attention", "attention", attention.attention_kernel),
    (r"^MoE", "experts", experts.experts),
    (r"^rnn_fwd", "recurrent layer", kernels.recurrence),
    (r"^(LSTM|GRU) forward", "recurrent layer", recurrences.stacked),
    (r"STREAM", "copy and stream", transfers.stream),
    (r"beyond cache", "copy and stream", transfers.beyond_cache),
    (r"read bandwidth", "cache bandwidth", _not("bandwidth of a cache: a fact of the twin, not a prediction")),
    (r"pointer-chase", "latency", _not("latency of one load: a fact of the twin, not a prediction")),
    (r"synthetic roofline", "intensity sweep", transfers.intensity_sweep),
    (r"all-reduce", "all-reduce", transfers.collective),
    (r"all-gather|reduce-scatter|all-to-all", "all-gather and its kin", transfers.collective),
    (r"training|fine-tun", "training", training.training),
    (r"LLM prefill|LLM serving prefill", "llm prefill", language.prefill),
    (r"LLM (serving )?decode", "llm decode", language.decode),
    (r"LLM generation", "llm generation", language.generation),
    (r"LLM serving max", "llm serving", language.serving),
    (r"transformer encoder|vision transformer forward", "transformer", encoders.encoder),
    (
        r"MLPerf Tiny|^network inference on MCU|person detection|^image classification$",
        "mcu inference",
        microcontrollers.tiny,
    ),
    (r"^kernel", "mcu inference", microcontrollers.tiny_kernel),
    (r"^fully connected network on MCU", "mcu inference", microcontrollers.tiny_layers),
    (
        r"^diffusion pipeline|^denoising step, |^text-to-image inference, \d+ steps",
        "diffusion",
        diffusion.denoising,
    ),
    (r"diffusion", "diffusion", diffusion.look),
    (r"MLPerf|inference|^CNN conv layers$", "network inference", networks.inference),
)
KINDS = tuple(dict.fromkeys(kind for _, kind, _ in (*_METRICS, *_WORKLOADS) if kind))


def _reader(row: Row) -> tuple[str, Reader]:
    return _reader_of(row.metric, row.workload)


@functools.lru_cache(maxsize=1 << 12)
def _reader_of(metric: str, workload: str) -> tuple[str, Reader]:
    for pattern, kind, reader in _METRICS:
        if re.search(pattern, metric):
            return kind, reader
    for pattern, kind, reader in _WORKLOADS:
        if re.search(pattern, workload):
            return kind, reader
    return "other", _not(f"no model of {workload}")


@functools.lru_cache(maxsize=1 << 14)
def kind_of(row: Row) -> str:
    """Return the kind of workload that a row is counted under."""
    if row.typed:
        return "network inference" if row.network else "copy and stream"
    kind, _ = _reader(row)
    if kind:
        return kind
    words = {"softmax": "softmax", "layernorm": "layer norm", "LayerNorm": "layer norm", "GeLU": "gelu"}
    words |= {"Softmax": "softmax", "AllReduce": "all-reduce"}
    return next((kind for word, kind in words.items() if word in row.workload), "gemm")


def interpret(row: Row) -> Case:
    """Return a row as a case.

    Raises
    ------
    Inexpressible
        If no model can express it; the text is the reason.
    """
    if row.typed:
        return typed_case(row)
    answer = _answer(row)
    if isinstance(answer, str):
        raise Inexpressible(answer)
    return answer


@remembered
def _answer(row: Row) -> Case | str:
    """Return a row as a case, or why it is none: the fit, the scores and the tables ask for the same rows again."""
    if row.quality == "recalled":
        return "recalled, not seen in its source"
    if row.n_devices == 0:
        return "number of devices not stated"
    if "power-capped" in row.workload and "limit of a card" not in row.note:
        return "ran below its design power, by a limit that was not seen"
    try:
        case = crossing(on_fresh_pages(_reader(row)[1](row)))
    except (ArgumentError, Inexpressible) as reason:
        return str(reason)
    return replace(case, network=usual_name(case.row.model), version=version_of(case.row))


# A submitter may name the software with the board, or nowhere: a round of theirs is one.
_NAMED_IN_BOARD = re.compile(r"_(X-CUBE-AI)-(\d[\d.]*)")
_SUBMITTER = re.compile(r"submitter ([^;]+)")


def version_of(row: Row) -> str:
    """Return the software as a row names it: its version, and how it was built and run; else who built it, and when."""
    if row.software:
        return without_zeros(row.software)
    built = _NAMED_IN_BOARD.search(row.workload)
    maker = _SUBMITTER.search(row.note)
    return f"{built[1]} v{built[2]}" if built else f"{maker[1]}, {row.source}" if maker else ""
