"""Published buffer sets of real accelerator programs, for testing planners: each fits in one mebibyte."""

from pathlib import Path

from mlsys.planner.memory.fixed import FixedBuffers

PUBLISHED_CAPACITY = 1_048_576
"""Capacity for the published buffers, bytes."""

_DATA = Path(__file__).parent / "data"


def published_buffers() -> dict[str, FixedBuffers]:
    """Return the instances by name.

    References
    ----------
    github.com/google/minimalloc at 9f5cf810fec4, ``benchmarks/challenging``, Apache-2.0; M. D. Moffitt, MiniMalloc:
    A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning, ASPLOS 2023.

    Examples
    --------
    >>> {name: len(buffers.ids) for name, buffers in published_buffers().items()}
    {'A': 154, 'C': 203, 'E': 215, 'G': 308, 'I': 374, 'K': 454}
    """
    return {path.stem.removeprefix("alloc-"): FixedBuffers.load(path) for path in sorted(_DATA.glob("alloc-*.csv"))}
