"""Rows of whole networks, forward: classifiers, detectors, language encoders, images out of noise."""

import math
import re
from dataclasses import replace

from mlsys.calibration.case import Inexpressible
from mlsys.calibration.engines import engine_for
from mlsys.calibration.rows import Row
from mlsys.hardware import Hardware
from mlsys.models.estimate.lowering import Format
from mlsys_evidence.ingest.draft import Draft
from mlsys_evidence.ingest.jetsons import as_submitted, part_of_the_gpu
from mlsys_evidence.ingest.reading import whole_number
from mlsys_evidence.ingest.software import TENSORFLOW_LITE, network_software, saves_multiplications, unrolls
from mlsys_evidence.ingest.tf32 import multiplied_in
from mlsys_evidence.ingest.threads import clock, instances, threads
from mlsys_evidence.questions.rewritten import DRAWN, OWN, SOURCE
from mlsys_evidence.questions.shapes import usual_name

# Where a source gives throughput and no batch, a batch of this size is assumed to fill the device.
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
# A system of MLPerf whose description has its CPU's GPU among what ran (closed/Intel/systems of v0.5): 0.8 TOP/s
# on two cores that do 0.3 at their base clock and hardly more than that at their boost.
WITH_GRAPHICS = r"ICL-I3-1005G1_OpenVINO"
# Questions of SQuAD v1.1 are padded to 384 tokens, and submissions to MLPerf drop the padding, which is
# 54 % of all tokens (effective transformer without padding, openreview.net/forum?id=3nzKUh9a4M).
SQUAD_TOKENS = round(0.46 * 384)
ON_PROCESSORS = r"CPU(?!_AND)|XNNPACK|Neon|TVM"
# No image is narrower: a second number up to this counts channels, as in Rockchip's table, which writes DeepLab's
# input of 513 by 513 as [1, 513, 513, 1] (airockchip/rknn_model_zoo, README.md and examples/deeplabv3).
CHANNELS = 4
# Up to v1.1 MLPerf's 3D-UNet sees scans of BraTS, all of one size; then those of KiTS19, of many, by windows
# (mlcommons/inference, vision/medical_imaging/3d-unet-kits19/README.md).
BRATS = r"inference_results_v(0\.7|1\.[01])$"
# Rockchip's first neural processors have a tool kit and a driver of their own, which the second has not replaced.
FIRST_RKNPU = r"RK1808|RV1109|RV1126|RK3399Pro"
# Runtimes whose floating-point convolutions of 3 × 3 and stride 1 are Winograd's on Arm, besides ncnn: Paddle-Lite
# (lite/kernels/arm/conv_compute.cc: WinogradConv, tiles of 2, 4 or 6), TNN (SelectWinograd in arm_conv_layer_3x3.cc and
# arm_conv_fp16_layer_3x3.cc@f0cb081), PPL.nn (conv2d_algo_selector.cc@76ed936; its tables ask for tiles of 4), Tengine
# (op/conv/cortex-a/armv8: tran_inp_4.S, wino_sgemm_4x16_A72.S), MNN (cpu/compute/ConvolutionWinogradBridge.cpp).
TRANSFORMING = r"Paddle-Lite|\b(TNN|Tengine|MNN)\b|PPL\.nn ARM"
# Layers of int8 that ncnn's GPU runs have no kernels for run on the CPU, with the threads that the command of
# the run names: one, save on these (Tencent/ncnn, benchmark/README.md@a4d2ea1, num_threads above gpu_device = 0).
BESIDE_GPU = {"NVIDIA Jetson Nano": 4, "NVIDIA Jetson Orin Nano": 6, "Apple M1": 8, "Apple M3": 8}
# Attention as two batched products of cuBLAS with a softmax between them: DeepSpeed-Inference (microsoft/DeepSpeed,
# csrc/transformer/inference, ``softmax_context``), ONNX Runtime up to 1.12 (contrib_ops/cuda/bert/attention_impl.cu,
# ``QkvToContext``), LightSeq (``launch_attn_softmax``); and TorchScript, which fuses nothing into a product.
SCORES_APART = r"FasterTransformer|DeepSpeed|ONNX ?Runtime 1\.(\d|1[0-2])\b|LightSeq|TorchScript"
# timm writes the first two fully connected layers of VGG as convolutions (``ConvMlp`` of timm/models/vgg.py).
TIMM = "huggingface/pytorch-image-models"
# Pixels from one window to the next, by their side: ``test_cfg`` of open-mmlab/mmsegmentation,
# configs/pspnet/pspnet_r50-d8_769x769_40k_cityscapes.py@b2724da80.
WINDOW_STEPS = {769: 513}

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
# User-item pairs that run at a time, by the card (``gpu_batch_size`` of configs/dlrm-v2/Offline of v4.1, of NVIDIA and
# of Quanta_Cloud_Technology), with all tables in the card's memory; and pairs of a sample, 100 to 700: the mean of
# tools/dist_quantile.txt (mlcommons/inference_results_v4.1, closed/Intel/code/dlrm-v2-99.9/pytorch-cpu).
PAIRS_AT_A_TIME = (("H200 SXM|GH200|H100 SXM", 600_000), ("H100 PCIe", 51_200), ("L40S", 6_000))
PAIRS = 270


