"""Whole networks, forward: classifiers, detectors and language encoders."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.engines import engine_for, on_threads, summing_in_half
from mlsys.calibration.rows import Row
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
    joined,
    kernels_of,
    part_in_convolutions,
)
from mlsys.models.estimate.processors import plain_loops, scalar, widened
from mlsys.models.estimate.reductions import rows_read_again
from mlsys.models.estimate.running import saved_on
from mlsys.models.estimate.weight_residency import resident
from mlsys.workloads import Network
from mlsys_evidence.ingest.eager_launch_overhead import queued_up
from mlsys_evidence.ingest.jetsons import as_submitted, part_of_the_gpu
from mlsys_evidence.ingest.layouts import copies
from mlsys_evidence.ingest.network_lookup import batched, built, picture_work, unfused
from mlsys_evidence.ingest.programs import (
    in_bytes,
    leaves_tiles_idle,
    multiplies_only,
    part_for_a_request,
    starts_operators,
    tensorflow_on,
    winograd_on,
)
from mlsys_evidence.ingest.reading import batch_of, number_format, operations_a_second, twin_of
from mlsys_evidence.ingest.rewritten import batch_statistics, own_name
from mlsys_evidence.ingest.scores import scores_apart, writes_scores
from mlsys_evidence.ingest.sliding_window import window_of, windows
from mlsys_evidence.ingest.software import TENSORFLOW_LITE, network_software, saves_multiplications, unrolls
from mlsys_evidence.ingest.tf32 import multiplied_in
from mlsys_evidence.ingest.threads import (
    beside_gpu,
    clocked,
    instance,
    instances_of,
    rented,
    stated_clock,
    threads_of,
)

# Where a source gives throughput and no batch, the machine is taken as well filled by this one.
FILLED = {"image": 64, "BERT": 64, "3D": 1, "SSD-ResNet34": 8, "RetinaNet": 8, "SDXL": 8}
# Utterances that NVIDIA's submissions of RNN-T recognise at once, offline; fewer on an L4 and on Jetsons: their steps
# follow one another, so that many fill a machine (mlcommons/inference_results_v1.0, closed/NVIDIA/configs/rnnt/Offline/
# config.json@cd4f7a9, gpu_batch_size; inference_results_v3.0, the same folder, __init__.py@dad59af).
UTTERANCES, FEWER_UTTERANCES, ON_SMALL = 2048, 512, r"NVIDIA (L4|Jetson)\b"
# Compilers that sum FP16 in FP16: TensorRT in convolutions, whose kernels end their list of formats with that of the
# sums (``implicit_gemm_f16f16_f16f16_f16``), and OneFlow's as OneDiff sets it up (``conv_allow_half_precision
# _accumulation`` and the same of ``matmul``): an RTX 4090 and a 3090 do 1.2 times their peak into FP32.
# TensorRT's products do since 8.5: BERT-base attains 70 TFLOP/s on an RTX 3090, whose peak into FP32 is 71, with all
# that lies between them (ELS-RD/kernl, whose authors suspect it).
SUMS_IN_HALF = r"TensorRT(?!-LLM).*\d+x\d+ image|TensorRT(, container 2| 8\.[5-9]| 9\.| 1\d)|OneDiff"
# A system of MLPerf whose description has its processor's GPU among what ran (closed/Intel/systems of v0.5): 0.8 TOP/s
# on two cores that do 0.3 at their base clock and hardly more than that at their boost.
WITH_GRAPHICS = r"ICL-I3-1005G1_OpenVINO"
# Questions of SQuAD v1.1 are padded to 384 tokens, and submissions to MLPerf drop the padding, which is
# 54 % of all tokens (effective transformer without padding, openreview.net/forum?id=3nzKUh9a4M).
SQUAD_TOKENS = round(0.46 * 384)
ON_PROCESSORS = r"CPU(?!_AND)|XNNPACK|Neon|TVM"
# No picture is narrower: a second number up to this counts channels, as in Rockchip's table, which writes DeepLab's
# input of 513 by 513 as [1, 513, 513, 1] (airockchip/rknn_model_zoo, README.md and examples/deeplabv3).
CHANNELS = 4


def settled(row: Row) -> str:
    """Return the kind of software a row ran on."""
    kind = network_software(row.software)
    if "Vulkan" in row.workload:
        return "vulkan"
    # Runtimes of processors, too, compile the graph: OpenVINO, ONNX Runtime.
    return "compiled" if kind == "processor runtime" else kind


def engine_of(row: Row, fmt: Format) -> tuple[str, str, Snapshot]:
    """Return id and kind of the twin, and its engine, or the part of it that worked."""
    lite = re.search(TENSORFLOW_LITE, row.software.lower()) is not None
    on_cpu = lite or "CPU" in row.workload or re.search(ON_PROCESSORS, row.software) is not None
    twin, share = twin_of(row.device, cpu=on_cpu)
    if "ANE)" in row.device and twin.kind != "NPU":
        raise Inexpressible(f"no twin of the Neural Engine of {row.device} in the catalogue")
    by_vectors = fmt.vector_unit or (on_cpu and fmt.computes == "int8" and leaves_tiles_idle(row))
    engine = engine_for(twin, fmt.computes, vector_unit=by_vectors)
    if re.search(SUMS_IN_HALF, f"{row.software} {row.seq_or_shape}"):
        engine = summing_in_half(engine, twin)
    if twin.kind == "CPU" and share == 1:
        share = rented(row, engine.units)
    clock = stated_clock(row, twin, engine.units) if on_cpu else 0.0
    if clock:
        engine = clocked(engine, clock)
    if (lite or "ncnn" in row.software) and fmt.computes == "int8" and on_cpu:
        engine = widened(engine, twin)
    elif "without vector instructions" in row.note:
        engine = scalar(engine)
    if fmt.computes == "int8" and on_cpu:
        engine = in_bytes(twin, engine, row.software)
    if share == 1:
        share = part_for_a_request(row, twin, engine)
    if share < 1:
        engine = engine.share(share, share)
    kind = "CPU" if on_cpu else twin.kind
    threads = threads_of(row, engine.units) if kind == "CPU" else 0
    instances, cores = instances_of(row)
    if instances > 1:
        engine = instance(engine, instances, cores, filled_batch(row, kind) / instances)
    elif threads:
        engine = on_threads(engine, twin, threads, filled_batch(row, kind))
    if re.search("Vulkan|OpenCL", row.workload) and twin.kind not in ("GPU", "SoC"):
        raise Inexpressible(f"no twin of the GPU of {row.device} in the catalogue")
    return twin.id, kind, engine


def engine_as_run(row: Row, fmt: Format, network: Callable[[], Network]) -> tuple[Format, str, str, Snapshot]:
    """Return the format that the products of a network run in, and what :func:`engine_of` returns for it."""
    twin, kind, engine = engine_of(row, fmt)
    ran = multiplied_in(row, fmt, Hardware[twin], lambda: part_in_convolutions(network()))
    return (ran, *engine_of(row, ran)) if ran.computes != fmt.computes else (ran, twin, kind, engine)


def filled_batch(row: Row, kind: str) -> int:
    """Return the samples of a pass: those that the row states, else what usually fills a machine of this kind."""
    fits = [size for word, size in FILLED.items() if word in row.model or word in row.seq_or_shape]
    if "Stream" in row.workload or row.metric.startswith("latency"):
        return batch_of(row, 1)
    if "RNN-T" in row.model:
        return batch_of(row, FEWER_UTTERANCES if re.match(ON_SMALL, row.device) else UTTERANCES)
    # A dataflow machine streams one input after the other instead of filling a batch.
    return batch_of(row, 1 if kind == "NPU" else min(fits, default=32))


def shape_of(row: Row) -> dict[str, int]:
    """Return the side of the picture, or both, and the length of the text, where the row states them."""
    shape: dict[str, int] = {}
    sides = re.match(r"(\d+)x(\d+) image", row.seq_or_shape)
    if sides:
        shape["image"], width = (int(side) for side in sides.groups())
        if width > CHANNELS and width != shape["image"]:
            shape["width"] = width
        if window_of(row):
            shape = {"image": window_of(row), "width": window_of(row)}
    tokens = re.search(r"(?:max )?seq (\d+)", row.seq_or_shape)
    if tokens:
        shape["sequence"] = int(tokens.group(1))
        if "SQuAD" in row.seq_or_shape and "MLPerf" in row.workload:
            shape["sequence"] = SQUAD_TOKENS
    return shape


def saving(software: str, engine: Snapshot) -> float:
    """Return how many times less 3 × 3 convolutions of stride 1 take on a GPU for its library's algorithms.

    Of floating point on vector units only: matrix units leave Winograd's transforms nothing to save.
    """
    return saved_on(engine) if saves_multiplications(software) else 1.0


def inference(row: Row) -> Case:
    """Return the case of one forward pass of a network of the catalogue."""
    if "GNMT" in row.model:
        raise Inexpressible("GNMT: how long the sentences are, and how many words its beams write, is not stated")
    if "DLRM" in row.model:
        return _recommender(row)
    if "RNN-T" in row.model and row.metric.startswith("latency"):
        # Side by side, utterances fill the machine; one alone is a chain of steps, and the slowest tenth are long ones.
        raise Inexpressible("RNN-T: how long the utterances of the slowest tenth are is not stated")
    if "3d-unet" in row.model.lower():
        if not re.search(BRATS, row.source):
            raise Inexpressible("3D-UNet: the size of the scans, and how many windows cover one, is not stated")
        row = replace(row, model="unet3d_brats")
    submitted = row = as_submitted(row)
    row = row if own_name(row) == row.model else replace(row, model=own_name(row))
    if "ncnn" in row.software and "Vulkan" in row.workload and "int8" in row.precision:
        row = beside_gpu(row)
    if "open/Deci/" in row.source_path:
        raise Inexpressible("open division: the submitter's own network in the place of the one that the row names")
    if re.search(WITH_GRAPHICS, row.source_path):
        raise Inexpressible("ran on a processor and the GPU beside it: what each did is not stated")
    if re.search("GPT-J|Llama|Mixtral", row.model):
        raise Inexpressible("generation over a mix of lengths that the row does not state")
    fmt = number_format(_arithmetic(row))
    shape = shape_of(row)
    fmt, twin, kind, engine = engine_as_run(row, fmt, lambda: built(row.model, batch=1, **shape))
    batch, (instances, _) = filled_batch(row, kind), instances_of(row)
    software = settled(row)
    if software == "TensorFlow" and kind == "CPU":
        software = tensorflow_on(Hardware[twin])
    winograd = saving(row.software, engine) if kind == "GPU" else 1.0
    if kind == "CPU":
        winograd = winograd_on(Hardware[twin], engine, row.software, fmt.computes)
    elif "ncnn" in row.software:
        winograd = WINOGRAD_SAVING
    if kind == "GPU" and multiplies_by_vectors(row, engine, fmt.convolutions):
        software = "eager small units"
    setting = f"{software}{_format_apart(software, kind, row, fmt)} network on {kind}"
    how = between_products(row, setting)
    if multiplies_only(row, setting):
        setting, how = WITHOUT_CONVOLUTIONS, f"one by one, scores {attention_of(row)}"
    if row.model.startswith("SDXL"):
        work = picture_work(fmt, batch)
    else:
        work = batched(row.model, fmt, max(1, batch // instances), winograd, shape, how)
    if "written out" in how and fmt.vector_unit:
        work = in_blocks(rows_read_again(work, Hardware[twin], fmt.value), Hardware[twin], fmt.computes)
    if unrolls(row.software):
        work = image_by_image(work, batch, fmt.value)
    elif not row.model.startswith("SDXL"):
        beside = batch_statistics(row, partial(unfused, row.model, shape), fmt, batch)
        work = joined(work, copies(row, setting, shape, fmt, engine, batch), beside)
    if writes_scores(row.software) and not how and kind == "GPU":
        work = joined(work, scores_apart(built(row.model, **shape), row.software, fmt, batch))
    if "CUDA graph" in row.software:
        work = queued_up(work)
    machines = max(1, row.n_devices)
    rate = operations_a_second(row)
    if rate:
        products = work["kind"] == MATMUL
        seconds, inverse = machines * float((work["flops"] * work["count"])[products].sum()) / rate, True
    elif re.match("latency", row.metric) or row.unit in ("ms", "us"):
        seconds, inverse = seconds_each(row)
    else:
        share = part_of_the_gpu(submitted, twin)
        seconds, inverse = seconds_each(row, batch * machines / windows(row) / share)
    work = resident(work, Hardware[twin])
    loops = plain_loops(engine, Hardware[twin], row.software, fmt.computes, work)
    aside = max(_left_to_processor(row, work), loops)
    return Case(row, "network inference", setting, twin, engine, work, seconds, inverse, at_least=aside)


# User-item pairs of a sample, 100 to 700: the mean of tools/dist_quantile.txt (mlcommons/inference_results_v4.1,
# closed/Intel/code/dlrm-v2-99.9/pytorch-cpu); and those that run at a time, by the card (``gpu_batch_size`` of
# configs/dlrm-v2/Offline there, of NVIDIA and of Quanta_Cloud_Technology), with all tables in the card's memory.
PAIRS = 270
_PAIRS_AT_A_TIME = (("H200 SXM|GH200|H100 SXM", 600_000), ("H100 PCIe", 51_200), ("L40S", 6_000))


def _recommender(row: Row) -> Case:
    """Return the case of MLPerf's DLRM-DCNv2, offline."""
    at_a_time = next((pairs for card, pairs in _PAIRS_AT_A_TIME if re.search(card, row.device)), 0)
    if not at_a_time or "v4.1" not in row.source or "TensorRT" not in row.software:
        raise Inexpressible(f"{row.model}: how many pairs run at a time is not stated")
    fmt = number_format(row.precision)
    twin, kind, engine = engine_of(row, fmt)
    # Every pair looks up rows of its own: the work of many is not that of one with more rows.
    work = kernels_of(built("dlrm_dcnv2", batch=at_a_time), fmt)
    seconds, inverse = seconds_each(row, at_a_time / PAIRS * max(1, row.n_devices))
    setting = f"{settled(row)} network on {kind}"
    return Case(row, "network inference", setting, twin, engine, work, seconds, inverse)


