"""What programs do on a processor: their algorithms, the instructions they have kernels for, and what they fuse."""

import re

from mlsys.calibration.rows import Row
from mlsys.hardware import Device
from mlsys.models.estimate import Snapshot
from mlsys.models.estimate.lowering import LARGER_WINOGRAD
from mlsys.models.estimate.processors import integer_winograd
from mlsys.provenance import as_recorded

# Runtimes whose floating-point convolutions of 3 × 3 and stride 1 are Winograd's on Arm, besides ncnn: Paddle-Lite
# (lite/kernels/arm/conv_compute.cc: WinogradConv, tiles of 2, 4 or 6), TNN (SelectWinograd in arm_conv_layer_3x3.cc and
# arm_conv_fp16_layer_3x3.cc@f0cb081), PPL.nn (conv2d_algo_selector.cc@76ed936; its tables ask for tiles of 4), Tengine
# (op/conv/cortex-a/armv8: tran_inp_4.S, wino_sgemm_4x16_A72.S), MNN (cpu/compute/ConvolutionWinogradBridge.cpp).
_TRANSFORMING = r"Paddle-Lite|\b(TNN|Tengine|MNN)\b|PPL\.nn ARM"


def winograd_on(processor: Device, engine: Snapshot, software: str, computes: str) -> float:
    """Return how many times fewer multiplications 3 × 3 convolutions of stride 1 take; 1 where none are saved.

    On processors Winograd's transforms are cheap beside the products, and programs take larger tiles.

    Parameters
    ----------
    processor, engine
        As :func:`mlsys.models.estimate.processors.integer_winograd` wants them.
    software
        In the words of a row.
    computes
        The number format.
    """
    if "ncnn" in software:
        return integer_winograd(engine, processor) if computes == "int8" else LARGER_WINOGRAD
    return LARGER_WINOGRAD if computes != "int8" and re.search(_TRANSFORMING, software) else 1.0


def tensorflow_on(processor: Device) -> str:
    """Return the kind of software that TensorFlow is on a processor.

    On x86 it hands oneDNN a convolution with what follows it (core/grappler/optimizers/remapper.cc), as runtimes do
    that compile the graph; on Arm it runs one operator after the other.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> tensorflow_on(Hardware["Xeon_8480"]), tensorflow_on(Hardware["RaspberryPi4"])
    ('compiled', 'eager')
    """
    return "compiled" if processor.vendor in ("Intel", "AMD") else "eager"


def leaves_tiles_idle(row: Row) -> bool:
    """Return whether a program multiplies bytes by VNNI where a processor has AMX as well.

    ONNX Runtime does in convolutions (``MlasConvSymDispatchAvx512Vnni`` of mlas/lib/platform.cpp, which gives AMX to
    plain products alone), and PyTorch in linear layers, which are FBGEMM's.
    """
    pictures = "image" in row.seq_or_shape
    return re.search("ONNX ?Runtime" if pictures else r"torch.*\d", row.software, re.IGNORECASE) is not None


# OpenCV's layers of bytes are compiled for AVX2, AVX-512, RVV and LASX, and for no dot product of Arm's (opencv/opencv,
# modules/dnn/src/int8layers: the modes that version 4.10 builds layers_common.simd.hpp for): what is left widens, as
# many multiply-adds an instruction as FP32 has.
_WIDENS_ON_ARM = r"opencv"


def in_bytes(processor: Device, engine: Snapshot, software: str) -> Snapshot:
    """Return a processor as a program multiplies bytes on it: on Arm not all use the dot product.

    Parameters
    ----------
    processor, engine
        Of ``processor``, in 8-bit integers.
    software
        In the words of a row.
    """
    if processor.vendor in ("Intel", "AMD") or not re.search(_WIDENS_ON_ARM, software, re.IGNORECASE):
        return engine
    return engine.changed(matmul=lambda: engine.vector).designed()


def part_for_a_request(row: Row, twin: Device, engine: Snapshot) -> float:
    """Return the part of a machine that runs one request where a row names no part: one core of Rockchip's of several.

    ``RKNN_NPU_CORE_AUTO``, the default, picks one of them (rknn_api.h of airockchip/rknn-toolkit2: "default, run on NPU
    core randomly"); language models have a runtime of their own, which takes all.

    Parameters
    ----------
    row
        Of a whole network; its note may say ``3 cores``.
    twin, engine
        The whole machine.
    """
    if twin.architecture != "RKNN":
        return 1.0
    several = re.search(r"\b([2-9]) cores\b", row.note)
    with as_recorded():
        return int(several[1] if several else 1) / engine.units


def starts_operators(row: Row, software: str) -> bool:
    """Return whether networks in bytes are run as those in FP32 are, one operator after the other.

    A version of PyTorch does. The rows of MLPerf that name none are of Intel's own kernels.
    """
    return software == "eager" and re.search(r"\d", row.software) is not None


def multiplies_only(row: Row, setting: str) -> bool:
    """Return whether eager PyTorch runs a network without convolutions on a processor.

    Its linear layers are the library's, as those of torch.compile, to which products are library calls, too; what it
    was measured at, eager, are convolutions, of which oneDNN brings inputs and outputs into a layout of its own.
    """
    return setting == "eager network on CPU" and "image" not in row.seq_or_shape