def software_kind(row: Row) -> str:
    """Return the kind of software a row ran on."""
    kind = network_software(row.software)
    if "Vulkan" in row.workload:
        return "vulkan"
    # Runtimes of CPUs, too, compile the graph: OpenVINO, ONNX Runtime.
    return "compiled" if kind == "processor runtime" else kind


def _arithmetic(row: Row) -> str:
    """Return the number format in which a row computed, where its source shows that it is not the one stated."""
    if re.search(FP32_BERT, f"{row.source} {row.software}"):
        return "fp32"
    if re.search(FP8_BERT, f"{row.device} {row.source_path}"):
        return "fp8"
    from_table = re.search(TF32_BERT, f"{row.device} {row.source} {row.source_path}")
    return "tf32" if from_table and row.precision == "amp fp16" else row.precision


def inference(draft: Draft) -> None:
    """Fill in one forward pass of a network of the catalogue."""
    row = draft.row
    if "GNMT" in row.model:
        raise Inexpressible("GNMT: how long the sentences are, and how many words its beams write, is not stated")
    if "DLRM" in row.model:
        _recommender(draft)
        return
    if "RNN-T" in row.model and row.metric.startswith("latency"):
        # Side by side, utterances fill the device; one alone is a chain of steps, and the slowest tenth are long ones.
        raise Inexpressible("RNN-T: how long the utterances of the slowest tenth are is not stated")
    if "3d-unet" in row.model.lower():
        if not re.search(BRATS, row.source):
            raise Inexpressible("3D-UNet: the size of the scans, and how many windows cover one, is not stated")
        row = replace(row, model="unet3d_brats")
    submitted = row = as_submitted(row)
    row = replace(row, model=own_name(row))
    if "ncnn" in row.software and "Vulkan" in row.workload and "int8" in row.precision:
        workers = BESIDE_GPU.get(row.device, 1)
        row = replace(row, workload=f"CNN inference on CPU {workers} thread" + ("s" if workers > 1 else ""))
    if "open/Deci/" in row.source_path:
        raise Inexpressible("open division: the submitter's own network in the place of the one that the row names")
    if re.search(WITH_GRAPHICS, row.source_path):
        raise Inexpressible("ran on a processor and the GPU beside it: what each did is not stated")
    if re.search("GPT-J|Llama|Mixtral", row.model):
        raise Inexpressible("generation over a mix of lengths that the row does not state")
    draft.row = row
    draft.set(operation="network")
    shape(draft)
    engine(draft, _arithmetic(row))
    program(draft)
    draft.mark("pipeline of SDXL", "^SDXL", row.model)
    share = part_of_the_gpu(submitted, draft.columns["device"])
    if share < 1:
        draft.numbers["part_of_the_gpu"] = share
    if row.software.endswith("AI Hub onnx"):
        draft.take("layers_on_cpu", r"layers \d+ total\b.*?\b(\d+) cpu", row.note)


def own_name(row: Row) -> str:
    """Return the name of the network that a row's source measured: its own where it wrote another than it says."""
    return f"{row.model}{OWN}" if SOURCE in row.source and row.model in DRAWN else row.model


def _recommender(draft: Draft) -> None:
    """Fill in MLPerf's DLRM-DCNv2, offline."""
    row = draft.row
    at_a_time = next((pairs for card, pairs in PAIRS_AT_A_TIME if re.search(card, row.device)), 0)
    if not at_a_time or "v4.1" not in row.source or "TensorRT" not in row.software:
        raise Inexpressible(f"{row.model}: how many pairs run at a time is not stated")
    engine(draft, row.precision)
    program(draft)
    draft.set(operation="recommender", network="dlrm_dcnv2", label=usual_name(row.model), batch=at_a_time)
    draft.numbers["pairs"] = PAIRS


