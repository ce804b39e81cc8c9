"""Training steps: the forward pass, and about twice its work backward.

Each product of the forward pass has two of the same size behind it, for the gradients of
its inputs and of its weights. With activation checkpointing the forward pass runs twice.
The optimiser and the exchange of gradients are taken as hidden behind the arithmetic of language models.
What PyTorch runs between products, one operator after the other, has kernels and gradients of its own
(:mod:`mlsys.models.estimate.steps`); Megatron's kernels and compilers join it to the products.
TensorFlow's operators run one by one, or with XLA in loops, as they do forward.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.engines import engine_for
from mlsys.calibration.values import seconds_each
from mlsys.hardware import Device, view
from mlsys.models.estimate import MATMUL, VECTOR, Kernel, Snapshot, Work
from mlsys.models.estimate.blocks import in_blocks
from mlsys.models.estimate.eager import eager_kernels, one_by_one, with_gradients
from mlsys.models.estimate.kernel_time import MATRIX_UNITS
from mlsys.models.estimate.lowering import (
    Format,
    concatenated,
    kernels_of,
    messages,
    part_in_convolutions,
    side_by_side,
)
from mlsys.models.estimate.reductions import rows_read_again
from mlsys.models.estimate.steps import BACKWARD, step_kernels
from mlsys.models.estimate.work import NO_WORK
from mlsys.provenance import as_recorded
from mlsys_evidence.questions.attention import trained_in_one_kernel
from mlsys_evidence.questions.kernels import product
from mlsys_evidence.questions.language import USABLE_MEMORY, language_model_of
from mlsys_evidence.questions.layouts import copies
from mlsys_evidence.questions.network_lookup import batched, built
from mlsys_evidence.questions.networks import (
    attention_of,
    between_products,
    multiplies_by_vectors,
    saving,
    shape_of,
)
from mlsys_evidence.questions.pipelines import Stages
from mlsys_evidence.questions.tf32 import multiplied_in
from mlsys_evidence.questions.training_inputs import OF_LOGITS, batch_of_each, training_sample
from mlsys_evidence.typed_rows import TypedRow

if TYPE_CHECKING:
    from mlsys.workloads.zoo.language import LanguageModel

USUAL_LENGTH = 2048


def training(row: TypedRow) -> Case:
    """Return the case of one training step of one machine among as many as the row has."""
    result, fmt, twin, share = training_sample(row), row.format, row.machine, row.share
    language = row.operation == "language training"
    if not language:
        network = partial(built, row.network, batch=1, **({} if result else shape_of(row)))
        fmt = multiplied_in(row, fmt, twin, lambda: part_in_convolutions(network()))
    engine = engine_for(twin, fmt.computes, vector_unit=fmt.vector_unit)
    if share < 1:
        engine = engine.share(share, share)
    forward = 1.0 + row.has("activations again")
    passes = forward + (BACKWARD if not row.has("weights frozen") else 1)
    if language:
        return _language(row, fmt, twin, engine, forward, passes)
    setting = f"{_program(row, engine)} training on {twin.kind}"
    pipeline = Stages.of(row)
    batch = max(1, batch_of_each(row, row.samples(64)) // pipeline.pieces)
    samples = row.samples(64) if pipeline.stages else batch * max(1, row.row.n_devices)
    seconds, inverse = seconds_each(
        row.row, samples * (result.counted if result else row.get("sequences_of_a_sample", 1.0))
    )
    if result:
        return Case(row.row, "training", setting, twin.id, engine, result.step(fmt, batch), seconds, inverse)
    if setting == "eager training on GPU":
        casts = row.has("autocast")
        how = f"trained, scores {attention_of(row)}{', casts' if casts else ''}"
        single = batched(row.network, fmt, batch, saving(row, engine), shape_of(row), how)
        turned = copies(row, setting, shape_of(row), fmt, engine, batch).times(passes)
        work = _through(pipeline, concatenated(single, turned), _again(row, fmt, batch, engine, pipeline))
        setting = setting.replace("eager", "torchgpipe") if row.has("torchgpipe") else setting
        return Case(row.row, "training", setting, twin.id, engine, work, seconds, inverse)
    if one_by_one(setting):
        work = _stepped(_encoder(row, batch, fmt), fmt, twin, forward)
        return Case(row.row, "training", setting, twin.id, engine, work, seconds, inverse)
    # cuDNN has Winograd's algorithms for both gradients as well.
    winograd = saving(row, engine) if twin.kind == "GPU" else 1.0
    how = between_products(row, setting.replace("training", "network")) if setting.startswith("TensorFlow") else ""
    work = batched(row.network, fmt, batch, winograd, shape_of(row), how).times(passes)
    return Case(row.row, "training", setting, twin.id, engine, work, seconds, inverse)


def _again(row: TypedRow, fmt: Format, batch: int, engine: Snapshot, pipeline: Stages) -> Work:
    """Return what a pipeline computes a second time, for the gradients."""
    if not pipeline.again:
        return NO_WORK
    how = f"one by one, scores {attention_of(row)}"
    single = batched(row.network, fmt, batch, saving(row, engine), shape_of(row), how)
    return single.times(pipeline.again)


def _through(pipeline: Stages, *works: Work) -> Work:
    """Return the kernels that one machine runs after the other until a mini-batch has gone through a pipeline."""
    return concatenated(*works).times(pipeline.turns)


# Words that huggingface/transformers' BertForPreTraining weighs for every token, masked or not.
BERT_WORDS = 30522


def _program(row: TypedRow, engine: Snapshot) -> str:
    """Return the kind of program that trains.

    Megatron's layers are PyTorch's own, started one by one from Python, but what lies between their products is joined.
    What a machine's matrix units attain there tells nothing of its vector units.
    """
    if row.software == "Megatron":
        return "Megatron vector units" if engine.over_vector <= MATRIX_UNITS else "Megatron"
    return "eager small units" if multiplies_by_vectors(row, engine) else row.software


def _encoder(row: TypedRow, batch: int, fmt: Format) -> Work:
    """Return the pass forward of an encoder whose operators run one by one, with its guess of every token's word."""
    work = batched(row.network, fmt, batch, shape=shape_of(row), run_as="one by one, scores written out")
    if not row.has("head of pre-training"):
        return work
    width = float(work["k"][work["weights"] > 0][1:].min())
    tokens = batch * row.number("tokens")
    guess = [product(tokens, words, width, fmt, weights=True) for words in (width, BERT_WORDS)]
    return concatenated(work, Work.of(guess))


