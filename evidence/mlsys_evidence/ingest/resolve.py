"""From the words of a row to a typed row: the one place where words are read."""

import functools
import re
from collections.abc import Callable
from dataclasses import replace

from mlsys.calibration.case import Inexpressible, without_zeros
from mlsys.calibration.rows import Row
from mlsys.errors import ArgumentError
from mlsys_evidence.ingest import language, microcontrollers, networks, operators, training, transfers
from mlsys_evidence.ingest.draft import Draft
from mlsys_evidence.questions.shapes import usual_name
from mlsys_evidence.typed_rows import TypedRow

Reader = Callable[[Draft], None]


def _not(reason: str) -> Reader:
    def refuse(draft: Draft) -> None:
        raise Inexpressible(reason)

    return refuse


_NO_TIME = "no time: the power of a whole system, which is judged with energy, apart"


def _power(draft: Draft) -> None:
    """Fill in the run that a power belongs to, by the rate that its source states; the power itself is no time."""
    row = draft.row
    draft.mark("wall power", "system wall power", row.metric)
    draft.take("power_limit", r"limit of a card ([\d.]+) W", row.note)
    rate = re.search(r"same run achieved ([\d.]+) (samples|tokens)/s", row.note)
    draft.set(refused=_NO_TIME)
    draft.on()
    draft.set(board=draft.columns["device"])
    if rate is None:
        return
    workload, unit = re.sub(r" \(power run.*", "", row.workload), f"{rate[2]}/s"
    metric = "throughput" if "wall power" in draft.features else "decode throughput"
    draft.row = replace(row, workload=workload, metric=metric, unit=unit, value=float(rate[1]))
    _reader_of(metric, workload)[1](draft)
    draft.numbers["run_rate"] = float(rate[1])
    if rate[2] == "tokens":
        draft.features.add("tokens counted")


# What a metric that is no time says, whatever the workload.
_METRICS: tuple[tuple[str, str, Reader], ...] = (
    (r"power", "power", _power),
    (r"energy per inference", "energy", microcontrollers.energy),
    (r"energy", "energy", _not("energy of a whole board: what it did is not stated")),
    (r"^(flash|peak SRAM|DRAM acc|global buffer|active PEs|MFU)", "counts", _not("no time: a count or a size")),
    (r"cycles|useful MACs", "counts", _not("no time: a count of hardware events")),
    (r"^speedup$", "speedup", _not("a ratio of two times, neither of them stated")),
)
# The first pattern found in the workload's name decides.
_WORKLOADS: tuple[tuple[str, str, Reader], ...] = (
    (r"GPT-3 layer operator", "", operators.layer_of_gpt3),
    (r"^GEMM", "gemm", operators.product),
    (r"^2D convolution", "convolution", operators.convolution),
    (r"^(softmax|layernorm)", "", operators.reduction),
    (r"^GELU", "gelu", operators.element_wise),
    (r"^(ReLU|tanh)", "element-wise", operators.element_wise),
    (r"^attention decode", "decode attention", operators.decode_attention),
    (r"^attention", "attention", operators.attention),
    (r"^MoE", "experts", operators.experts),
    (r"^rnn_fwd", "recurrent layer", operators.recurrence),
    (r"^(LSTM|GRU) forward", "recurrent layer", operators.recurrences),
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
    (r"transformer encoder|vision transformer forward", "transformer", networks.encoder),
    (
        r"MLPerf Tiny|^network inference on MCU|person detection|^image classification$",
        "mcu inference",
        microcontrollers.network,
    ),
    (r"^kernel", "mcu inference", microcontrollers.kernel),
    (r"^fully connected network on MCU", "mcu inference", microcontrollers.layers),
    (
        r"^diffusion pipeline|^denoising step, |^text-to-image inference, \d+ steps",
        "diffusion",
        networks.denoising,
    ),
    (r"diffusion", "diffusion", networks.denoising_pass),
    (r"MLPerf|inference|^CNN conv layers$", "network inference", networks.inference),
)
KINDS = tuple(dict.fromkeys(kind for _, kind, _ in (*_METRICS, *_WORKLOADS) if kind))
# A submitter may name the software with the board, or nowhere: a round of theirs is one.
_NAMED_IN_BOARD = re.compile(r"_(X-CUBE-AI)-(\d[\d.]*)")
_SUBMITTER = re.compile(r"submitter ([^;]+)")


@functools.lru_cache(maxsize=1 << 12)
def _reader_of(metric: str, workload: str) -> tuple[str, Reader]:
    for pattern, kind, reader in _METRICS:
        if re.search(pattern, metric):
            return kind, reader
    for pattern, kind, reader in _WORKLOADS:
        if re.search(pattern, workload):
            return kind or _kind_in(workload), reader
    return "other", _not(f"no model of {workload}")


def _kind_in(workload: str) -> str:
    words = {"softmax": "softmax", "layernorm": "layer norm", "LayerNorm": "layer norm", "GeLU": "gelu"}
    words |= {"Softmax": "softmax", "AllReduce": "all-reduce"}
    return next((kind for word, kind in words.items() if word in workload), "gemm")


def resolve(row: Row) -> TypedRow:
    """Return the typed row of a row in words; one that no model can express has the reason in ``refused``."""
    kind, reader = _reader_of(row.metric, row.workload)
    refused = _refused(row)
    draft = Draft(row)
    try:
        if not refused:
            reader(draft)
    except (ArgumentError, Inexpressible) as reason:
        refused = draft.columns.get("refused") or str(reason)
    if refused and kind not in ("energy", "power"):
        return TypedRow(row, kind=kind, refused=refused)
    draft.set(kind=kind, version=version_of(row), **({"refused": refused} if refused else {}))
    if "network" not in draft.columns:
        draft.set(label=usual_name(row.model))
    return draft.done()


def _refused(row: Row) -> str:
    if row.quality == "recalled":
        return "recalled, not seen in its source"
    if row.n_devices == 0:
        return "number of devices not stated"
    if "power-capped" in row.workload and "limit of a card" not in row.note:
        return "ran below its design power, by a limit that was not seen"
    return ""


def version_of(row: Row) -> str:
    """Return the software as a row names it: its version, and how it was built and run; else who built it, and when."""
    if row.software:
        return without_zeros(row.software)
    built = _NAMED_IN_BOARD.search(row.workload)
    maker = _SUBMITTER.search(row.note)
    return f"{built[1]} v{built[2]}" if built else f"{maker[1]}, {row.source}" if maker else ""
