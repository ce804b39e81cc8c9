"""Whole networks, forward: classifiers, detectors and language encoders."""

from collections.abc import Callable
from functools import partial

from mlsys.calibration.case import Case
from mlsys.calibration.engines import engine_for, on_threads, summing_in_half
from mlsys.calibration.values import seconds_each
from mlsys.hardware import Hardware
from mlsys.models.estimate import MATMUL, Snapshot, Work
from mlsys.models.estimate.blocks import in_blocks
from mlsys.models.estimate.eager import (
    WITHOUT_CONVOLUTIONS,
    image_by_image,
    loops_between_products,
    one_by_one,
)
from mlsys.models.estimate.kernel_time import MATRIX_UNITS
from mlsys.models.estimate.lowering import (
    WINOGRAD_SAVING,
    Format,
    concatenated,
    kernels_of,
    part_in_convolutions,
)
from mlsys.models.estimate.processors import plain_loops, scalar, widened
from mlsys.models.estimate.reductions import rows_read_again
from mlsys.models.estimate.running import saved_on
from mlsys.models.estimate.weight_residency import resident
from mlsys.workloads import Network
from mlsys_evidence.questions.eager_launch_overhead import queued_up
from mlsys_evidence.questions.layouts import copies
from mlsys_evidence.questions.network_lookup import batched, built, picture_work, unfused
from mlsys_evidence.questions.programs import (
    in_bytes,
    multiplies_only,
    part_for_a_request,
    starts_operators,
    tensorflow_on,
    winograd_on,
)
from mlsys_evidence.questions.rewritten import batch_statistics
from mlsys_evidence.questions.scores import scores_apart
from mlsys_evidence.questions.tf32 import multiplied_in
from mlsys_evidence.questions.threads import (
    at_clock,
    instance,
    instances_of,
    rented_share,
    threads_of,
)
from mlsys_evidence.questions.values import operations_a_second
from mlsys_evidence.typed_rows import TypedRow


def engine_of(row: TypedRow, fmt: Format) -> tuple[str, str, Snapshot]:
    """Return id and kind of the device, and its engine, or the part of it that worked."""
    on_cpu, twin, share = row.processor == "cpu", row.machine, row.share
    by_vectors = fmt.vector_unit or (on_cpu and fmt.computes == "int8" and row.has("AMX idle"))
    engine = engine_for(twin, fmt.computes, vector_unit=by_vectors)
    if row.has("FP16 sums"):
        engine = summing_in_half(engine, twin)
    if twin.kind == "CPU" and share == 1:
        share = rented_share(row, engine.units)
    if "clock" in row.numbers:
        engine = at_clock(engine, row.get("clock"))
    if (row.has("TensorFlow Lite") or row.has("ncnn")) and fmt.computes == "int8" and on_cpu:
        engine = widened(engine, twin)
    elif row.has("no vector instructions"):
        engine = scalar(engine)
    if fmt.computes == "int8" and on_cpu:
        engine = in_bytes(row, twin, engine)
    if share == 1:
        share = part_for_a_request(row, twin, engine)
    if share < 1:
        engine = engine.share(share, share)
    kind = "CPU" if on_cpu else twin.kind
    threads = threads_of(row, engine.units) if kind == "CPU" else 0
    instances, cores = instances_of(row)
    if instances > 1:
        engine = instance(engine, instances, cores, row.samples() / instances)
    elif threads:
        engine = on_threads(engine, twin, threads, row.samples())
    return twin.id, kind, engine


def engine_as_run(row: TypedRow, fmt: Format, network: Callable[[], Network]) -> tuple[Format, str, str, Snapshot]:
    """Return the format that the products of a network run in, and what :func:`engine_of` returns for it."""
    twin, kind, engine = engine_of(row, fmt)
    ran = multiplied_in(row, fmt, Hardware[twin], lambda: part_in_convolutions(network()))
    return (ran, *engine_of(row, ran)) if ran.computes != fmt.computes else (ran, twin, kind, engine)