def _stepped(work: Work, fmt: Format, twin: Device, forward: float) -> Work:
    """Return a step of operators that run one by one: forward, the loss of the widest product's results, gradients."""
    sizes = work["m"] * work["n"] * (work["weights"] > 0) * (work["kind"] == MATMUL)
    loss = Kernel(VECTOR, flops=0.0, moved=OF_LOGITS * float(sizes.max()) * fmt.value)
    both = rows_read_again(with_gradients(work, fmt.value, forward), twin, fmt.value, work)
    return concatenated(in_blocks(both, twin, fmt.computes), Work.of([loss]))


@dataclass(frozen=True)
class _Ways:
    """How a step is shared out: over tensors, stages of a pipeline, and copies; and micro-batches of each copy."""

    tensor: int = 1
    stages: int = 1
    copies: int = 1
    pieces: int = 1
    stated: bool = False


def _ways(row: TypedRow) -> _Ways:
    names = ("tensor_parallel", "pipeline_parallel", "data_parallel", "accumulated")
    tensor, stages, copies, pieces = (int(row.get(name, 1)) for name in names)
    return _Ways(tensor, stages, copies, pieces, bool(row.numbers.keys() & set(names)))


# Bytes that mixed precision and Adam keep for a parameter (Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1), and
# that a block keeps of each number of its activations for the gradients, scores apart (Korthikanti et al. 2022,
# arXiv:2205.05198, equation 1); and a logit's, in half precision and in single.
OF_A_PARAMETER, OF_AN_ACTIVATION, OF_A_LOGIT = 16.0, 34.0, 6.0
# Sequences that nobody takes more of at once.
MOST_AT_ONCE = 256