def engine(draft: Draft, precision: str) -> None:
    """Fill in the device, its formats, and the part of it that worked."""
    row = draft.row
    lite = re.search(TENSORFLOW_LITE, row.software.lower()) is not None
    on_cpu = lite or "CPU" in row.workload or re.search(ON_PROCESSORS, row.software) is not None
    draft.in_format(precision)
    draft.on(cpu=on_cpu, name=row.device)
    device = Hardware[draft.columns["device"]]
    if on_cpu:
        draft.set(processor="cpu")
    if "ANE)" in row.device and device.kind != "NPU":
        raise Inexpressible(f"no twin of the Neural Engine of {row.device} in the catalogue")
    draft.mark("FP16 sums", SUMS_IN_HALF, f"{row.software} {row.seq_or_shape}")
    # ONNX Runtime multiplies bytes of convolutions by VNNI (``MlasConvSymDispatchAvx512Vnni`` of mlas/lib/platform.cpp,
    # which gives AMX to plain products alone), and PyTorch those of linear layers, which are FBGEMM's.
    images = "image" in row.seq_or_shape
    draft.mark("AMX idle", "ONNX ?Runtime" if images else r"torch.*\d", row.software, re.IGNORECASE)
    named = re.search(r"aws-\w+\.(\d+)xlarge", row.note)
    if named:
        # A virtual CPU of Amazon's machines is one of the two threads of a core, and an ``xlarge`` has four.
        draft.numbers["rented_cores"] = 2 * int(named[1])
    if on_cpu:
        fmt = Format(*(draft.columns[name] for name in ("computes", "weight_bytes", "value_bytes", "vector_unit")))
        clock(draft, engine_for(device, fmt.computes, vector_unit=fmt.vector_unit).units)
    draft.mark("no vector instructions", "without vector instructions", row.note)
    draft.take("cores_used", r"\b([2-9]) cores\b", row.note)
    threads(draft)
    instances(draft)
    if re.search("Vulkan|OpenCL", row.workload) and device.kind not in ("GPU", "SoC"):
        raise Inexpressible(f"no twin of the GPU of {row.device} in the catalogue")
    draft.set(batch=_filled(draft, "CPU" if on_cpu else device.kind))


def _filled(draft: Draft, kind: str) -> int:
    """Return the samples of a pass: those that the row states, else the batch assumed to fill a device of this kind."""
    row, stated = draft.row, draft.columns["batch"]
    if stated:
        return int(stated)
    if "Stream" in row.workload or row.metric.startswith("latency"):
        return 1
    if "RNN-T" in row.model:
        return FEWER_UTTERANCES if re.match(ON_SMALL, row.device) else UTTERANCES
    fits = [size for word, size in FILLED.items() if word in row.model or word in row.seq_or_shape]
    # A dataflow machine streams one input after the other instead of filling a batch.
    return 1 if kind == "NPU" else min(fits, default=32)


def shape(draft: Draft) -> None:
    """Fill in the sides of the image and the length of the text, where the row states them."""
    row = draft.row
    sides = re.match(r"(\d+)x(\d+) image", row.seq_or_shape)
    if sides:
        high, wide = int(sides[1]), int(sides[2])
        draft.numbers["image"] = high
        if wide > CHANNELS and wide != high:
            draft.numbers["image_width"] = wide
        _windows(draft, high, wide)
    draft.take("tokens", r"(?:max )?seq (\d+)", row.seq_or_shape)
    if "tokens" in draft.numbers and "SQuAD" in row.seq_or_shape and "MLPerf" in row.workload:
        draft.numbers["tokens"] = SQUAD_TOKENS


def _windows(draft: Draft, high: int, wide: int) -> None:
    """Fill in how many windows cover an image that is segmented window by window, and the side of one."""
    stated = re.search(r"in slides of (\d+)x\1\b", draft.row.seq_or_shape)
    if stated:
        side = int(stated[1])
        step = WINDOW_STEPS.get(side, side)
        draft.numbers |= {"image": side, "image_width": side}
        draft.numbers["windows"] = math.prod(max(0, math.ceil((each - side) / step)) + 1 for each in (high, wide))


def program(draft: Draft) -> None:
    """Fill in the software, and what it does between and beside products."""
    row = draft.row
    draft.set(software=software_kind(row), network=usual_name(row.model), tf32=multiplied_in(row))
    if unrolls(row.software):
        draft.set(algorithm="unrolled")
    elif not saves_multiplications(row.software):
        draft.set(algorithm="direct")
    if "CUDA graph" in row.software:
        draft.set(launch_mode="graph")
    attention(draft)
    draft.mark("Winograd on Arm", TRANSFORMING, row.software)
    draft.mark("image", "image", row.seq_or_shape)
    draft.mark("software version named", r"\d", row.software)
    draft.mark("transformer", r"(?i)bert|gpt|opt-", row.model)
    draft.mark("channels last", r"NHWC|channels.last", f"{row.software} {row.note}")
    if row.source == TIMM and row.model.startswith("vgg"):
        draft.features.add("linear as convolutions")
    draft.mark("scores apart", SCORES_APART, row.software)
    draft.mark("training mode", "training mode", row.note)
    draft.mark("stream", "Stream", row.workload)
    draft.mark("Cloud AI 1.5.6", r"1\.5\.6", row.software)
    draft.mark("first generation", FIRST_RKNPU, row.device)
    draft.mark("ONNX graph", "onnx$", row.software)
    draft.mark("autocast", "amp", row.precision)


