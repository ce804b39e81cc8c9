"""Instructions that programs multiply bytes with on processors."""

from mlsys.hardware.device import Device
from mlsys.models.estimate.lowering import LARGER_WINOGRAD
from mlsys.models.estimate.machine import Snapshot
from mlsys.models.estimate.work import Work
from mlsys.provenance import as_recorded

# Multiplications of 16 bits that x86 does in the time of one of 32 in floating point: two in a lane by VPDPWSSD, which
# adds as well; without VNNI VPMADDWD does them and VPADDD adds, two instructions in the time of two.
HALVES, HALVES_WITHOUT_VNNI = 2.0, 1.0
# Cores for which ncnn has no kernel of bytes at all: a loop of plain C runs, which for each multiply-accumulate loads
# an offset, a value and a weight, adds the offset, multiplies, adds, steps two pointers and branches (Tencent/ncnn,
# src/layer/riscv/convolution_riscv.cpp@eb9bb5d19, "TODO implement int8", and convolution.cpp, forward_int8).
WITHOUT_KERNELS, PLAIN_LOOP = "XuanTie", 9.0


def widened(engine: Snapshot, twin: Device) -> Snapshot:
    """Return a processor as ncnn's integer convolutions use it: on x86 they multiply in 16 bits.

    VPMADDWD, and VPDPWSSD where there is VNNI, do two products for each lane of 32 bits; those of 8 bits
    (VPDPBUSD) stand only in its matrix products and recurrent layers (Tencent/ncnn, src/layer/x86,
    convolution_packed_int8.h and convolution_3x3_winograd_int8.h@a4d2ea1). Processors with VNNI have a peak in bytes.
    Where it has no kernels, a core multiplies once a cycle at most; see :func:`plain_loops`.

    Parameters
    ----------
    engine
        Of ``twin``, in 8-bit integers.
    twin
        Arm's processors are left as they are: there ncnn has kernels for each of their instructions.
    """
    if WITHOUT_KERNELS in twin.architecture:
        return engine.changed(matmul=lambda: 2 * engine.units * engine.clock).designed()
    if twin.vendor not in ("Intel", "AMD"):
        return engine
    halves = HALVES if twin.has_peak("int8") else HALVES_WITHOUT_VNNI
    return engine.changed(matmul=lambda: halves * engine.vector).designed()


# Numbers of FP32 in a vector of 128 bits.
LANES = 4.0


def scalar(engine: Snapshot) -> Snapshot:
    """Return a processor as a program uses it that was compiled for no vectors: one number of FP32 at a time."""
    return engine.changed(matmul=lambda: engine.vector / LANES, vector=lambda: engine.vector / LANES).designed()


def plain_loops(engine: Snapshot, twin: Device, software: str, computes: str, work: Work) -> float:
    """Return the seconds that plain loops take at least where ncnn has no kernels of bytes: an instruction a cycle.

    Parameters
    ----------
    engine
        The cores at work, of ``twin``.
    twin, software, computes
        None of other processors, of other programs, and of other numbers than bytes.
    work
        Of a network.
    """
    if WITHOUT_KERNELS not in twin.architecture or "ncnn" not in software or computes != "int8":
        return 0.0
    return PLAIN_LOOP * work.flops / 2 / (engine.units * engine.clock)


# Times the rate of FP32 at which cores with a dot product of bytes multiply them, at least.
DOT_PRODUCT = 3.0


def integer_winograd(engine: Snapshot, twin: Device) -> float:
    """Return how many times fewer multiplications of bytes Winograd's algorithm is worth to ncnn, 1 for none.

    Its transforms leave numbers of 16 bits. On x86 all of ncnn's integer convolutions multiply those; on Arm they have
    the lanes of FP32, and a dot product of bytes is as fast without (Tencent/ncnn, src/layer/arm/convolution_arm.cpp
    @0043a53: ``winograd43`` where the processor lacks ``asimddp``, or from 256 channels on).

    Parameters
    ----------
    engine
        In 8-bit integers, as :func:`widened` returns it, of ``twin``.
    """
    if twin.vendor in ("Intel", "AMD"):
        return LARGER_WINOGRAD
    if WITHOUT_KERNELS in twin.architecture:
        return 1.0
    with as_recorded():
        times = engine.matmul / engine.vector
    return 1.0 if times > DOT_PRODUCT else max(1.0, LARGER_WINOGRAD / times)
