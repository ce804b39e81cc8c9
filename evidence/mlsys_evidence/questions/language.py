"""Language models: prompts, tokens one by one, whole generations, and servers full of them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.engines import engine_for, on_threads
from mlsys.calibration.values import seconds_each
from mlsys.hardware import view
from mlsys.models.estimate import ALL_REDUCE, COLLECTIVE, MATMUL, RING_REDUCE, Snapshot, Work
from mlsys.models.estimate.blocks import in_blocks
from mlsys.models.estimate.eager import eager_kernels
from mlsys.models.estimate.lowering import Format, concatenated, expert_by_expert, kernels_of, messages, side_by_side
from mlsys.models.estimate.reductions import rows_read_again
from mlsys_evidence.questions.decoding import (
    cut_graphs,
    host_and_copies,
    in_steps_of_a_server,
    linked,
    multiplies_integers,
    multiplying,
    partial_sums,
    prompt_program,
    read_by_warps,
    token_program,
)
from mlsys_evidence.questions.eager_launch_overhead import (
    called,
    copied_cache,
    dequantised,
    dequantises,
    graph_captured,
    small_steps,
)
from mlsys_evidence.questions.encoders import down_a_pipeline
from mlsys_evidence.questions.llamacpp import BLOCK, in_blocks_of_tokens, overlapped, whole_block
from mlsys_evidence.questions.networks import attention_of
from mlsys_evidence.questions.neuron import (
    beside_products,
    compiled_for_neuron,
    in_one_kernel,
    on_cores,
    positions_of,
    since_july_2024,
    widened_weights,
)
from mlsys_evidence.questions.shapes import language_shape
from mlsys_evidence.questions.threads import threads_of
from mlsys_evidence.typed_rows import TypedRow

if TYPE_CHECKING:
    from mlsys.workloads import Network
    from mlsys.workloads.zoo.language import LanguageModel

# A server keeps this part of its memory for weights and cache, and this many sequences at most.
USABLE_MEMORY = 0.9
MOST_SEQUENCES = 2048


def language_model_of(row: TypedRow) -> LanguageModel:
    """Return the model that a row names, of the catalogue or by its shape."""
    from mlsys.workloads import zoo

    name = row.network
    entry = zoo.resolve(name)
    if entry is None:
        shape = language_shape(name)
        if shape is None:
            raise Inexpressible(f"no language model {row.network} in the catalogue")
        return shape
    try:
        model = zoo.language_model(entry.name)
    except ValueError as error:
        raise Inexpressible(f"{row.network} is no language model of the catalogue") from error
    if "hidden" in row.numbers:  # of another width than the published model of that name
        heads = row.number("heads")
        model = replace(model, hidden=row.number("hidden"), heads=heads, kv_heads=heads, ffn=row.number("ffn"))
    every = model.experts > 0 and row.has("every expert")
    return replace(model, active_experts=model.experts) if every else model


def both_halves(name: str, batch: int, tokens: int, *, fused: bool = True) -> Network:
    """Return a model that encodes a prompt and decodes as long a one, of the catalogue."""
    from mlsys.workloads import zoo

    return zoo.network(name, batch=batch, sequence=tokens, precision="fp16", fused=fused)


def _engine(row: TypedRow, fmt: Format) -> tuple[str, str, Snapshot]:
    twin, share = row.machine, row.share
    engine = engine_for(twin, fmt.computes, vector_unit=fmt.vector_unit)
    if share < 1:
        engine = engine.share(share, share)
    threads = threads_of(row)
    if threads:  # the memory holds them all up, none waits for another
        engine = on_threads(engine, twin, threads, samples=threads)
    if row.operation == "decode":
        engine = read_by_warps(row, twin, fmt, engine)
    engine = multiplying(row, twin, fmt, linked(row, twin, engine))
    return twin.id, "CPU" if row.processor == "cpu" else twin.kind, engine


def _ways(row: TypedRow) -> tuple[int, int]:
    """Return over how many devices each layer is split, and into how many stages the layers are.

    Devices that hold layers and work one after the other share the memory, not the time.
    """
    return int(row.get("tensor_parallel", 1)), int(row.get("pipeline_parallel", 1))


@lru_cache(maxsize=4096)
def _step(model: LanguageModel, fmt: Format, tokens: int, batch: int, context: int, causal: bool = True) -> Work:
    """Return the kernels of one pass, kept."""
    if tokens > 1:
        network = model.prefill(batch, tokens, "fp16", causal=causal, last_logits=True)
    else:
        network = model.decode(batch, context, "fp16")
    return expert_by_expert(kernels_of(network, fmt), fmt.weight)


def _pass(
    model: LanguageModel, fmt: Format, tokens: int, batch: int, context: int, tensor: int, runs: float,
    pattern: int = ALL_REDUCE, causal: bool = True,
) -> Work:  # fmt: skip
    """Return one pass over ``tokens`` new tokens of each sequence, run so many times."""
    step = _step(model, fmt, tokens, batch, context, causal).times(runs)
    size = batch * tokens * model.hidden * fmt.value
    return concatenated(step, messages(size, tensor, 2 * model.layers * runs, pattern))


def _case(row: TypedRow, kind: str, works: list[Work], seconds: float, inverse: bool, fmt: Format, tensor: int) -> Case:
    twin, group, engine = _engine(row, fmt)
    engine = side_by_side(engine, tensor)
    name = prompt_program(row, engine, fmt) if kind == "llm prefill" else token_program(row, engine)
    return Case(row.row, kind, f"{name} {kind} on {group}", twin, engine, concatenated(*works), seconds, inverse)


def _on_neuron(row: TypedRow, kind: str, fmt: Format, batch: int, tokens: int, context: int) -> Case:
    """Return the case of one pass that was compiled for NeuronCores, over so many new tokens of each sequence."""
    model, (tensor, _) = language_model_of(row), _ways(row)
    cores = round(tensor * _engine(row, fmt)[2].units)
    graph = on_cores(model, cores, since_july_2024(row))
    positions = positions_of(row, context)
    queries = positions if tokens > 1 else 1
    one_kernel = in_one_kernel(row, batch, queries)
    products = _pass(graph, fmt, queries, batch, positions, tensor, 1, causal=one_kernel)
    work = widened_weights(products, fmt, model.vocabulary)
    work = concatenated(work, beside_products(graph, batch, queries, positions, cores, fmt, one_kernel))
    seconds, inverse = seconds_each(row.row, batch * tokens)
    case = _case(row, kind, [work], seconds, inverse, fmt, tensor)
    needed = _pass(model, fmt, tokens, batch, context, tensor, 1)
    return replace(case, compulsory=min(1.0, _moved(needed) / _moved(work)))


def _moved(work: Work) -> float:
    return float((work["moved"] * work["count"])[work["kind"] != COLLECTIVE].sum())


def prefill(row: TypedRow) -> Case:
    """Return the case of one pass over a prompt."""
    fmt, prompt, batch = row.format, row.number("tokens"), row.samples(1)
    if compiled_for_neuron(row):
        return _on_neuron(row, "llm prefill", fmt, batch, prompt, prompt)
    seconds, inverse = seconds_each(row.row, prompt * batch)
    if row.has("encoder and decoder"):
        work = eager_kernels(both_halves(row.network, batch, prompt, fused=False), fmt)
        return _case(row, "llm prefill", [work], seconds, inverse, fmt, 1)
    model, (tensor, stages) = language_model_of(row), _ways(row)
    if in_blocks_of_tokens(row):
        return _in_blocks(row, model, fmt, prompt, batch, stages)
    work = _pass(model, fmt, prompt, batch, prompt, tensor, 1)
    if row.software.startswith("eager"):
        last = not row.has("logits of all positions")
        written = row.has("AutoAWQ") or attention_of(row) == "written out"
        # One kernel leaves out what a causal mask hides; written out, all scores are computed.
        network = model.prefill(batch, prompt, "fp16", causal=not written, last_logits=last, fused=False)
        work = eager_kernels(network, fmt, written)
        if written and fmt.vector_unit:
            machine = row.machine
            work = in_blocks(rows_read_again(work, machine, fmt.value), machine, fmt.computes)
        work = concatenated(work, partial_sums(row, work), small_steps(row, model, batch * prompt, fmt))
    narrow = work.weights
    if dequantises(row, fmt, batch * prompt):
        work = dequantised(row, work, fmt)
    work, calling = called(row, model, work, written_out=attention_of(row) == "written out")
    case = _case(row, "llm prefill", [work], seconds, inverse, fmt, tensor)
    return replace(case, at_least=calling, compulsory=narrow / work.weights)


def _in_blocks(row: TypedRow, model: LanguageModel, fmt: Format, prompt: int, batch: int, stages: int) -> Case:
    """Return the case of a prompt that goes through llama.cpp block by block."""
    work = _pass(model, fmt, min(prompt, BLOCK), batch, prompt, 1, 1)
    narrow = work.weights
    if not multiplies_integers(row, fmt) and fmt.weight < fmt.value:
        work = dequantised(row, work, fmt)
    blocks = max(1.0, prompt / BLOCK)
    work = whole_block(row, model, work, fmt, batch, prompt).times(blocks * overlapped(blocks, stages))
    case = _case(row, "llm prefill", [work], *seconds_each(row.row, prompt * batch), fmt, 1)
    return replace(case, compulsory=narrow / work.weights)


def decode(row: TypedRow) -> Case:
    """Return the case of one step, at the middle of the stretch of tokens that was timed."""
    fmt, model = row.format, language_model_of(row)
    tensor, _ = _ways(row)
    context, batch = row.number("context"), row.samples(1)
    if compiled_for_neuron(row):
        return _on_neuron(row, "llm decode", fmt, batch, 1, context)
    seconds, inverse = seconds_each(row.row, batch)
    step = _pass(model, fmt, 1, batch, context, 1 if row.has("split by rows") else tensor, 1)
    _agrees_with_itself(row, step, seconds)
    # Query, key, value, output, (gate,) up and down; and the logits.
    products = model.layers * (6 + model.gated) + 1
    beside = host_and_copies(row, products, batch * model.hidden, batch * model.vocabulary, fmt.value)
    narrow = step.weights
    if dequantises(row, fmt, batch):
        step = dequantised(row, step, fmt)
    step = graph_captured(
        row,
        concatenated(
            step, partial_sums(row, step), copied_cache(row, model, batch, context, fmt, _engine(row, fmt)[2])
        ),
    )
    step, calling = called(row, model, step, written_out=attention_of(row) == "written out")
    case = _case(row, "llm decode", [step, *beside], seconds, inverse, fmt, tensor)
    waits = calling + cut_graphs(row, model.layers) + in_steps_of_a_server(row, step, case.engine)
    return replace(case, at_least=waits, compulsory=narrow / step.weights)


def _agrees_with_itself(row: TypedRow, step: Work, seconds: float) -> None:
    """Refuse a row whose own rate of bytes and rate of tokens belong to another model than the one it names."""
    reported = row.get("reported_bandwidth")
    if not reported:
        return
    moved = reported * 1e9 * max(1, row.row.n_devices) * seconds
    if not 0.5 < moved / _moved(step) < 2:
        raise Inexpressible("mislabelled model: bytes a second over tokens a second are not its size")


def generation(row: TypedRow) -> Case:
    """Return the case of a prompt and all tokens after it."""
    fmt, model = row.format, language_model_of(row)
    tensor, stages = _ways(row)
    prompt, output = row.number("tokens"), row.number("output")
    batch = row.samples()

    def whole_passes(tokens: int, context: int, count: int) -> Work:
        piece, turns = down_a_pipeline(batch, tokens, 1 if row.has("layer by layer") else stages)
        # FasterTransformer and Megatron call NCCL, whose ring goes through all nodes; others have a shot of their own.
        pattern = RING_REDUCE if row.has("FasterTransformer") or row.has("Megatron") else ALL_REDUCE
        return _pass(model, fmt, tokens, piece, context, tensor, turns * count, pattern)

    works = [whole_passes(prompt, prompt, 1), small_steps(row, model, batch * prompt, fmt)]
    middle = prompt + output // 2
    if output > 1:
        copies = copied_cache(row, model, batch, middle, fmt, _engine(row, fmt)[2]).times(output - 1)
        works += [graph_captured(row, whole_passes(1, middle, output - 1)), copies]
    seconds, inverse = seconds_each(row.row)
    work, calling = called(row, model, concatenated(*works), output, attention_of(row) == "written out")
    case = _case(row, "llm generation", [work], seconds, inverse, fmt, tensor)
    token = _pass(model, fmt, 1, batch, middle, tensor, 1)
    return replace(case, at_least=calling + in_steps_of_a_server(row, token, case.engine, output))


def heads_together(step: Work, model: LanguageModel) -> Work:
    """Return the kernels of a token with all heads of queries that share keys as rows of one product.

    A key is read once for all of them (TensorRT-LLM's XQA, FlashInfer's groups): in a small batch, where weights are
    most of what is read, this is hidden; a full server's caches are as large as its weights, or larger.

    Parameters
    ----------
    step
        With a product of one row for each head.
    model
        Whose heads they are.
    """
    shared = model.heads // max(1, model.kv_heads)
    columns = step.columns.copy()
    here = (step["kind"] == MATMUL) & (step["weights"] == 0) & (step["m"] == 1)
    columns[Work.FIELDS.index("m"), here] *= shared
    columns[Work.FIELDS.index("batch"), here] /= shared
    return Work(columns)


def serving(row: TypedRow) -> Case:
    """Return the case of a server whose queue never empties: as many sequences as its memory holds."""
    fmt, model = row.format, language_model_of(row)
    tensor, _ = _ways(row)
    prompt, output = row.number("tokens"), row.number("output")
    twin = row.machine
    memory = view(twin).main.capacity
    if memory is None:
        raise Inexpressible(f"no capacity of the memory of {twin.name} on record")
    capacity = memory * tensor * USABLE_MEMORY
    weights = float(model.parameters().m_as("param")) * fmt.weight
    each = float(model.kv_cache_per_token("fp8").m_as("byte")) * (prompt + output)
    batch = int(min(MOST_SEQUENCES, (capacity - weights) / each))
    if batch < 1:
        raise Inexpressible("weights and one sequence do not fit the memory")
    prefill_pass = _pass(model, fmt, prompt, 1, prompt, tensor, batch)
    steps = heads_together(_pass(model, fmt, 1, batch, prompt + output // 2, tensor, output), model)
    seconds, inverse = seconds_each(row.row, batch * output)
    return _case(row, "llm serving", [prefill_pass, steps], seconds, inverse, fmt, tensor)
