"""Compute primitives: instructions, lanes, warps and tiles that a piece of arithmetic needs."""

import numpy as np

from mlsys.unit_checks import count, fraction, positive, quantity_function


@quantity_function("", elements=count(), lanes=count())
def vector_instructions(elements: int, lanes: int) -> int:
    r"""Return the instructions that one operation on a vector takes, :math:`\lceil n/W \rceil`.

    Parameters
    ----------
    elements
        Elements *n* of the vector.
    lanes
        Elements *W* that one instruction works on.

    Examples
    --------
    >>> print(f"{vector_instructions(512, 8):d} {vector_instructions(513, 8):d}")
    64 65
    """
    return -(-elements // lanes)


@quantity_function("", elements=count())
def reduction_levels(elements: int) -> float:
    r"""Return the levels of a tree that reduces a vector to one value, :math:`\lceil \log_2 n \rceil`.

    Parameters
    ----------
    elements
        Elements *n* that are added, or compared, in pairs.

    Examples
    --------
    >>> print(f"{reduction_levels(512):g} {reduction_levels(513):g}")
    9 10
    """
    whole: float = np.ceil(np.log2(elements))
    return whole


@quantity_function("FLOP/s", units=count(), macs_per_cycle=positive("MAC/cycle"), clock=positive("cycle/s"))
def arithmetic_peak(units: int, macs_per_cycle: float, clock: float) -> float:
    r"""Return the peak rate of arithmetic units, :math:`2 \, U \, r f`.

    Parameters
    ----------
    units
        Number of units *U*.
    macs_per_cycle
        Multiply-accumulates *r* that one unit completes in a cycle.
    clock
        Clock *f*, cycle/s.

    Returns
    -------
    Quantity
        FLOP/s, two for each multiply-accumulate.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> peak = arithmetic_peak(4 * 108, Q_(256, "MAC/cycle"), Q_(1.41e9, "cycle/s"))
    >>> print(f"{peak.to('TFLOP/s'):.1f}")
    311.9 TFLOP/s
    """
    return 2 * units * macs_per_cycle * clock


@quantity_function("", kernel=count(), stride=count())
def im2col_expansion(kernel: int, stride: int = 1) -> float:
    """Return the elements that im2col writes for each element of the input, k²/s².

    Parameters
    ----------
    kernel
        Edge *k* of a square filter.
    stride
        Step *s* between windows, along both axes.

    Returns
    -------
    Quantity
        Pure number; exact where padding keeps one window for each step, as in "same" convolutions.

    Examples
    --------
    >>> print(im2col_expansion(3), im2col_expansion(3, stride=2))
    9 2.25
    """
    return kernel**2 / stride**2


@quantity_function("", taken=fraction(), lanes=count())
def divergence_probability(taken: float, lanes: int) -> float:
    r"""Return the probability that the lanes of a warp take both sides of a branch, :math:`1 - p^W - (1-p)^W`.

    Parameters
    ----------
    taken
        Probability *p* that a lane takes the branch, independent of its neighbours.
    lanes
        Lanes *W* of the warp.

    Examples
    --------
    >>> print(f"{divergence_probability(0.5, 2):.2f} {divergence_probability(0.02, 32):.2f}")
    0.50 0.48
    """
    return 1 - taken**lanes - (1 - taken) ** lanes


@quantity_function("", register_file=positive("byte"), registers=count(), lanes=count())
def register_limited_warps(register_file: float, registers: int, lanes: int = 32) -> float:
    """Return the warps whose registers fit in the register file of a multiprocessor.

    Parameters
    ----------
    register_file
        Bytes of the register file.
    registers
        Registers of four bytes that each thread uses.
    lanes
        Threads of a warp.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{register_limited_warps(Q_(256, 'KiB'), 255):g}")
    8
    """
    whole: float = np.floor(register_file / (4 * registers * lanes))
    return whole


@quantity_function("", latency=positive("cycle"), issued_per_cycle=count(), independent=count())
def warps_to_hide_latency(latency: float, issued_per_cycle: int, independent: int = 1) -> float:
    """Return the warps that keep every issue slot busy while results are under way: Little's law for instructions.

    Parameters
    ----------
    latency
        Cycles from the issue of an instruction to its result.
    issued_per_cycle
        Instructions that the multiprocessor issues in a cycle.
    independent
        Instructions of one warp that do not wait for each other.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{warps_to_hide_latency(Q_(4, 'cycle'), 4):g} {warps_to_hide_latency(Q_(4, 'cycle'), 4, 4):g}")
    16 4
    """
    whole: float = np.ceil(latency * issued_per_cycle / independent)
    return whole