# What ONNX Runtime's own kernels take for each number of a layer that Qualcomm's compiler leaves to the processor:
# unpacked, computed and packed again by a plain loop, some 20 cycles. Middle of 17 rows of five chips, 4 to 9 ns, which
# their source counts as fallen back (w8a8, w8a16 of ViT and ConvNeXt: the parts of GELU) and no fit sees.
PLAIN_LOOP = 6.5e-9


def _left_to_processor(row: Row, work: Work) -> float:
    """Return the seconds of the layers that a row says ran on the processor, in a graph cut up among machines.

    Which layers they are is not stated; each is taken to have as many numbers as a product's result has on average.
    """
    stated = re.search(r"layers \d+ total\b.*?\b(\d+) cpu", row.note)
    if not stated or not row.software.endswith("AI Hub onnx"):
        return 0.0
    products = work["count"] * (work["kind"] == MATMUL)
    numbers = (products * work["m"] * work["n"] * work["batch"]).sum() / products.sum()
    return float(PLAIN_LOOP * numbers * int(stated.group(1)))


def attention_of(row: Row) -> str:
    """Return how eager PyTorch attends: from version 2 on by one kernel, where the source does not say otherwise."""
    return "written out" if "HF eager attention" in row.note or "PyTorch 2" not in row.software else "fused"