def _at_once(row: TypedRow, model: LanguageModel, length: int, twin: Device) -> int:
    """Return the sequences of a micro-batch: as a row states, or what a GPU's memory holds of those of all machines."""
    if "micro_batch" in row.numbers:
        return max(1, row.number("micro_batch"))
    whole, memory = int(row.get("global_batch")), view(twin).main.capacity
    if memory is None or not (whole or twin.kind == "GPU"):
        return 1
    share = max(1, whole // max(1, row.row.n_devices)) if whole else MOST_AT_ONCE
    with as_recorded():
        left = USABLE_MEMORY * memory - OF_A_PARAMETER * float(model.parameters().m_as("param"))
    each = length * (OF_AN_ACTIVATION * model.hidden * model.layers + OF_A_LOGIT * model.vocabulary)
    while share > 1 and share * each > left:
        share //= 2
    return share


def _counted(row: TypedRow, work: Work) -> float:
    """Return the FLOP that a rate counts: what the model needs, not what is computed twice.

    Megatron's formula has every pair of tokens, those above the diagonal too (Narayanan et al. 2021, arXiv:2104.04473,
    equation 3).
    """
    if not (row.has("Megatron") or row.has("NeMo")):
        return work.flops
    scores = (work["kind"] == MATMUL) & (work["batch"] > 1) & (work["weights"] == 0)
    return work.flops + float((work["flops"] * work["count"])[scores].sum())


def _language(row: TypedRow, fmt: Format, twin: Device, engine: Snapshot, forward: float, passes: float) -> Case:
    """Return the case of one step over a language model, with its bubbles and its messages where they are stated.

    With S stages and A micro-batches a pipeline takes A + S − 1 turns of one stage each.
    """
    if "tokens" not in row.numbers and row.row.unit != "TFLOP/s":
        raise Inexpressible("length of the sequences not stated")
    # A rate of arithmetic hardly depends on the length, so long as products dominate.
    length = int(row.get("tokens", USUAL_LENGTH))
    setting = f"{_program(row, engine)} training on {twin.kind}"
    if row.has("encoder and decoder"):
        raise Inexpressible(
            "training with experts that Python calls one by one: the work besides matrix products is unknown"
        )
    model = language_model_of(row)
    batch = _at_once(row, model, length, twin)

    fused = fmt.value <= 2 and twin.kind == "GPU" and not row.has("scores of training written out")

    def step(batch: int) -> Work:
        if not one_by_one(setting):
            return kernels_of(model.prefill(batch, length, "fp16", causal=True), fmt, passes)
        # One kernel leaves out what a causal mask hides; written out, all scores are computed.
        network = model.prefill(batch, length, "fp16", causal=fused, fused=False)
        if setting == "eager training on GPU":
            return step_kernels(network, fmt, (forward, passes - forward), row.has("autocast"), not fused)
        return _stepped(eager_kernels(network, fmt), fmt, twin, forward)

    work = step(batch)
    attended, fastest = trained_in_one_kernel(row, work, fmt, twin, (forward, passes)) if fused else (work, 1.0)
    if row.row.unit == "TFLOP/s":
        seconds = _counted(row, work) / passes * (1 + BACKWARD) / (row.row.value * 1e12)
        return Case(row.row, "training", setting, twin.id, engine, attended, seconds, True, fastest=fastest)
    ways = _ways(row)
    seconds, inverse = seconds_each(row.row, batch * length)
    if not row.row.unit.endswith(("/GPU", "/chip")):
        seconds *= max(1, row.row.n_devices)
    if not ways.stated:
        return Case(row.row, "training", setting, twin.id, engine, attended, seconds, inverse, fastest=fastest)
    split = ways.tensor * ways.stages
    if row.has("micro-batch of all devices"):
        batch = row.number("global_batch") // ways.copies if "global_batch" in row.numbers else batch
        work = step(batch)
        attended, fastest = trained_in_one_kernel(row, work, fmt, twin, (forward, passes)) if fused else (work, 1.0)
    # The rate is of one machine: a copy of the model, on ``split`` machines, does this many tokens a step.
    seconds = ways.pieces * batch * length / (row.row.value * split) if inverse else seconds
    turns = (ways.pieces + ways.stages - 1) / ways.stages
    works = [attended.times(turns)]
    exchanged = batch * length * model.hidden * fmt.value
    works.append(messages(exchanged, ways.tensor, (4 + 2 * (forward > 1)) * model.layers * turns))
    parameters = float(model.parameters().m_as("param")) / split
    works.append(messages(parameters * fmt.value, ways.copies, 1))
    if row.has("Megatron-DeepSpeed"):
        # Adam reads and writes weights, two moments and a gradient in FP32, and writes the narrow weights.
        works.append(Work.of([Kernel(VECTOR, flops=12 * parameters, moved=30 * parameters)]))
    engine = side_by_side(engine, ways.tensor)
    # Megatron's layers are PyTorch's own, started one by one from Python: what a launch costs is what it costs there.
    return Case(row.row, "training", setting, twin.id, engine, concatenated(*works), seconds, inverse, fastest=fastest)
