"""Measured rates of this machine in a number format."""

from functools import lru_cache
from typing import Any

_EDGE = 1024


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

    from mlsys.measure.rates import machine_rates, with_threads
    from mlsys.measure.timing import measure

    rates = machine_rates(threads, compiled=False)
    ops = max(rates.flops, *rates.convolutions)
    how = "the fastest of PyTorch's product and convolutions"
    if format == "int8":
        left = torch.randint(-127, 127, (_EDGE, _EDGE), dtype=torch.int8)
        with with_threads(threads):
            (product,) = measure({"int8": lambda: torch._int_mm(left, left)}, repeats=15, warmup=3)
        ops, how = 2 * _EDGE**3 / float(product.median.m_as("s")), "PyTorch's INT8 product"
    return {
        "ops_per_s": five_digits(ops), "bytes_per_s": five_digits(rates.bandwidths[-1]),
        "launch_s": five_digits(rates.launch),
        "how": f"{how}, copies of 256 KiB to 256 MiB; {threads} thread(s)",
        "sizes": list(rates.sizes), "bandwidths": [five_digits(speed) for speed in rates.bandwidths],
    }  # fmt: skip


def five_digits(value: float) -> float:
    """Return a number with five digits, the limit of any clock's accuracy."""
    return float(f"{value:.5g}")
