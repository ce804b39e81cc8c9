"""Measurements below the roofline bound, and the explanation of each.

The bound is the dense peak and the peak bandwidth of the main memory. There are few reasons for a measurement to be
faster than it; each is checked here against numbers, and a row without an explanation is reported as such.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.case import Case
from mlsys.calibration.engines import clock_ratio, summing_in_half
from mlsys.hardware import Hardware, view
from mlsys.models.estimate import CaseBatch, bound
from mlsys.models.estimate.lowering import LARGER_WINOGRAD

# Sources print three digits or fewer; clocks above the one that a peak is stated at gain up to this factor, or, on
# CPUs, up to the recorded boost clock.
ROUNDING, BOOST = 1.005, 1.15
# A repeated kernel finds cached inputs, and overwrites outputs before they are evicted.
BOTH_ENDS = 2.0


def least_times(cases: Sequence[Case], stack: CaseBatch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lower bounds of the times of cases: dense arithmetic, and traffic that no program can avoid.

    Parameters
    ----------
    cases
        Cases, with the compulsory fractions of their bytes and of their arithmetic.
    stack
        Batch of the same cases.

    Returns
    -------
    tuple of array
        Seconds, of shape (cases,) each.
    """
    arithmetic, traffic = bound(stack)
    fastest, compulsory = np.array([(case.fastest, case.compulsory) for case in cases]).reshape(-1, 2).T
    return arithmetic * fastest, traffic * compulsory


def explain(case: Case, arithmetic: float, traffic: float) -> str:
    """Return why a measurement beats its bound; empty if it does not.

    Parameters
    ----------
    case
        A case with its measured time.
    arithmetic, traffic
        The two bounds of its time, seconds.
    """
    seconds = case.seconds
    reasons = []
    if seconds < traffic:
        if seconds * ROUNDING >= traffic:
            reasons.append("rounding of the published number")
        elif _footprint(case) <= case.engine.cache:
            reasons.append("cache-resident: the data fit the last cache and are found there")
        elif case.work.weights > 0 and traffic - case.work.weights / case.engine.bandwidth <= seconds:
            reasons.append(_weights(case))
        elif traffic - BOTH_ENDS * case.engine.cache / case.engine.bandwidth <= seconds:
            reasons.append("cache at both ends: what it holds at the start and the end never crosses")
        else:
            reasons.append("not explained: faster than its compulsory traffic")
    if seconds < arithmetic:
        reasons.append(_arithmetic(case, arithmetic / seconds))
    return "; ".join(dict.fromkeys(reasons))


def _footprint(case: Case) -> float:
    kernels = case.work
    return kernels.weights + float((kernels["moved"] - kernels["weights"]).max(initial=0.0))


def _weights(case: Case) -> str:
    if case.engine.cache >= 0.25 * case.work.weights:
        return "cache-resident: part of the parameters stays in the last cache between passes"
    whole = view(Hardware[case.twin]).main.bandwidth or 0.0
    if case.engine.bandwidth < whole and case.work.weights / whole <= case.seconds:
        return "few cores: what they draw of the memory's bandwidth is an estimate, no bound"
    if "hailo" in case.row.software.lower():
        return "dataflow: parameters stay on the chip, or are loaded once for a stream of pictures"
    if "Offline" in case.row.workload and not case.row.batch:
        return "batch not stated: parameters are read once for several samples"
    return "not explained: parameters read faster than the main memory gives them"


def _arithmetic(case: Case, factor: float) -> str:
    words = f"{case.row.software} {case.row.workload}".lower()
    if factor <= ROUNDING:
        return "rounding of the published number"
    if "winograd" in words and factor <= LARGER_WINOGRAD:
        return "Winograd: a 3 × 3 convolution with fewer multiplications"
    saves = "conv" in case.kind + words and "R=1,S=1" not in case.row.seq_or_shape
    if re.search("ncnn|miopen|cudnn|xnnpack", words) and saves and factor <= LARGER_WINOGRAD:
        if case.kind == "convolution" and "R=3,S=3" not in case.row.seq_or_shape:
            return "FFT: a convolution with fewer multiplications"
        return "Winograd: the library picks it for 3 × 3 convolutions"
    # TNN picks it by its own count of operations (`SelectWinograd` of arm_conv_fp16_layer_3x3.cc).
    if re.search("ncnn|paddle-lite|^tnn ", words) and factor <= LARGER_WINOGRAD:
        return "Winograd: the library picks it for 3 × 3 convolutions"
    if "fft" in words:
        return "FFT: a convolution with fewer multiplications"
    if factor <= BOOST or factor <= clock_ratio(Hardware[case.twin], 1):
        return "boost clock: above the clock that the peak is stated at"
    named = case.row.precision.lower()
    own = case.engine.matmul / case.fastest
    twice = summing_in_half(case.engine, Hardware[case.twin]).matmul / own
    if twice > 1.01 and factor <= twice * BOOST:
        return "sums in FP16: at twice the rate of sums in FP32, which the peak is stated for"
    if (named in ("fp32", "fp32/fp16") and factor <= 8) or ("pseudo-fp16" in named and factor <= 2):
        return "mislabelled precision: narrower or matrix arithmetic than the row says"
    return f"not explained: {factor:.1f} times the dense peak"
