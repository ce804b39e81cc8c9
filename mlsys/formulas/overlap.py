"""Copies to an accelerator beside its computation: time with and without overlap."""

from typing import cast

import numpy as np

from mlsys.unit_checks import count, fraction, nonnegative, quantity_function

_TIME = nonnegative("s")


@quantity_function("s", copy_time=_TIME, compute_time=_TIME, overlap=fraction())
def partial_overlap_time(copy_time: float, compute_time: float, overlap: float) -> float:
    r"""Return the time of a step of which a fraction of the shorter part is hidden.

    .. math:: \max(t_c, t_w) + (1 - f)\min(t_c, t_w)

    Parameters
    ----------
    copy_time, compute_time
        Times :math:`t_c` and :math:`t_w` of one step, s.
    overlap
        Fraction *f* of the shorter one that overlaps with the longer one, 0 to 1.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> [f"{partial_overlap_time(Q_(4, 'ms'), Q_(6, 'ms'), part).to('ms'):.0f}" for part in (0, 0.5, 1)]
    ['10 ms', '8 ms', '6 ms']
    """
    shorter = np.minimum(copy_time, compute_time)
    return cast(float, np.maximum(copy_time, compute_time) + (1 - overlap) * shorter)


@quantity_function("s", copy_time=_TIME, compute_time=_TIME, steps=count())
def double_buffered_time(copy_time: float, compute_time: float, steps: float) -> float:
    r"""Return the time of several steps with two buffers, :math:`t_c + (k-1)\max(t_c, t_w) + t_w`.

    While a step computes on one buffer, the next copy fills the other. Only the first copy and the last computation
    overlap with nothing.

    Parameters
    ----------
    copy_time, compute_time
        Times :math:`t_c` and :math:`t_w` of one step, s.
    steps
        Number of steps *k*.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{double_buffered_time(Q_(4, 'ms'), Q_(6, 'ms'), 10).to('ms'):.0f}")
    64 ms
    """
    return cast(float, copy_time + (steps - 1) * np.maximum(copy_time, compute_time) + compute_time)


@quantity_function("", lambda copy_time, compute_time: (
    "`copy_time` and `compute_time` are both zero: nothing is there to lose"
    if np.any(np.add(copy_time, compute_time) == 0) else None
), copy_time=_TIME, compute_time=_TIME)  # fmt: skip
def copy_share(copy_time: float, compute_time: float) -> float:
    r"""Return the share of a step that copies take if nothing overlaps, :math:`t_c / (t_c + t_w)`.

    Parameters
    ----------
    copy_time, compute_time
        Times :math:`t_c` and :math:`t_w` of one step, s; not both zero.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(copy_share(Q_(4, "ms"), Q_(6, "ms")))
    0.4
    """
    return copy_time / (copy_time + compute_time)