def shape_of(row: TypedRow) -> dict[str, int]:
    """Return the side of the image, or both, and the length of the text, where the row has them."""
    names = {"image": "image", "width": "image_width", "sequence": "tokens"}
    return {name: row.number(number) for name, number in names.items() if number in row.numbers}


def saving(row: TypedRow, engine: Snapshot) -> float:
    """Return how many times less 3 × 3 convolutions of stride 1 take on a GPU for its library's algorithms.

    Of floating point on vector units only: matrix units leave Winograd's transforms nothing to save.
    """
    return saved_on(engine) if row.algorithm not in ("direct", "unrolled") else 1.0


def inference(row: TypedRow) -> Case:
    """Return the case of one forward pass of a network of the catalogue."""
    shape = shape_of(row)
    fmt, twin, kind, engine = engine_as_run(row, row.format, lambda: built(row.network, batch=1, **shape))
    batch, (instances, _) = row.samples(), instances_of(row)
    software = row.software
    if software == "TensorFlow" and kind == "CPU":
        software = tensorflow_on(Hardware[twin])
    winograd = saving(row, engine) if kind == "GPU" else 1.0
    if kind == "CPU":
        winograd = winograd_on(row, Hardware[twin], engine, fmt.computes)
    elif row.has("ncnn"):
        winograd = WINOGRAD_SAVING
    if kind == "GPU" and multiplies_by_vectors(row, engine, fmt.convolutions):
        software = "eager small units"
    setting = f"{software}{_format_apart(software, kind, row, fmt)} network on {kind}"
    how = between_products(row, setting)
    if multiplies_only(row, setting):
        setting, how = WITHOUT_CONVOLUTIONS, f"one by one, scores {attention_of(row)}"
    if row.has("pipeline of SDXL"):
        work = picture_work(fmt, batch)
    else:
        work = batched(row.network, fmt, max(1, batch // instances), winograd, shape, how)
    if "written out" in how and fmt.vector_unit:
        work = in_blocks(rows_read_again(work, Hardware[twin], fmt.value), Hardware[twin], fmt.computes)
    if row.algorithm == "unrolled":
        work = image_by_image(work, batch, fmt.value)
    elif not row.has("pipeline of SDXL"):
        beside = batch_statistics(row, partial(unfused, row.network, shape), fmt, batch)
        work = concatenated(work, copies(row, setting, shape, fmt, engine, batch), beside)
    if row.has("scores apart") and not how and kind == "GPU":
        work = concatenated(work, scores_apart(built(row.network, **shape), row, fmt, batch))
    if row.launch_mode == "graph":
        work = queued_up(work)
    machines = max(1, row.row.n_devices)
    rate = operations_a_second(row.row)
    if rate:
        products = work["kind"] == MATMUL
        seconds, inverse = machines * float((work["flops"] * work["count"])[products].sum()) / rate, True
    elif "/" not in row.row.unit:
        seconds, inverse = seconds_each(row.row)
    else:
        share = row.get("part_of_the_gpu", 1.0)
        seconds, inverse = seconds_each(row.row, batch * machines / row.get("windows", 1) / share)
    work = resident(work, Hardware[twin])
    loops = plain_loops(engine, Hardware[twin], "ncnn" if row.has("ncnn") else "", fmt.computes, work)
    aside = max(_left_to_processor(row, work), loops)
    kind = "transformer" if row.has("encoder") else "network inference"
    return Case(row.row, kind, setting, twin, engine, work, seconds, inverse, at_least=aside)


def recommender(row: TypedRow) -> Case:
    """Return the case of a recommender that ranks the user-item pairs of many samples at a time."""
    fmt, at_a_time = row.format, row.samples()
    twin, kind, engine = engine_of(row, fmt)
    # Every pair looks up rows of its own: the work of many is not that of one with more rows.
    work = kernels_of(built(row.network, batch=at_a_time), fmt)
    seconds, inverse = seconds_each(row.row, at_a_time / row.number("pairs") * max(1, row.row.n_devices))
    setting = f"{row.software} network on {kind}"
    return Case(row.row, "network inference", setting, twin, engine, work, seconds, inverse)


# What ONNX Runtime's own kernels take for each number of a layer that Qualcomm's compiler leaves to the processor:
# unpacked, computed and packed again by a plain loop, some 20 cycles. Middle of 17 rows of five chips, 4 to 9 ns, which
# their source counts as fallen back (w8a8, w8a16 of ViT and ConvNeXt: the parts of GELU) and no fit sees.
PLAIN_LOOP = 6.5e-9


def _left_to_processor(row: TypedRow, work: Work) -> float:
    """Return the seconds of the layers that a row says ran on the processor, in a graph cut up among machines.

    Which layers they are is not stated; each is taken to have as many numbers as a product's result has on average.
    """
    layers = row.get("layers_on_cpu")
    if not layers:
        return 0.0
    products = work["count"] * (work["kind"] == MATMUL)
    numbers = (products * work["m"] * work["n"] * work["batch"]).sum() / products.sum()
    return float(PLAIN_LOOP * numbers * layers)


def attention_of(row: TypedRow) -> str:
    """Return how eager PyTorch attends: from version 2 on by one kernel, where the source does not say otherwise."""
    return "fused" if row.has("attention fused") else "written out"


def multiplies_by_vectors(row: TypedRow, engine: Snapshot, convolutions: float = 1.0) -> bool:
    """Return whether PyTorch runs a transformer operator by operator on units that multiply no faster than they add.

    Its products are then cuBLAS's in FP32, those of attention too where that is written out, forward and backward.
    Where ``convolutions`` are so many times as fast, on matrix units, they are the smaller part of what is multiplied.
    """
    alone = row.software == "eager" and engine.over_vector <= MATRIX_UNITS
    named = attention_of(row) == "written out" and row.has("transformer")
    return alone and (convolutions > 1 or named)


def between_products(row: TypedRow, setting: str) -> str:
    """Return how a framework runs what lies between products, or nothing where a compiler joins it to them."""
    between = "loops" if loops_between_products(setting) else "one by one" if one_by_one(setting) else ""
    return between and f"{between}, scores {attention_of(row)}"


def _format_apart(software: str, kind: str, row: TypedRow, fmt: Format) -> str:
    """Return what sets kernels of one runtime apart: integers, halves, one thread, one stream.

    A runtime of processors or neural processors writes other kernels for each format; on a GPU, a board's
    too, one compiler makes them all, save where 32 bits mean other units.
    """
    words = ""
    alone = software in ("ncnn", "mobile runtime") and threads_of(row) == 1
    # Bytes of TensorFlow Lite were measured on two boards, once each: too few to tell them from FP32 on the others.
    if kind not in ("GPU", "SoC") and (software != "mobile runtime" or alone) and not starts_operators(row, software):
        words = {"int8": " int8", "int16": " int16"}.get(fmt.computes, "")
    elif software == "Paddle TensorRT" and fmt.value > 2:
        words = " fp32"
    if alone:
        words += " 1 thread"
    if software == "TensorFlow XLA" and row.release.startswith("1."):
        words += " 1"  # not the compiler of version 2, which is up to twice as fast on the same machine
    if software == "RKNN" and row.has("first generation"):
        words += " first"
    if software == "AI Hub" and words == " int8" and row.has("ONNX graph"):
        # ONNX Runtime hands the compiler a graph of quantise and dequantise nodes, which it fuses less well.
        words += " onnx"
    if software == "Cloud AI" and row.has("stream"):
        # Up to 1.5.6 a stream had one core of the card, five times slower than what came after.
        words += " 1.5.6 stream" if row.has("Cloud AI 1.5.6") else " stream"
    return words
