"""The calibrated model: a roofline that knows launches, tiles, waves, caches and what is attainable.

For each kernel, with peak rate P over U units, bandwidth B and cache bandwidth C:

- a product of (M × K) by (K × N), done S ways along K in blocks of T × T′, runs in
  ``waves = ceil(ceil(M/T) · ceil(N/T′) · batch · S / U)`` waves of
  ``max(2·T·T′·(K/S + ramp) / (compute · P/U), (T + T′)·(K/S)·width / (reuse · C/U), (K/S)·chain)`` each,
  where a step of a sum follows the last after ``chain`` times the cycles of one instruction, and ``S`` is at most
  ``splits``; the best tile of a small menu is taken, as a library's heuristic does; a kernel that says how small its
  blocks are takes no smaller one and splits no sum;
- fused attention takes a block of queries past all keys, or past those before it under a causal mask, its products
  beside its softmax; each block starts anew;
- weights that are stored narrower than they are multiplied cost the vector units some operations each, beside
  their transfer;
- a microcontroller loads and widens its operands one instruction after the other;
- element-wise work takes ``flops / (compute · V)`` on the vector units;
- bytes take ``bytes / (bandwidth · B)``, of products of few rows from HBM a ninth longer, or ``bytes / (reuse · C)``
  where they stay in the cache;
- an all-reduce among p takes ``2(p−1)/p · bytes / (link · L) + 2(p−1) · hop`` round a ring, in one of two protocols,
  or one shot where a program has its own;
- threads of a processor that share a layer wait for each other, and each launch starts and joins them
  (:mod:`mlsys.models.calibrated.teams`);
- the longest of these, plus ``launch``, is the kernel's time; kernels follow one another; of a call that is timed
  alone the second half of ``launch`` passes beside the kernel.

The words in italics of the parameters table are fitted once for each kind of software on each class
of machine; P, B, C, U, V and L are the twin's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from mlsys.hardware.view import MachineView
from mlsys.models.calibrated.laws import (
    attention_seconds,
    element_rate,
    issuing_seconds,
    message_seconds,
    power_ceiling,
    product_seconds,
    unpacking_seconds,
)
from mlsys.models.calibrated.machine import Snapshot, snapshot
from mlsys.models.calibrated.work import ATTENTION, CALLED, COLLECTIVE, MATMUL, OVERLAPPED, QUEUED, VECTOR, Work

Array = NDArray[np.float64]

# A cache holds what is used again when that fills no more than this part of it.
HOLDS = 0.7
# Where a twin has no rate of its cache on record, it is taken as this multiple of its main memory's.
CACHE_OVER_MAIN = 3.0
# Part of a call from Python that is over when its kernel starts; what follows of it passes beside the kernel. Events
# about one call of PyTorch show 15 of 30 µs on a T4, 20 of 38 on a V100 and 14 of 26 on an A100.
BEFORE_A_KERNEL = 0.55
# Rows of a product up to which its weights are all that it reads.
FEW_ROWS = 16.0
# Hz at which ``launch`` counts on a microcontroller: no driver starts its kernels, but the code of an interpreter on
# the same core, which takes as many cycles at any clock.
INTERPRETED_AT = 1e8
# Seconds from one queued kernel to the next: inside a CUDA graph 1.7 to 2.6 µs were measured.
START = 2.2e-6
# Part of a launch that is left where a kernel begins before the one before it has ended: the smallest 16-bit products
# of three stacks take 1.74 to 1.86 µs inside a CUDA graph on a B200, and 2.45 to 2.7 µs on A100, H100 and H200.
LEFT_OF_A_START = 2 / 3


@dataclass(frozen=True)
class Parameters:
    """What is fitted, for one kind of software on one class of machine.

    Attributes
    ----------
    compute
        Attained part of the dense peak inside a full tile.
    vector
        Attained part of the vector peak in element-wise work and depthwise convolutions.
    bandwidth
        Attained part of the peak bandwidth of the main memory.
    reuse
        Attained part of the bandwidth of the cache that feeds the tiles.
    launch
        Seconds that each kernel costs, however small.
    ramp
        What starting and ending a block costs, as steps of the reduction that it would pay
        for: the pipeline's fill, the epilogue, requantising each output.
    link
        Attained part of a link's rate, one direction.
    hop
        Seconds of latency for each step of a collective.
    energy
        Joules that the whole board spends on one 16-bit operation at 7 nm: with the design
        power, a ceiling on the sustained rate. In proportion to the bits of the format,
        and to the square root of the node.
    splits
        Parts that a kernel splits the reduction of a product into at most: 1 for one that never does.
    chain
        How many times as long as one instruction after the other a step of a block's reduction takes at least:
        above 1 where loads, or sums of scaled blocks, stand between them.
    """

    compute: float = 0.8
    vector: float = 0.5
    bandwidth: float = 0.85
    reuse: float = 0.5
    launch: float = 5e-6
    ramp: float = 64.0
    link: float = 0.7
    hop: float = 2e-6
    energy: float = 1.3e-12
    splits: float = 32.0
    chain: float = 1.0

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the parameters, in order."""
        return tuple(entry.name for entry in fields(cls))

    def vectorised(self) -> Array:
        """Return the parameters as one row."""
        return np.array([getattr(self, name) for name in self.names()])


