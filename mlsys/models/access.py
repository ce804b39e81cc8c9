"""Memory efficiency of scattered accesses: sectors, strides, layouts, DRAM rows."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from mlsys.errors import ArgumentError
from mlsys.provenance import traced
from mlsys.unit_checks import Argument, checked_choice, checked_count, checked_number
from mlsys.units import Q_, Quantity, ureg

WARP = 32
"""Lanes of a warp of an NVIDIA GPU, which load together."""
SECTOR = Q_(32, "byte")
"""Smallest fetch of such a GPU from its L2 cache or its memory; four sectors make a line."""

_BYTES = Argument("byte", low=1, whole=True)
_STRIDE = Argument("", low=0, whole=True)
Layout = Literal["NCHW", "NHWC"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


@dataclass(frozen=True)
class WarpAccess:
    """Memory traffic of one load of a warp.

    Attributes
    ----------
    sectors
        Distinct sectors touched.
    useful
        Requested bytes, each counted once.
    moved
        Bytes of the sectors.
    """

    sectors: int
    useful: Quantity
    moved: Quantity

    @property
    def efficiency(self) -> Quantity:
        """Requested bytes over moved bytes."""
        ratio: Quantity = (self.useful / self.moved).to("")
        return ratio


def _whole_bytes(where: str, name: str, value: Any) -> int:
    return int(checked_number(where, name, value, _BYTES, {}))


def _addresses(where: str, addresses: Sequence[int] | np.ndarray) -> np.ndarray:
    places = np.asarray(addresses)
    if places.ndim != 1 or not places.size or places.dtype.kind not in "iu" or (places < 0).any():
        raise ArgumentError(
            f"{where}(): `addresses` must be a list of whole numbers >= 0, got {addresses!r}. "
            "Write e.g. addresses=range(0, 128, 4)"
        )
    return places


@traced
def warp_access(addresses: Sequence[int] | np.ndarray, element_size: Quantity, sector: Quantity = SECTOR) -> WarpAccess:
    """Return the sectors that the lanes of a warp touch in one load.

    Parameters
    ----------
    addresses
        Byte address of each lane's element, whole numbers of zero or more, shape (lanes,).
    element_size
        Size of each lane's element, whole bytes.
    sector
        Smallest unit of a fetch, whole bytes.

    Returns
    -------
    WarpAccess

    Raises
    ------
    ArgumentError
        If there are no addresses, or they are not whole numbers of zero or more.

    Examples
    --------
    >>> warp_access(range(0, 128, 4), Q_(4, "byte")).sectors
    4
    >>> warp_access([0, 4096, 40, 4100], Q_(4, "byte")).sectors  # a gather
    3
    """
    where = "warp_access"
    places = _addresses(where, addresses)
    size, block = _whole_bytes(where, "element_size", element_size), _whole_bytes(where, "sector", sector)
    useful = np.unique(places.astype(np.int64)[:, None] + np.arange(size))
    sectors = len(np.unique(useful // block))
    return WarpAccess(sectors, ureg.Quantity(len(useful), "byte"), ureg.Quantity(sectors * block, "byte"))


@traced
def strided_access(
    stride: int, element_size: Quantity, lanes: int = WARP, sector: Quantity = SECTOR, offset: int = 0
) -> WarpAccess:
    """Return the sectors that a warp touches with neighbouring lanes ``stride`` elements apart.

    Parameters
    ----------
    stride
        Elements from lane to lane; 1 is contiguous, 0 is one element for all.
    element_size
        Size of an element, whole bytes.
    lanes
        Lanes that load together.
    sector
        Smallest unit of a fetch, whole bytes.
    offset
        Elements before that of the first lane; 0 starts on a sector boundary.

    Returns
    -------
    WarpAccess

    References
    ----------
    NVIDIA, CUDA C++ Best Practices Guide, section Coalesced Access to Global Memory.

    Examples
    --------
    >>> for stride in (1, 2, 8):
    ...     load = strided_access(stride, Q_(4, "byte"))
    ...     print(load.sectors, f"{load.efficiency.magnitude:.1%}")
    4 100.0%
    8 50.0%
    32 12.5%
    """
    where = "strided_access"
    size = _whole_bytes(where, "element_size", element_size)
    step = int(checked_number(where, "stride", stride, _STRIDE, {}))
    first = int(checked_number(where, "offset", offset, _STRIDE, {}))
    number = checked_count(where, "lanes", lanes)
    return warp_access((first + step * np.arange(number, dtype=np.int64)) * size, Q_(size, "byte"), sector)


@dataclass(frozen=True)
class RowAccesses:
    """Effect of a sequence of accesses on one bank of DRAM.

    Attributes
    ----------
    rows
        Row that each access falls into.
    hits
        Whether the access found its row open.
    """

    rows: tuple[int, ...]
    hits: tuple[bool, ...]

    @property
    def opened(self) -> int:
        """Number of row activations."""
        return self.hits.count(False)


@traced
def row_buffer(addresses: Sequence[int] | np.ndarray, row_size: Quantity) -> RowAccesses:
    """Return the row hits of accesses to one bank of DRAM with an open-page policy.

    Parameters
    ----------
    addresses
        Byte addresses in the order of the accesses, whole numbers of zero or more, shape (accesses,).
    row_size
        Bytes of a row, whole.

    Returns
    -------
    RowAccesses

    Raises
    ------
    ArgumentError
        If there are no addresses, or they are not whole numbers of zero or more.

    References
    ----------
    S. Rixner, W. J. Dally, U. J. Kapasi, P. Mattson, J. D. Owens, Memory Access Scheduling, ISCA 2000, section 2.

    Examples
    --------
    >>> row_buffer([0, 4, 8, 12], Q_(8, "byte")).hits  # along the rows
    (False, True, False, True)
    >>> row_buffer([0, 8, 4, 12], Q_(8, "byte")).opened  # alternating rows
    4
    """
    where = "row_buffer"
    places = _addresses(where, addresses)
    rows = (places // _whole_bytes(where, "row_size", row_size)).tolist()
    hits = [False, *(before == row for before, row in itertools.pairwise(rows))]
    return RowAccesses(tuple(rows), tuple(hits))


def layout_strides(channels: int, height: int, width: int, layout: Layout = "NCHW") -> tuple[int, int, int, int]:
    """Return the strides, in elements, along n, c, h and w, in that order.

    Parameters
    ----------
    channels, height, width
        Shape of one image.
    layout
        ``"NCHW"`` or ``"NHWC"``: the axes from the outermost in memory to the innermost.

    Raises
    ------
    UnknownNameError
        If the layout is unknown.
    ArgumentError
        If a size is not a positive whole number.

    Examples
    --------
    >>> layout_strides(3, 3, 3, "NCHW"), layout_strides(3, 3, 3, "NHWC")
    ((27, 9, 3, 1), (27, 1, 9, 3))
    """
    where = "layout_strides"
    c, h, w = (
        checked_count(where, name, value)
        for name, value in (("channels", channels), ("height", height), ("width", width))
    )
    if checked_choice(where, "layout", layout, LAYOUTS) == "NCHW":
        return c * h * w, h * w, w, 1
    return c * h * w, 1, w * c, c
