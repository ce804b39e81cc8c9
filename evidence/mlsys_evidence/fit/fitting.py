"""Fitting the parameters of the calibrated model, and asking how well they carry over.

One setting, a kind of software on a class of machine, is one least-squares problem: the
logarithms of predicted over measured time, with a soft loss for outliers, and a prior for
each parameter that keeps it near its physical value where the rows do not speak. What is
left of a machine after that is described by effects (:mod:`mlsys_evidence.fit.pooling`); where these are fitted to
what a factor of each machine leaves, it is the mean over its sweeps, drawn towards one.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.case import Case
from mlsys.calibration.priors import PRIORS, Prior
from mlsys.calibration.times import case_times, stack_of, with_latency
from mlsys.formatting import significant
from mlsys.models.estimate import CaseBatch, Parameters, Work, kernel_times
from mlsys.models.estimate.dedupe import distinct_columns
from mlsys.models.estimate.eager import one_by_one
from mlsys.models.estimate.effects import pool_of, tells_machines
from mlsys.models.estimate.library import scaled
from mlsys.models.estimate.user_calibration import decimal

Array = NDArray[np.float64]
# More parts than this are left out several at a time.
MOST_FOLDS = 6
# Sweeps that a machine's own factor is drawn towards one by.
DRAWN = 1.0
# A machine's own factor closer to one than this is not kept.
LEAST_FACTOR = 0.05
# A parameter whose return to its prior moves the cases by less, root mean square in logarithm of time, is not kept.
LEAST_MOVE = 0.015
# Except where the effects of many machines and networks lie on top of the parameters, and the returned ones cost more
# than 0.2 points of a left-out error; convolutions differ in few of their cases from card to card.
ALL_KEPT = ("networks on CPU", "wholes on GPU", "convolutions")
# Evaluations of a fit at most: priors hold what is still flat after so many.
MOST_EVALUATIONS = 15
# Cases, and kernels, that one setting is fitted to at most; evenly spread over its sweeps.
MOST_CASES, MOST_KERNELS = 600, 8000


# A layer of a training step is many small kernels beside its products, each started from Python: gradients of biases
# and normalisations, casts, the optimiser. Few rows do not say how much that is, and 5 µs are off by far.
TRAINING_LAUNCH = Prior(1.5e-4, 4.0, 1e-8, 5e-3, "eager training costs 50 to 500 microseconds for each product")
# Where operators run one by one, only depthwise convolutions keep the vector units at work.
DEPTHWISE = Prior(0.1, 2.0, 0.005, 1.05, "PyTorch's depthwise convolutions and their gradients wait for their loads")
# It runs for minutes, so hot as MLPerf's networks do, whose fits say 1.5e-12; calls of microseconds say 1.2e-12.
TRAINING_ENERGY = Prior(1.5e-12, 1.25, 1e-13, 1e-11, "A100: 400 W at about 250 TFLOP/s, for minutes")
# Large batches hide what it takes to start an operator from Python, and most rows have them. Python starts what
# torch.compile makes, too, kernel by kernel, unless CUDA graphs are requested (pytorch.org/docs, torch.compile: mode
# "reduce-overhead"), and so it starts attention that is written out.
HOST_LAUNCH = Prior(2.5e-5, 2.0, 1e-8, 5e-3, "one call of PyTorch takes 26 to 38 microseconds on A100, T4 and V100")
_FROM_PYTHON = r"(eager attention|torch\.compile network|torchgpipe training) on GPU"
_TRAINED_ONE_BY_ONE = r"(eager|torchgpipe) training on GPU"

# One token at a time is read from the main memory and little else, whichever program reads it; what differs among
# programs is how long each kernel, and each step over PCIe, takes to start.
DECODE = {
    "bandwidth": Prior(0.91, 1.05, 0.05, 1.0, "weights are read as by a copy: 0.87 to 0.94 of the rate on GPUs"),
    "hop": Prior(1e-5, 4.0, 1e-7, 1e-3, "2 microseconds over NVLink, tens of them through the host"),
}

# Whole generations ran on machines with links of their own, where collectives by themselves say how long a step takes.
STEP = Prior(2e-6, 1.5, 1e-7, 1e-3, "all-reduces alone: 1.1 to 2.9 microseconds in nine programs on six cards")

# Only sweeps of products tell how one kernel splits and chains its sums; elsewhere they are a library's best.
WHOLE = {name: replace(PRIORS[name], centre=getattr(Parameters(), name)) for name in ("splits", "chain")}

# Networks run the same kernels one after the other, and tell their ramps, what they move and what a call takes worse
# than these do alone: without an H100's rows the call of the others would be anything between 23 and 32 microseconds.
ALONE = {
    "launch": replace(HOST_LAUNCH, factor=1.2),
    "ramp": Prior(21.0, 1.5, 1.0, 4096.0, "PyTorch's FP32 products alone: 10 steps in batches, 42 one by one"),
    "bandwidth": Prior(0.8, 1.05, 0.05, 1.0, "element-wise calls of PyTorch alone attain 0.81 on six cards"),
}

# Layers in FP32 by PyTorch: in the same blocks of 64 x 128 an A100 of 250 W attains 0.84 of its peak and one of 300 W
# 0.92, so that the power of the one is spent (sitar-lab/NeuSight, collect/linear).
ENERGY_IN_FP32 = {
    "energy": Prior(1.45e-12, 1.1, 1e-13, 1e-11, "an A100 of 250 W is held to 0.84 of its FP32 peak by its power")
}

# Its operands stay in registers: a chain of multiply-adds has nothing to wait for.
MULTIPLY_ADDS = {"vector": Prior(0.8, 1.3, 0.005, 1.05, "multiply-adds of registers issue nearly every cycle")}
# The peak of a NeuronCore's vector units, 2.3 TFLOP/s, counts more than a pass of one of its engines does: 128 lanes
# take a number each a cycle, at 1.12 GHz in one engine and 1.4 in another (aws-neuron-sdk@0b2735a3, general/nki/
# trainium_inferentia2_arch.rst, "Data-path Width").
LANES = {"vector": Prior(0.07, 1.2, 0.005, 1.05, "128 lanes at 1.12 to 1.4 GHz are 1/16 to 1/13 of the peak")}

UNSPLIT = {"splits": Prior(1.0, 1.01, 1.0, 32.0, "TensorRT-LLM's kernel of SmoothQuant gives no sum to two blocks")}


def _priors(setting: str) -> list[Prior]:
    """Return the priors of a setting, in the order of the parameters."""
    trains = {"launch": TRAINING_LAUNCH, "energy": TRAINING_ENERGY}
    priors = PRIORS | (trains if setting.endswith(" training on GPU") and not one_by_one(setting) else {})
    priors |= {"launch": HOST_LAUNCH} if one_by_one(setting) or re.match(_FROM_PYTHON, setting) else {}
    priors |= {"vector": DEPTHWISE, "energy": TRAINING_ENERGY} if re.match(_TRAINED_ONE_BY_ONE, setting) else {}
    priors |= {} if re.match(r"(SGLang|TensorRT-LLM|vLLM) .*gemm", setting) else WHOLE
    priors |= ALONE if setting.startswith("eager small units") else {}
    priors |= ENERGY_IN_FP32 if re.match(r"eager (small units|(batched )?gemm)", setting) else {}
    priors |= LANES if setting.startswith("NeuronX") else {}
    priors |= UNSPLIT if "w8a8" in setting else {}
    priors |= MULTIPLY_ADDS if setting.startswith("multiply-adds") else {}
    priors |= DECODE if re.search(r" llm (decode|generation) on GPU$|^HPU graphs", setting) else {}
    priors |= {"hop": STEP} if " llm generation on GPU" in setting else {}
    return [priors[name] for name in Parameters.names()]


@dataclass(frozen=True)
class Fit:
    """What is fitted for one setting: its parameters, and a factor of time of each machine in it."""

    parameters: Parameters
    machines: dict[str, float] = field(default_factory=dict)

    def of(self, twin: str) -> Parameters:
        """Return the parameters as one machine attains them."""
        return scaled(self.parameters, self.machines.get(twin, 1.0))


def predicted(cases: Sequence[Case], fitted: Fit) -> Array:
    """Return the time of each case, seconds: at the parameters as its machine attains them."""
    rows = np.array([fitted.of(case.twin).vectorised() for case in cases])
    return case_times(cases, rows)


def _distinct(stack: CaseBatch) -> tuple[CaseBatch, NDArray[np.intp]]:
    """Return the kernels that differ, and which of them each kernel of the stack is.

    The same layer on the same machine takes the same time in every case: half of all kernels are such, or more.
    """
    shapes = stack.kernels.columns[[name != "count" for name in Work.FIELDS]]
    rates = [stack.engines[name] for name in CaseBatch.RATES]
    first, which = distinct_columns(np.concatenate([shapes, rates, [stack.main, stack.near]]))
    engines = {name: values[first] for name, values in stack.engines.items()}
    kernels = Work(stack.kernels.columns[:, first])
    case = np.zeros(len(first), dtype=np.intp)
    traffic = (stack.copies[first], stack.main[first], stack.near[first])
    return CaseBatch(case, kernels, engines, *traffic, 1), which


def _thinned(cases: Sequence[Case]) -> list[Case]:
    kernels = sum(case.work.columns.shape[1] for case in cases)
    most = min(MOST_CASES, max(40, len(cases) * MOST_KERNELS // max(kernels, 1)))
    if len(cases) <= most:
        return list(cases)
    ordered = sorted(cases, key=lambda case: (case.twin, case.row.group, case.seconds))
    chosen = np.linspace(0, len(ordered) - 1, most).round().astype(int)
    return [ordered[index] for index in chosen.tolist()]


def fit(cases: Sequence[Case]) -> Fit:
    """Return the parameters that fit the cases of one setting, and the factors of its machines.

    The fit starts at the priors. Its results have the digits that are stored, so that what follows from them follows
    from the files.

    Parameters
    ----------
    cases
        At least one; all of one setting.
    """
    from scipy.optimize import least_squares

    chosen = _thinned(cases)
    stack = stack_of(chosen)
    distinct, which = _distinct(stack)
    measured = np.log([case.seconds for case in chosen])
    # A sweep speaks once for each row, but a hundred rows of one sweep are not a hundred opinions.
    sizes: dict[tuple[str, str], int] = {}
    for case in chosen:
        key = (case.twin, case.kind)
        sizes[key] = sizes.get(key, 0) + 1
    weight = np.array([sizes[case.twin, case.kind] ** -0.25 for case in chosen])
    names = Parameters.names()
    priors = _priors(chosen[0].setting)
    centres = np.log([prior.centre for prior in priors])
    spreads = np.log([prior.factor for prior in priors])
    low = np.log([prior.lowest for prior in priors])
    high = np.log([prior.highest for prior in priors])
    first = np.clip(centres, low + 1e-6, high - 1e-6)

    def logarithms(point: Array) -> Array:
        seconds = kernel_times(distinct, np.exp(point)).seconds[which]
        times: Array = np.log(with_latency(chosen, stack.total(seconds)))
        return times

    # Parameters that no case of the setting is sensitive to keep their priors.
    at_first = logarithms(first)
    sensitive = np.array(
        [
            np.abs(logarithms(first - 0.7 * np.eye(len(names))[index]) - at_first).max() > 1e-3
            for index in range(len(names))
        ]
    )
    sensitive &= [name not in WHOLE or priors[index] is not WHOLE[name] for index, name in enumerate(names)]

    def whole(part: Array) -> Array:
        point = first.copy()
        point[sensitive] = part
        return point

    def residuals(part: Array) -> Array:
        point = whole(part)
        return np.concatenate([(logarithms(point) - measured) * weight / 0.1, ((point - centres) / spreads)[sensitive]])

    solution = least_squares(
        residuals,
        first[sensitive],
        bounds=(low[sensitive], high[sensitive]),
        loss="soft_l1",
        diff_step=1e-2,
        max_nfev=MOST_EVALUATIONS,
        x_scale=spreads[sensitive],
    )
    point = whole(solution.x)
    if pool_of(chosen[0].setting) not in ALL_KEPT:
        point = _returned(point, centres, logarithms)
    parameters = Parameters(*(float(decimal(value)) for value in np.exp(point).tolist()))
    return Fit(parameters, machines_of(cases, parameters))


def _returned(point: Array, centres: Array, logarithms: Callable[[Array], Array]) -> Array:
    """Return the fitted point with every parameter at its prior that the cases do not need, the least needed first."""
    fitted = logarithms(point)

    def moved(index: int) -> tuple[float, int]:
        trial = point.copy()
        trial[index] = centres[index]
        return float(np.sqrt(np.mean((logarithms(trial) - fitted) ** 2))), index

    point, apart = point.copy(), np.flatnonzero(point != centres).tolist()
    while apart:
        far, least = min(moved(index) for index in apart)
        if far > LEAST_MOVE:
            break
        point[least] = centres[least]
        apart.remove(least)
    return point


def machines_of(cases: Sequence[Case], parameters: Parameters) -> dict[str, float]:
    """Return each machine's factor of time: the mean over its sweeps of their median, drawn towards one.

    One for those of settings whose machines are distinguished by effects.
    """
    if tells_machines(cases[0].setting):
        return {case.twin: 1.0 for case in cases}
    plain = predicted(cases, Fit(parameters))
    residuals = np.log([case.seconds for case in cases]) - np.log(plain)
    sweeps: dict[str, dict[str, list[float]]] = {}
    for case, rest in zip(cases, residuals.tolist(), strict=True):
        sweeps.setdefault(case.twin, {}).setdefault(case.row.group, []).append(rest)
    drawn = {
        twin: sum(float(np.median(rest)) for rest in own.values()) / (len(own) + DRAWN) for twin, own in sweeps.items()
    }
    return {
        twin: significant(float(np.exp(far)), 3) if abs(far) >= LEAST_FACTOR else 1.0 for twin, far in drawn.items()
    }


def _folded(parts: list[str]) -> NDArray[np.intp]:
    """Return a number for each row's part; many parts share ``MOST_FOLDS`` numbers, whole part by whole part."""
    order = {name: index for index, name in enumerate(sorted(set(parts)))}
    folds = min(len(order), MOST_FOLDS)
    return np.array([order[name] % folds for name in parts])


def held_out(
    cases: Sequence[Case],
    part: Callable[[Case], str],
    on_fit: Callable[[list[int], Fit], None] = lambda _places, _fit: None,
) -> Array:
    """Return each case's time as predicted from parameters fitted without its part.

    Each fit starts at the priors: one that started at the fit to all rows would remember the part left out.

    Parameters
    ----------
    cases
        Of one setting.
    part
        What is left out together: the device, or the sweep.
    on_fit
        Called after each fit with the places of the cases left out, and the fit.

    Returns
    -------
    array
        Seconds; NaN where leaving out the part leaves fewer than three rows.
    """
    parts = _folded([part(case) for case in cases])
    times = np.full(len(cases), np.nan)
    for fold in np.unique(parts):
        rest = [case for case, own in zip(cases, parts, strict=True) if own != fold]
        here = np.flatnonzero(parts == fold).tolist()
        if len(rest) >= 3:
            fitted = fit(rest)
            times[here] = predicted([cases[index] for index in here], fitted)
            on_fit(here, fitted)
    return times