@dataclass(frozen=True)
class Stack:
    """Many cases side by side: one column for each kernel, and whose it is.

    Attributes
    ----------
    case
        Index of the case that a kernel belongs to.
    kernels
        Columns of :class:`Work`, all cases after one another.
    engines
        Rates of the engine that runs each kernel, one row for each field of :class:`Snapshot` but its names.
    main, near
        Bytes of one launch that come from the main memory, and from the cache.
    cases
        How many.
    """

    case: NDArray[np.intp]
    kernels: Work
    engines: dict[str, Array]
    main: Array
    near: Array
    cases: int

    RATES = (
        "matmul", "vector", "bandwidth", "cache", "cache_bandwidth", "units", "clock", "power", "link", "array",
        "node", "bits", "each_cycle", "over_vector", "controller", "waiting", "joining",
        "reading",
    )  # fmt: skip

    # Those that are facts of a twin and stand in a sum; a cache holds the data or does not.
    RECORDED = ("matmul", "vector", "bandwidth", "cache_bandwidth", "units", "clock", "power", "link", "node")

    @classmethod
    def of(cls, pairs: Sequence[tuple[MachineView | Snapshot, Work, float]]) -> Stack:
        """Return the cases side by side.

        Parameters
        ----------
        pairs
            For each case its machine (a view, or a share of one), its work, and whether data that fit stay in the
            cache from one kernel, or one repetition, to the next: how many copies of the weights take turns, or 0.
        """
        lengths = [work.columns.shape[1] for _, work, _ in pairs]
        case = np.repeat(np.arange(len(pairs)), lengths)
        columns = (
            np.concatenate([work.columns for _, work, _ in pairs], axis=1) if pairs else np.zeros((len(Work.FIELDS), 0))
        )
        machines = [machine if isinstance(machine, Snapshot) else snapshot(machine) for machine, _, _ in pairs]
        read: dict[tuple[int, frozenset[str]], list[float]] = {}
        rows = []
        asks: dict[tuple[int, float], frozenset[str]] = {}  # one work may run on hundreds of machines
        held: dict[int, float] = {}
        for machine, (_, work, kept) in zip(machines, pairs, strict=True):
            asked = id(work), kept
            if asked not in asks:
                asks[asked], held[id(work)] = _needed(work, kept), work.weights
            key = id(machine), asks[asked]
            if key not in read:
                read[key] = _rates(machine, key[1])
            rows.append(read[key])
        rates = np.array(rows).reshape(-1, len(cls.RATES))
        engines = {name: rates[case, index] for index, name in enumerate(cls.RATES)}
        kernels = Work(columns)
        copies = np.array([kept for _, _, kept in pairs], dtype=float)[case]
        stays = copies > 0
        totals = np.array([held[id(work)] for _, work, _ in pairs])[case]
        room = HOLDS * engines["cache"]
        weights = kernels["weights"]
        other = kernels["moved"] - weights
        weights_near = stays & (copies * totals + other <= room)
        other_near = stays & (other <= room)
        near = np.where(weights_near, weights, 0.0) + np.where(other_near, other, 0.0)
        return cls(case, kernels, engines, kernels["moved"] - near, near, len(pairs))

    def total(self, seconds: Array) -> Array:
        """Return, for each case, the sum over its kernels of count times ``seconds``."""
        summed = np.bincount(self.case, weights=seconds * self.kernels["count"], minlength=self.cases)
        return summed.astype(np.float64, copy=False)

    def only(self, cases: NDArray[np.bool_]) -> Stack:
        """Return the kernels of some cases; cases keep their numbers, and of the others there is nothing."""
        here = cases[self.case]
        engines = {name: rates[here] for name, rates in self.engines.items()}
        return Stack(
            self.case[here], Work(self.kernels.columns[:, here]), engines, self.main[here], self.near[here], self.cases
        )


A_LITTLE = 1 + 1e-6
"""Times as much of a rate: what moves with it leans on it here, and what does not only compares it."""

# A rate that no kernel of a case asks for is not read: this stands in its place.
_IDLE = {"link": 0.0, "cache": 0.0, "controller": 0.0}