def attention(draft: Draft) -> None:
    """Note whether eager PyTorch attends by one kernel: from version 2 on, where the source does not say otherwise."""
    row = draft.row
    if "HF eager attention" not in row.note and "PyTorch 2" in row.software:
        draft.features.add("attention fused")


def encoder(draft: Draft) -> None:
    """Fill in a stack of transformer blocks, on one device or split over several."""
    row = draft.row
    shape(draft)
    stated = draft.columns["batch"]
    engine(draft, row.precision)
    if stated is None:
        raise Inexpressible("batch not stated")
    program(draft)
    if "TorchScript" in row.software:
        draft.set(software="compiled")
    on_gpu = "processor" not in draft.columns and Hardware[draft.columns["device"]].kind == "GPU"
    if draft.columns["software"] == "eager" and "vision" not in row.workload and on_gpu:
        # A network like any other; the images beside FasterTransformer's took three times what such a network does.
        inference(draft)
        draft.features.add("encoder")
        return
    draft.set(operation="encoder")
    draft.mark("half padding", "Triton", row.software)
    ways = re.search(r"tensor parallel (\d+), pipeline parallel (\d+)", row.note)
    if ways:
        draft.numbers |= {"tensor_parallel": int(ways[1]), "pipeline_parallel": int(ways[2])}
        if int(ways[1]) > 1:
            draft.numbers["layers"] = whole_number(r"(\d+) layers", row.model, "layers")
            draft.numbers["hidden"] = whole_number(r"hidden (\d+)", row.model, "hidden size")
    # FasterTransformer's first mode of INT8 scales each channel of the weights on its own and leaves the residual
    # unquantized, so that its products write INT32; the second writes INT8.
    draft.mark("wide results", "INT8-v1", row.precision)


# Transformers that take noise away, and how many passes a step takes: FLUX.1 gets its guidance as an input, for films
# the network runs twice. Guidance subtracts the output without the text from the output with it.
_TRANSFORMERS = ((r"FLUX\.1", "flux", 1), ("CogVideoX-2B", "cogvideox_2b", 2), ("CogVideoX-5B", "cogvideox_5b", 2))
_UNETS = ((r"SDXL", "sdxl_unet"), (r"SD 2\.", "sd_v2_unet"), (r"SD 1\.", "sd_v1_unet"))


def denoising(draft: Draft) -> None:
    """Fill in so many steps of a batch of images or films; what encodes and decodes them is left out."""
    row = draft.row
    denoiser = next(((name, passes) for words, name, passes in _TRANSFORMERS if re.search(words, row.model)), None)
    side = re.search(r"(\d+)x\1", row.model)
    if denoiser is None and side:
        denoiser = next(((name, 2) for words, name in _UNETS if re.search(words, row.model)), None)
        draft.numbers["image"] = int(side[1]) // 8
    if denoiser is None:
        raise Inexpressible(f"no network of {row.model} in the catalogue that takes noise away")
    step = "denoising step" in row.workload
    draft.numbers["steps"] = 1 if step else whole_number(r"(\d+) steps", row.workload, "steps of a picture")
    _passes(draft, *denoiser)
    if draft.columns["batch"] is None:
        raise Inexpressible("batch not stated")


def denoising_pass(draft: Draft) -> None:
    """Fill in one guided pass of a U-Net over one image."""
    row = draft.row
    side = re.search(r"(\d+)x\1", row.model)
    name = next((name for words, name in _UNETS if re.search(words, row.model)), None)
    if side is None or name is None:
        raise Inexpressible(f"no U-Net of {row.model} in the catalogue")
    draft.numbers |= {"image": int(side[1]) // 8, "steps": 1}
    _passes(draft, name, 2)
    draft.set(batch=1)


def _passes(draft: Draft, name: str, passes: int) -> None:
    stated = draft.columns["batch"]
    engine(draft, draft.row.precision)
    program(draft)
    draft.set(operation="denoising", network=name, label=usual_name(draft.row.model), batch=stated)
    draft.numbers["passes"] = passes
