"""What programs do on a processor: their algorithms, the instructions they have kernels for, and what they fuse."""

from mlsys.hardware import Device
from mlsys.models.estimate import Snapshot
from mlsys.models.estimate.lowering import LARGER_WINOGRAD
from mlsys.models.estimate.processors import integer_winograd
from mlsys.provenance import as_recorded
from mlsys_evidence.typed_rows import TypedRow


def winograd_on(row: TypedRow, processor: Device, engine: Snapshot, computes: str) -> float:
    """Return how many times fewer multiplications 3 × 3 convolutions of stride 1 take; 1 where none are saved.

    On processors Winograd's transforms are cheap beside the products, and programs take larger tiles.

    Parameters
    ----------
    row
        Of which the libraries matter.
    processor, engine
        As :func:`mlsys.models.estimate.processors.integer_winograd` takes them.
    computes
        The number format.
    """
    if row.has("ncnn"):
        return integer_winograd(engine, processor) if computes == "int8" else LARGER_WINOGRAD
    return LARGER_WINOGRAD if computes != "int8" and row.has("Winograd on Arm") else 1.0


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


# OpenCV's layers of bytes are compiled for AVX2, AVX-512, RVV and LASX, and for no dot product of Arm's (opencv/opencv,
# modules/dnn/src/int8layers: the modes that version 4.10 builds layers_common.simd.hpp for): what is left widens, as
# many multiply-adds an instruction as FP32 has.


def in_bytes(row: TypedRow, processor: Device, engine: Snapshot) -> Snapshot:
    """Return a processor as a program multiplies bytes on it: on Arm not all use the dot product.

    Parameters
    ----------
    row
        Of which the libraries matter.
    processor, engine
        In 8-bit integers.
    """
    if processor.vendor in ("Intel", "AMD") or not row.has("OpenCV"):
        return engine
    return engine.changed(matmul=lambda: engine.vector).designed()


def part_for_a_request(row: TypedRow, twin: Device, engine: Snapshot) -> float:
    """Return the part of a machine that runs one request where a row names no part: one core of Rockchip's of several.

    ``RKNN_NPU_CORE_AUTO``, the default, picks one of them (rknn_api.h of airockchip/rknn-toolkit2: "default, run on NPU
    core randomly"); language models have a runtime of their own, which takes all.

    Parameters
    ----------
    row
        Of a whole network; it may have the number of cores.
    twin, engine
        The whole machine.
    """
    if twin.architecture != "RKNN":
        return 1.0
    with as_recorded():
        return row.get("cores_used", 1) / engine.units


def starts_operators(row: TypedRow, software: str) -> bool:
    """Return whether networks in bytes are run as those in FP32 are, one operator after the other.

    A version of PyTorch does. The rows of MLPerf that name none are of Intel's own kernels.
    """
    return software == "eager" and row.has("software version named")


def multiplies_only(row: TypedRow, setting: str) -> bool:
    """Return whether eager PyTorch runs a network without convolutions on a processor.

    Its linear layers are the library's, as those of torch.compile, to which products are library calls, too; what it
    was measured at, eager, are convolutions, of which oneDNN brings inputs and outputs into a layout of its own.
    """
    return setting == "eager network on CPU" and not row.has("image")