def _needed(work: Work, stays: float) -> frozenset[str]:
    """Return the rates that the time of some kernels, or its bounds, are computed from."""
    kinds = set(work["kind"].tolist())
    needed = {"matmul", "vector", "bandwidth", "cache_bandwidth", "units", "array", "bits", "controller"}
    needed |= {"waiting", "joining", "reading"}
    needed |= {"cache"} if stays else set()
    needed |= {"power", "over_vector"} if kinds & {MATMUL, ATTENTION} else set()
    needed |= {"clock", "each_cycle"} if MATMUL in kinds else set()
    needed |= {"link"} if COLLECTIVE in kinds else set()
    return frozenset(needed)


def _rates(machine: Snapshot, needed: frozenset[str]) -> list[float]:
    """Return the rates of a machine, those read that are needed; a process matters where power is limited."""
    rates = {name: getattr(machine, name) if name in needed else _IDLE.get(name, 1.0) for name in Stack.RATES}
    if "power" in needed and np.isfinite(rates["power"]):
        rates["node"] = machine.node
    if rates["controller"]:
        rates |= {"clock": machine.clock, "each_cycle": machine.each_cycle}
    return list(rates.values())


def bound(stack: Stack) -> tuple[Array, Array]:
    """Return two lower bounds of each case's time: dense arithmetic, and compulsory traffic.

    Arithmetic: FLOP over the dense peak of the unit that does them; of a product, those that its
    shape has, which are fewer than a convolution's where an algorithm such as Winograd's saves
    multiplications. Traffic: parameters and the largest other tensor of any kernel, once, over
    the peak bandwidth: what lies between kernels may stay on the chip. What the case says is
    found in the cache does not come from the main memory.

    Returns
    -------
    tuple of array
        Seconds, of shape (cases,) each.
    """
    kernels, engines = stack.kernels, stack.engines
    best = np.maximum(engines["matmul"], engines["vector"])
    local = np.where(kernels["kind"] == COLLECTIVE, 0.0, 1.0)
    shaped = 2 * kernels["m"] * kernels["n"] * kernels["k"] * kernels["batch"]
    flops = np.where(kernels["kind"] == MATMUL, np.minimum(kernels["flops"], shaped), kernels["flops"])
    arithmetic = stack.total(local * flops / best)
    parameters = np.minimum(stack.main, kernels["weights"])
    weights = stack.total(local * parameters / engines["bandwidth"])
    largest = np.zeros(stack.cases)
    np.maximum.at(largest, stack.case, local * (stack.main - parameters) / engines["bandwidth"])
    return arithmetic, weights + largest


@dataclass(frozen=True)
class KernelTimes:
    """What one launch of each kernel spends, in seconds.

    Attributes
    ----------
    working
        Arithmetic at the best tile; of a collective, its messages.
    moving
        Transfers of what comes from the main memory and from the cache.
    launch
        What each launch costs, however small.
    fed, chained
        Whether the best tile waits for its operands, and whether for one instruction after the other.
    """

    working: Array
    moving: Array
    launch: Array
    fed: NDArray[np.bool_]
    chained: NDArray[np.bool_]

    @property
    def seconds(self) -> Array:
        """Time of one launch: the longer of work and transfer, and the launch."""
        longer: Array = np.maximum(self.working, self.moving) + self.launch
        return longer

    def at_least(self, flops: Array, moved: Array, peak: Array | float, bandwidth: Array | float) -> KernelTimes:
        """Return these times, none of them below the roofline's.

        What the cache holds then saves time down to the compulsory traffic with the main memory and
        no further: a bound and an estimate that are shown side by side do not contradict each other.

        Parameters
        ----------
        flops, moved
            Of one launch of each kernel, FLOP and byte.
        peak, bandwidth
            Of the roofline, FLOP/s and byte/s.
        """
        working, moving = np.maximum(self.working, flops / peak), np.maximum(self.moving, moved / bandwidth)
        return KernelTimes(working, moving, self.launch, self.fed, self.chained)


def calibrated_times(stack: Stack, parameters: Array) -> Array:
    """Return the calibrated time of each case.

    Parameters
    ----------
    stack
        Cases.
    parameters
        Rows of :meth:`Parameters.vectorised`, of shape (cases, parameters), or one row for all.

    Returns
    -------
    array
        Seconds, of shape (cases,).
    """
    return stack.total(kernel_times(stack, parameters).seconds)


