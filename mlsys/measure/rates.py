"""Rates of this machine, from small measurements that are separate from the measurements they explain."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from mlsys.formatting import significant
from mlsys.measure.machine import compiler, with_threads
from mlsys.measure.timing import measure
from mlsys.unit_checks import checked_count
from mlsys.units import Q_, Quantity

_EDGE = 1024  # matrix size: large enough for the full rate, small enough for a few ms
_SIZES = tuple(4**power for power in range(9, 15))  # 256 KiB to 256 MiB, read and written together
FRESH = 2**25  # from this size on, glibc gives every allocation fresh pages (mallopt(3), M_MMAP_THRESHOLD)
_CHAIN = 33  # small products in sequence, so that their launches are not hidden by the entry cost
_LAYERS = ((64, 64, 56, 3), (256, 64, 56, 1), (256, 256, 14, 3), (1024, 256, 14, 1))  # into, out, side, kernel
_ROUNDS, _WARM = 15, 3
_DIGITS = 5  # the limit of any clock's accuracy


@dataclass(frozen=True)
class MachineRates:
    """Rates that PyTorch attains on a machine, in SI units: FLOP/s, byte/s, s.

    Attributes
    ----------
    threads
        Number of threads.
    flops
        FLOP/s of a product of two square FP32 matrices.
    convolutions
        FLOP/s over four common convolutions: in eager PyTorch, with channels last, and with weights packed for the
        library.
    sizes, bandwidths
        Bytes read and written by a copy into memory already in use, and its bandwidth in byte/s, which is higher while
        the data fit in a cache.
    fresh
        Additional seconds per byte of a new tensor of 32 MiB or more, because the system allocates new pages.
    launch
        Seconds of a trivial operator called through its module.
    entry, compiled_launch
        Seconds to enter a compiled model, and for each library call in it; 0 and ``launch`` without a compiler.
    """

    threads: int
    flops: float
    convolutions: tuple[float, float, float]
    sizes: tuple[int, ...]
    bandwidths: tuple[float, ...]
    fresh: float
    launch: float
    entry: float
    compiled_launch: float

    def bandwidth(self, data: float) -> float:
        """Return the bandwidth, byte/s, at which ``data`` bytes are read and written.

        Examples
        --------
        >>> rates = MachineRates(1, 1e11, (8e10, 9e10, 1e11), (1_000, 1_000_000), (4e10, 2e10), 0.0, 1e-6, 0.0, 1e-6)
        >>> rates.bandwidth(10), rates.bandwidth(1e9)
        (40000000000.0, 20000000000.0)
        """
        return float(np.interp(np.log(max(data, 1.0)), np.log(self.sizes), self.bandwidths))

    @property
    def memory(self) -> Quantity:
        """Bandwidth of the main memory: that of the largest copy, byte/s."""
        return Q_(self.bandwidths[-1], "byte/s")

    @property
    def in_cache(self) -> int:
        """Largest size at which a copy is still clearly faster than the main memory, bytes."""
        return max(
            (s for s, b in zip(self.sizes, self.bandwidths, strict=True) if b > 1.5 * self.bandwidths[-1]), default=0
        )

    def explain(self) -> str:
        """Return the rates as three lines of text."""
        plain, turned, packed = (f"{rate / 1e9:.0f}" for rate in self.convolutions)
        steps = zip(self.sizes, self.bandwidths, strict=True)
        ladder = ", ".join(f"{speed / 1e9:.0f} ({size / 2**20:g} MiB)" for size, speed in steps)
        fresh = f"new memory: {1 / self.fresh / 1e9:.1f} GB/s" if self.fresh else "new memory: free"
        return (
            f"{self.threads} thread(s), GFLOP/s: products {self.flops / 1e9:.0f}; convolutions {plain}, "
            f"channels last {turned}, packed {packed}\n"
            f"copies, GB/s: {ladder}\n"
            f"{fresh}; an operator {self.launch * 1e6:.2f} µs, compiled {self.compiled_launch * 1e6:.2f} µs "
            f"after {self.entry * 1e6:.1f} µs to enter"
        )


def machine_rates(
    threads: int = 1, *, compiled: bool = True, tick: Callable[[], object] = lambda: None
) -> MachineRates:
    """Measure PyTorch's rates on this machine; takes a few seconds, more if two small functions are compiled.

    Parameters
    ----------
    threads
        Number of threads.
    compiled
        Whether to measure the cost of entering a compiled model too; needs a C++ compiler.
    tick
        Called after each round, for a progress bar.

    Raises
    ------
    ArgumentError
        If ``threads`` is not a positive whole number.
    NoCompilerError
        If ``compiled`` is set and there is no compiler.
    """
    import torch

    threads = checked_count("machine_rates", "threads", threads)
    with with_threads(threads), torch.no_grad():
        left, right = torch.randn(_EDGE, _EDGE), torch.randn(_EDGE, _EDGE)
        (product,) = measure({"product": lambda: left @ right}, repeats=_ROUNDS, warmup=_WARM, tick=tick)
        convolutions = _convolution_rates(tick)
        launch = _eager_cost(tick)
        bandwidths = tuple(map(_copy_speed, _SIZES))
        fresh = _fresh_cost()
        entry, each = _compiled_costs(tick) if compiled else (0.0, launch)
    rate = 2 * _EDGE**3 / float(product.median.m_as("s"))
    return MachineRates(threads, rate, convolutions, _SIZES, bandwidths, fresh, launch, entry, each)


def _convolution_rates(tick: Callable[[], object]) -> tuple[float, float, float]:
    """Return FLOP/s over all layers of the probe: default layout, channels last, and packed weights."""
    import torch

    reorder, convolve = torch.ops.mkldnn._reorder_convolution_weight, torch.ops.mkldnn._convolution_pointwise
    work, seconds = 0.0, np.zeros(3)
    for into, out, side, kernel in _LAYERS:
        pad, ones = [kernel // 2] * 2, [1, 1]
        plain = torch.nn.Conv2d(into, out, kernel, padding=pad[0], bias=False).eval()
        turned = copy.deepcopy(plain).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        x = torch.randn(1, into, side, side)
        y = x.contiguous(memory_format=torch.channels_last)
        packed = reorder(plain.weight.detach(), pad, ones, ones, 1, list(x.shape))
        timings = measure(
            {
                "plain": partial(plain, x),
                "turned": partial(turned, y),
                "packed": partial(convolve, y, packed, None, pad, ones, ones, 1, "none", [], ""),
            },
            repeats=_ROUNDS, warmup=_WARM, tick=tick,
        )  # fmt: skip
        work += 2.0 * into * out * (side * kernel) ** 2
        seconds += [timing.median.m_as("s") for timing in timings]
    first, second, third = (float(work / each) for each in seconds)
    return first, second, third


def _eager_cost(tick: Callable[[], object]) -> float:
    """Return the cost of a trivial operator: a layer and an activation, averaged over many."""
    import torch

    layers = [layer for _ in range(_CHAIN // 2) for layer in (torch.nn.Linear(4, 4), torch.nn.ReLU())]
    network, x = torch.nn.Sequential(*layers).eval(), torch.ones(4, 4)
    (timing,) = measure({"launch": lambda: network(x)}, repeats=_ROUNDS, warmup=_WARM, tick=tick)
    return float(timing.median.m_as("s")) / len(layers)


def _copy_speed(size: int) -> float:
    """Return the byte/s of an operator that reads half of ``size`` and writes the other half."""
    import torch

    source = torch.randn(size // 8)
    target = source.clone()
    tiny, small = target[:1].clone(), source[:1].clone()
    whole, start = measure(
        {"copy": lambda: target.copy_(source), "one number": lambda: tiny.copy_(small)}, repeats=_ROUNDS, warmup=_WARM
    )
    moving = (whole.median - start.median).m_as("s")
    return float(size / max(moving, 0.1 * whole.median.m_as("s")))


def _fresh_cost() -> float:
    """Return the seconds per byte of new memory: a copy into new memory compared with one into old."""
    import torch

    source = torch.randn(FRESH // 2)
    target = source.clone()
    new, old = measure({"new": source.clone, "old": lambda: target.copy_(source)}, repeats=_ROUNDS, warmup=_WARM)
    return max(float((new.median - old.median).m_as("s")) / source.nbytes, 0.0)


def _compiled_costs(tick: Callable[[], object]) -> tuple[float, float]:
    """Return the cost of entering a compiled function, and of each library call in it, by a line fit."""
    import torch
    from torch._inductor.utils import fresh_cache

    compiler()
    weight = torch.eye(4)

    def chain(length: int) -> Callable[[torch.Tensor], torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            for _ in range(length):
                x = torch.mm(x, weight)
            return x

        return run

    x = torch.ones(4, 4)
    with fresh_cache():
        short, long = torch.compile(chain(1)), torch.compile(chain(_CHAIN))
        few, many = measure(
            {"one": lambda: short(x), "many": lambda: long(x)}, repeats=_ROUNDS, warmup=_WARM, tick=tick
        )
    each = float((many.median - few.median).m_as("s")) / (_CHAIN - 1)
    return max(float(few.median.m_as("s")) - each, 0.0), each


@lru_cache(maxsize=4)
def rates_here(format: str = "fp32", threads: int = 1) -> dict[str, Any]:
    """Return operations and bytes per second, and seconds of a launch, that PyTorch attains on this CPU.

    Parameters
    ----------
    format
        ``fp32`` or ``int8``: the format of the timed products.
    threads
        Number of threads.

    Raises
    ------
    ModuleNotFoundError
        If PyTorch is not installed.
    """
    import torch

    rates = machine_rates(threads, compiled=False)
    ops = max(rates.flops, *rates.convolutions)
    how = "the fastest of PyTorch's product and convolutions"
    if format == "int8":
        left = torch.randint(-127, 127, (_EDGE, _EDGE), dtype=torch.int8)
        with with_threads(threads):
            (product,) = measure({"int8": lambda: torch._int_mm(left, left)}, repeats=15, warmup=3)
        ops, how = 2 * _EDGE**3 / float(product.median.m_as("s")), "PyTorch's INT8 product"
    return {
        "ops_per_s": significant(ops, _DIGITS), "bytes_per_s": significant(rates.bandwidths[-1], _DIGITS),
        "launch_s": significant(rates.launch, _DIGITS),
        "how": f"{how}, copies of 256 KiB to 256 MiB; {threads} thread(s)",
        "sizes": list(rates.sizes), "bandwidths": [significant(speed, _DIGITS) for speed in rates.bandwidths],
    }  # fmt: skip
