"""The calibrated model: a roofline with launches, tiles, waves, caches and attainable rates.

For each kernel, with peak rate P over U units, bandwidth B and cache bandwidth C:

- a product of (M × K) by (K × N), done S ways along K in blocks of T × T′, runs in ``waves = ceil(ceil(M/T) ·
  ceil(N/T′) · batch · S / U)`` waves of ``max(2·T·T′·(K/S + ramp) / (compute · P/U), (T + T′)·(K/S)·width / (reuse ·
  C/U), (K/S)·chain)`` each, where consecutive steps of a sum are ``chain`` instruction latencies apart and ``S`` is at
  most ``splits``. The best tile of a small menu is used, as by a library's heuristic; a kernel with a known smallest
  block uses no smaller one and splits no sum;
- fused attention passes a block of queries over all keys, or over the keys up to it under a causal mask, with its
  products overlapping its softmax; each block starts afresh;
- weights stored in a narrower format than they are multiplied in cost the vector units some operations each, in
  addition to their transfer; on CPU cores these operations take the place of multiplications;
- a microcontroller issues the loads and widening of its operands one instruction at a time;
- element-wise work takes ``flops / (compute · V)`` on the vector units;
- bytes take ``bytes / (bandwidth · B)``, a ninth longer for products that read weights from HBM, or ``bytes / (reuse ·
  C)`` where they stay in the cache;
- an all-reduce among p takes ``2(p−1)/p · bytes / (link · L) + 2(p−1) · hop`` in a ring, in the faster of two
  protocols, or a single one-shot exchange where the program has one;
- CPU threads that share a layer wait for each other, and each launch starts and joins them
  (:mod:`mlsys.models.estimate.thread_scaling`);
- steps of a recurrence are sequential, one queued launch apart; each reads the weights of its layer again, from the
  cache where they stay there;
- the longest of these, plus ``launch``, is the kernel's time, and kernels run one after the other; for a call timed on
  its own, the second half of ``launch`` overlaps the kernel.

The words in italics of the parameters table are fitted once for each kind of software on each class of machine;
P, B, C, U, V and L come from the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.models.estimate.batch import CaseBatch
from mlsys.models.estimate.kernel_time import (
    attention_seconds,
    element_rate,
    issuing_seconds,
    product_seconds,
    unpacking_seconds,
    widening_seconds,
)
from mlsys.models.estimate.messages import message_seconds
from mlsys.models.estimate.parameters import Parameters
from mlsys.models.estimate.thread_scaling import waiting
from mlsys.models.estimate.work import ATTENTION, CALLED, COLLECTIVE, MATMUL, OVERLAPPED, QUEUED, STREAMED, VECTOR

Array = NDArray[np.float64]

# Cache bandwidth assumed where none is on record, as a multiple of the main memory's bandwidth.
CACHE_OVER_MAIN = 3.0
# Fraction of a call from Python that has passed when its kernel starts; the rest overlaps the kernel. Events around one
# PyTorch call show 15 of 30 µs on a T4, 20 of 38 on a V100 and 14 of 26 on an A100.
BEFORE_A_KERNEL = 0.55
# Clock rate (Hz) at which ``launch`` is stated for microcontrollers: an interpreter on the same core starts its
# kernels, and takes the same number of cycles at any clock.
INTERPRETED_AT = 1e8
# Seconds between two queued kernels: 1.7 to 2.6 µs were measured inside a CUDA graph.
START = 2.2e-6
# Fraction of a launch that remains where a kernel starts before its predecessor has ended: the smallest 16-bit products
# of three stacks take 1.74 to 1.86 µs inside a CUDA graph on a B200, and 2.45 to 2.7 µs on A100, H100 and H200.
LEFT_OF_A_START = 2 / 3


@dataclass(frozen=True)
class KernelTimes:
    """Time that one launch of each kernel spends in each part, in seconds.

    Attributes
    ----------
    working
        Arithmetic at the best tile; for a collective, its messages.
    moving
        Transfers from the main memory and from the cache.
    launch
        Fixed cost of each launch.
    operand_bound, latency_bound
        Whether the best tile is limited by operand delivery, and whether by instruction latency.
    """

    working: Array
    moving: Array
    launch: Array
    operand_bound: NDArray[np.bool_]
    latency_bound: NDArray[np.bool_]

    @property
    def seconds(self) -> Array:
        """Time of one launch: the longer of work and transfer, plus the launch."""
        longer: Array = np.maximum(self.working, self.moving) + self.launch
        return longer

    def at_least(self, flops: Array, moved: Array, peak: Array | float, bandwidth: Array | float) -> KernelTimes:
        """Return these times, raised to the roofline's where they are below it.

        Cached data then save time down to the compulsory main-memory traffic and no further, so that a bound and an
        estimate shown side by side cannot contradict each other.

        Parameters
        ----------
        flops, moved
            FLOP and bytes of one launch of each kernel.
        peak, bandwidth
            Rates of the roofline, FLOP/s and byte/s.
        """
        working, moving = np.maximum(self.working, flops / peak), np.maximum(self.moving, moved / bandwidth)
        return KernelTimes(working, moving, self.launch, self.operand_bound, self.latency_bound)


def calibrated_times(stack: CaseBatch, parameters: Array) -> Array:
    """Estimate the calibrated time of each case.

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