def multiplies_by_vectors(row: Row, engine: Snapshot, convolutions: float = 1.0) -> bool:
    """Return whether PyTorch runs a transformer operator by operator on units that multiply no faster than they add.

    Its products are then cuBLAS's in FP32, those of attention too where that is written out, forward and backward.
    Where ``convolutions`` are so many times as fast, on matrix units, they are the smaller part of what is multiplied.
    """
    alone = settled(row) == "eager" and engine.over_vector <= MATRIX_UNITS
    named = attention_of(row) == "written out" and re.search(r"(?i)bert|gpt|opt-", row.model) is not None
    return alone and (convolutions > 1 or named)


def between_products(row: Row, setting: str) -> str:
    """Return how a framework runs what lies between products, or nothing where a compiler joins it to them."""
    between = "loops" if loops_between_products(setting) else "one by one" if one_by_one(setting) else ""
    return between and f"{between}, scores {attention_of(row)}"


# NVIDIA's submissions reach BERT's 99.9 % in FP8 on Hopper and Ada, under metadata that say fp16: `precision = "fp16"`
# with `use_fp8 = True` (closed/NVIDIA/configs/bert/Offline/__init__.py of v3.1 and after), and F1 is 90.97 where FP16
# has 90.88. Not so with Arm hosts beside PCIe cards.
FP8_BERT = r"^NVIDIA (H100|H200|GH200|L4|L40S)\b.*/results/(?!H100-PCIe-80GB_aarch64).*/bert-99\.9/"

