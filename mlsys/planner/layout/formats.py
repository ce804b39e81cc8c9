"""Element offsets of an image tensor in each layout."""

import re

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.unit_checks import checked_count

_BLOCKED = re.compile(r"NCHW([1-9][0-9]*)c")


def checked_layout(where: str, layout: str) -> int | None:
    """Return the block size of the channels, 1 for NCHW and None for NHWC; raise for an unknown layout."""
    if layout == "NHWC":
        return None
    if layout == "NCHW":
        return 1
    match = _BLOCKED.fullmatch(str(layout))
    if match is None:
        raise ArgumentError(
            f"{where}(): `layout` must be NCHW, NHWC or blocked channels such as NCHW16c, got {layout!r}. "
            "Write e.g. layout='NHWC'"
        )
    return int(match[1])


def layout_offsets(batch: int, channels: int, height: int, width: int, layout: str = "NCHW") -> np.ndarray:
    """Return the offset of each element of a tensor, in elements from the first.

    With all indices from zero, NCHW puts element (n, c, h, w) at ``((n C + c) H + h) W + w`` and NHWC at
    ``((n H + h) W + w) C + c``. Blocked NCHWbc keeps b channels of a pixel together, at
    ``(((n ⌈C/b⌉ + c // b) H + h) W + w) b + c mod b``, and pads the channels to whole blocks.

    Parameters
    ----------
    batch, channels, height, width
        Shape of the tensor.
    layout
        ``"NCHW"``, ``"NHWC"``, or blocked, such as ``"NCHW16c"``.

    Returns
    -------
    numpy.ndarray
        Offsets, shape (batch, channels, height, width).

    Raises
    ------
    ArgumentError
        If the layout is unknown, or a size is not a whole number above zero.

    Examples
    --------
    >>> for layout in ("NCHW", "NHWC", "NCHW2c"):
    ...     print(layout, layout_offsets(1, 3, 3, 3, layout)[0, :, 0, 1])
    NCHW [ 1 10 19]
    NHWC [3 4 5]
    NCHW2c [ 2  3 20]
    """
    where = "layout_offsets"
    names = ("batch", "channels", "height", "width")
    given = (batch, channels, height, width)
    sizes = [checked_count(where, name, value) for name, value in zip(names, given, strict=True)]
    block = checked_layout(where, layout)
    n, c, h, w = np.meshgrid(*map(np.arange, sizes), indexing="ij", sparse=True)
    _, C, H, W = sizes
    if block is None:
        return np.asarray(((n * H + h) * W + w) * C + c)
    return np.asarray((((n * -(-C // block) + c // block) * H + h) * W + w) * block + c % block)