def kernel_times(stack: Stack, parameters: Array) -> KernelTimes:
    """Return what one launch of each kernel takes; :func:`calibrated_times` sums them by case.

    Parameters
    ----------
    stack, parameters
        As for :func:`calibrated_times`.
    """
    rows = np.broadcast_to(np.asarray(parameters, dtype=float), (stack.cases, len(Parameters.names())))
    own = dict(zip(Parameters.names(), rows[stack.case].T, strict=True))
    kernels, engines = stack.kernels, stack.engines
    working = np.zeros(len(stack.case))
    fed, chained = np.zeros(len(stack.case), dtype=bool), np.zeros(len(stack.case), dtype=bool)
    feed = np.where(engines["cache_bandwidth"] > 0, engines["cache_bandwidth"], CACHE_OVER_MAIN * engines["bandwidth"])
    # A cache is never slower than the memory behind it.
    feed = np.maximum(feed * own["reuse"], own["bandwidth"] * engines["bandwidth"])
    moving = stack.main / (own["bandwidth"] * engines["bandwidth"]) + stack.near / feed

    here = kernels["kind"] == MATMUL
    if here.any():
        skinny = here & (np.minimum(kernels["m"], kernels["n"]) <= FEW_ROWS) & (kernels["weights"] > 0)
        moving = np.where(skinny, moving / engines["reading"], moving)
        working[here], fed[here], chained[here] = product_seconds(kernels, engines, own, feed, here)
        moving[here] += unpacking_seconds(kernels, engines, own, moving, here)
    here = kernels["kind"] == VECTOR
    working[here] = kernels["flops"][here] / (own["vector"] * element_rate(engines))[here]
    here = kernels["kind"] == ATTENTION
    if here.any():
        working[here] = attention_seconds(kernels, engines, own, here)
    working *= engines["waiting"]
    working += issuing_seconds(kernels, engines, own)
    here = kernels["kind"] == COLLECTIVE
    if here.any():
        working[here] = message_seconds(kernels, engines, own, here)
        moving[here] = 0.0
    alone = np.where(kernels["kind"] == COLLECTIVE, 0.0, kernels["peers"])
    starting = (
        engines["joining"] * own["launch"] * np.where(engines["controller"] > 0, INTERPRETED_AT / engines["clock"], 1.0)
    )
    launch = np.where(alone == QUEUED, np.minimum(starting, START), starting)
    launch = np.where(alone == OVERLAPPED, LEFT_OF_A_START * launch, launch)
    called = alone == CALLED
    if called.any():
        rest = np.maximum(BEFORE_A_KERNEL * launch, launch - np.maximum(working, moving))
        launch = np.where(called, rest, launch)
    return KernelTimes(working, moving, launch, fed, chained)


def holding(stack: Stack, parameters: Array, times: KernelTimes | None = None) -> dict[str, NDArray[np.bool_]]:
    """Return, by rate, the cases whose time comes from it: a kernel of theirs is held by it.

    Parameters
    ----------
    stack, parameters
        As for :func:`calibrated_times`.
    times
        What :func:`kernel_times` returns of them, where it is known.
    """
    times = times or kernel_times(stack, parameters)
    engines, kind = stack.engines, stack.kernels["kind"]
    rows = np.broadcast_to(np.asarray(parameters, dtype=float), (stack.cases, len(Parameters.names())))
    own = dict(zip(Parameters.names(), rows[stack.case].T, strict=True))
    working = times.working > times.moving
    multiplies = kind == MATMUL
    unpacks, issues = np.zeros(len(kind), dtype=bool), issuing_seconds(stack.kernels, engines, own) > 0
    if multiplies.any():
        unpacks[multiplies] = unpacking_seconds(stack.kernels, engines, own, times.moving, multiplies) > 0
    near = own["reuse"] * engines["cache_bandwidth"] > own["bandwidth"] * engines["bandwidth"]
    product = working & ((kind == MATMUL) | (kind == ATTENTION))
    elements = kind == VECTOR
    beside = working & elements & (element_rate(engines) > engines["vector"])  # on vectors of bytes
    computes = (product & ~times.fed & ~times.chained) | beside
    limited = computes & ~beside & (power_ceiling(engines, own) < own["compute"] * engines["matmul"])
    waits = product & times.fed
    held = {
        "matmul": computes & ~limited,
        "units": product | (working & issues),
        "clock": (product & times.chained) | (engines["controller"] > 0),
        "power": limited,
        "node": limited & np.isfinite(engines["power"]),
        "vector": (working & ((elements & ~beside) | (kind == ATTENTION))) | (~working & unpacks),
        "link": working & (kind == COLLECTIVE),
        "bandwidth": (~working & (stack.main > 0)) | (~near & (waits | (~working & (stack.near > 0)))),
        "cache_bandwidth": near & (waits | (~working & (stack.near > 0))),
    }
    return {name: np.bincount(stack.case, here, stack.cases) > 0 for name, here in held.items()}