# BERT under TensorFlow 1.15 on an A100: the sixteen latencies that the table gives for FP16 are those that it gives for
# TF32, of BERT-Large within 3 %, of BERT-base within 8 %; FP16 of TensorFlow 2, and of ResNet-50 under 1.15, is faster.
TF32_BERT = r"A100.*/DeepLearningExamples TensorFlow/LanguageModeling/BERT/README\.md"


# LightSeq's comparison loads transformers' BERT as it is stored, in FP32, beside its own of FP16 (bytedance/lightseq,
# examples/inference/python/test/ls_bert.py: no ``half()``); on a T4 it attains 3 TFLOP/s, as FP32 does there.
FP32_BERT = r"lightseq.*Transformers"


def _arithmetic(row: Row) -> str:
    """Return the number format in which a row computed, where its source shows that it is not the one stated."""
    if re.search(FP32_BERT, f"{row.source} {row.software}"):
        return "fp32"
    if re.search(FP8_BERT, f"{row.device} {row.source_path}"):
        return "fp8"
    from_table = re.search(TF32_BERT, f"{row.device} {row.source} {row.source_path}")
    return "tf32" if from_table and row.precision == "amp fp16" else row.precision


# Up to v1.1 MLPerf's 3D-UNet sees scans of BraTS, all of one size; then those of KiTS19, of many, by windows
# (mlcommons/inference, vision/medical_imaging/3d-unet-kits19/README.md).
BRATS = r"inference_results_v(0\.7|1\.[01])$"

# Rockchip's first neural processors have a tool kit and a driver of their own, which the second has not replaced.
FIRST_RKNPU = r"RK1808|RV1109|RV1126|RK3399Pro"


def _format_apart(software: str, kind: str, row: Row, fmt: Format) -> str:
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
    if software == "TensorFlow XLA" and row.software.startswith("TensorFlow 1."):
        words += " 1"  # not the compiler of version 2, which is up to twice as fast on the same machine
    if software == "RKNN" and re.search(FIRST_RKNPU, row.device):
        words += " first"
    if software == "AI Hub" and words == " int8" and row.software.endswith("onnx"):
        # ONNX Runtime hands the compiler a graph of quantise and dequantise nodes, which it fuses less well.
        words += " onnx"
    if software == "Cloud AI" and "Stream" in row.workload:
        # Up to 1.5.6 a stream had one core of the card, five times slower than what came after.
        words += " 1.5.6 stream" if "1.5.6" in row.software else " stream"
    return words