def kernel_times(stack: CaseBatch, parameters: Array) -> KernelTimes:
    """Estimate the time of one launch of each kernel; :func:`calibrated_times` sums them by case.

    Parameters
    ----------
    stack, parameters
        As for :func:`calibrated_times`.
    """
    rows = np.broadcast_to(np.asarray(parameters, dtype=float), (stack.cases, len(Parameters.names())))
    kernel_parameters = dict(zip(Parameters.names(), rows[stack.case].T, strict=True))
    kernels, engines = stack.kernels, stack.engines
    working = np.zeros(len(stack.case))
    operand_bound, latency_bound = np.zeros(len(stack.case), dtype=bool), np.zeros(len(stack.case), dtype=bool)
    feed = np.where(engines["cache_bandwidth"] > 0, engines["cache_bandwidth"], CACHE_OVER_MAIN * engines["bandwidth"])
    # A cache is never slower than the memory behind it.
    feed = np.maximum(feed * kernel_parameters["reuse"], kernel_parameters["bandwidth"] * engines["bandwidth"])
    moving = stack.main / (kernel_parameters["bandwidth"] * engines["bandwidth"]) + stack.near / feed

    here = kernels["kind"] == MATMUL
    if here.any():
        moving = np.where(here & (kernels["weights"] > 0), moving / engines["reading"], moving)
        working[here], operand_bound[here], latency_bound[here] = product_seconds(
            kernels, engines, kernel_parameters, feed, here
        )
        working[here] = np.maximum(working[here], widening_seconds(kernels, engines, kernel_parameters, here))
        moving[here] += unpacking_seconds(kernels, engines, kernel_parameters, moving, here)
    here = kernels["kind"] == VECTOR
    working[here] = kernels["flops"][here] / (kernel_parameters["vector"] * element_rate(engines))[here]
    here = kernels["kind"] == ATTENTION
    if here.any():
        working[here] = attention_seconds(kernels, engines, kernel_parameters, here)
    working *= np.where(kernels["kind"] == MATMUL, 1.0, waiting(engines["team"]))
    working += issuing_seconds(kernels, engines, kernel_parameters)
    here = kernels["kind"] == COLLECTIVE
    if here.any():
        working[here] = message_seconds(kernels, engines, kernel_parameters, here)
        moving[here] = 0.0
    alone = np.where(kernels["kind"] == COLLECTIVE, 0.0, kernels["ranks"])
    starting = (
        engines["joining"]
        * kernel_parameters["launch"]
        * np.where(engines["controller"] > 0, INTERPRETED_AT / engines["clock"], 1.0)
    )
    queued = np.minimum(starting, START)
    launch = np.where(alone == QUEUED, queued, starting) + kernels["extra_steps"] * queued
    launch = np.where(alone == OVERLAPPED, LEFT_OF_A_START * launch, launch)
    launch = np.where(alone == STREAMED, 0.0, launch)
    called = alone == CALLED
    if called.any():
        rest = np.maximum(BEFORE_A_KERNEL * launch, launch - np.maximum(working, moving))
        launch = np.where(called, rest, launch)
    return KernelTimes(working, moving, launch, operand_bound, latency_bound)
