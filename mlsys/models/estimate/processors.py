"""Instructions that programs on CPUs use to multiply 8-bit integers."""

from mlsys.hardware.device import Device
from mlsys.models.estimate.lowering import LARGER_WINOGRAD
from mlsys.models.estimate.machine import Snapshot
from mlsys.models.estimate.work import Work
from mlsys.provenance import as_recorded

# 16-bit multiplications that x86 does in the time of one FP32 multiplication: VPDPWSSD does two in a lane and adds as
# well; without VNNI, VPMADDWD multiplies and VPADDD adds, two instructions in the time of two.
HALVES, HALVES_WITHOUT_VNNI = 2.0, 1.0
# Cores without an 8-bit kernel in ncnn: a plain C loop runs, which for each multiply-accumulate loads an offset, a
# value and a weight, adds the offset, multiplies, adds, steps two pointers and branches (Tencent/ncnn,
# src/layer/riscv/convolution_riscv.cpp@eb9bb5d19, "TODO implement int8", and convolution.cpp, forward_int8).
WITHOUT_KERNELS, PLAIN_LOOP = "XuanTie", 9.0


def widened(engine: Snapshot, twin: Device) -> Snapshot:
    """Return a CPU as ncnn's integer convolutions use it: on x86 they multiply in 16 bits.

    VPMADDWD, and VPDPWSSD on CPUs with VNNI, do two products in each 32-bit lane; ncnn uses the 8-bit instruction
    (VPDPBUSD) only in its matrix products and recurrent layers (Tencent/ncnn, src/layer/x86, convolution_packed_int8.h
    and convolution_3x3_winograd_int8.h@a4d2ea1). CPUs with VNNI have an 8-bit peak. On cores without a kernel, a core
    multiplies at most once a cycle; see :func:`plain_loops`.

    Parameters
    ----------
    engine
        Rates of ``twin`` for 8-bit integers.
    twin
        The device. Arm CPUs are returned unchanged: ncnn has kernels for each of their instructions.
    """
    if WITHOUT_KERNELS in twin.architecture:
        return engine.changed(matmul=lambda: 2 * engine.units * engine.clock).designed()
    if twin.vendor not in ("Intel", "AMD"):
        return engine
    halves = HALVES if twin.has_peak("int8") else HALVES_WITHOUT_VNNI
    return engine.changed(matmul=lambda: halves * engine.vector).designed()


# FP32 values in a 128-bit vector.
LANES = 4.0


def scalar(engine: Snapshot) -> Snapshot:
    """Return a CPU as used by a program compiled without vector instructions: one FP32 value at a time."""
    return engine.changed(matmul=lambda: engine.vector / LANES, vector=lambda: engine.vector / LANES).designed()


def plain_loops(engine: Snapshot, twin: Device, software: str, computes: str, work: Work) -> float:
    """Return the least seconds of plain loops, one instruction a cycle, on cores without 8-bit kernels in ncnn.

    Parameters
    ----------
    engine
        The active cores of ``twin``.
    twin, software, computes
        The device, program and number format; 0 for other CPUs, other programs and formats other than 8-bit integers.
    work
        Kernels of a network.
    """
    if WITHOUT_KERNELS not in twin.architecture or "ncnn" not in software or computes != "int8":
        return 0.0
    return PLAIN_LOOP * work.flops / 2 / (engine.units * engine.clock)


# Least ratio of 8-bit to FP32 multiplication rate on cores with an 8-bit dot product.
DOT_PRODUCT = 3.0


def integer_winograd(engine: Snapshot, twin: Device) -> float:
    """Return the factor by which Winograd's algorithm reduces 8-bit multiplications in ncnn; 1 for none.

    Its transforms leave 16-bit numbers. On x86 all of ncnn's integer convolutions multiply those; on Arm they use the
    FP32 lanes, and an 8-bit dot product is as fast without Winograd (Tencent/ncnn, src/layer/arm/convolution_arm.cpp
    @0043a53: ``winograd43`` where the CPU lacks ``asimddp``, or from 256 channels on).

    Parameters
    ----------
    engine
        Rates for 8-bit integers, as :func:`widened` returns them for ``twin``.
    """
    if twin.vendor in ("Intel", "AMD"):
        return LARGER_WINOGRAD
    if WITHOUT_KERNELS in twin.architecture:
        return 1.0
    with as_recorded():
        times = engine.matmul / engine.vector
    return 1.0 if times > DOT_PRODUCT else max(1.0, LARGER_WINOGRAD / times)
