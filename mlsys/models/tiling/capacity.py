"""The largest tile that fits a memory, and the lower bound on traffic of any schedule."""

import math
from fractions import Fraction

from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.hardware.view import view
from mlsys.models.tiling.traffic import gemm_tile
from mlsys.precision import element_size as size_of
from mlsys.provenance import traced
from mlsys.unit_checks import Argument, checked_count, checked_number, positive
from mlsys.units import Quantity

_BUFFERS = Argument("", low=1, high=2, whole=True)


def checked_buffers(where: str, buffers: int) -> int:
    """Return 1 (single) or 2 (double buffering), or raise."""
    return int(checked_number(where, "buffers", buffers, _BUFFERS, {}))


def words_that_fit(where: str, capacity: Quantity, element_size: Quantity) -> int:
    """Return the number of words of ``element_size`` that fit in a memory."""
    room = checked_number(where, "capacity", capacity, positive("byte"), {})
    size = checked_number(where, "element_size", element_size, positive("byte"), {})
    return math.floor(Fraction(room) / Fraction(size))


def gemm_tile_words(tile: int | tuple[int, int, int], buffers: int = 1) -> int:
    """Return the words that the tiles of a matrix product occupy, b·(tm·tk + tk·tn + tm·tn).

    Parameters
    ----------
    tile
        Edge of a cube, or (tm, tn, tk).
    buffers
        1, or 2 for double buffering: the next tiles arrive while these are used.

    Examples
    --------
    >>> gemm_tile_words(32), gemm_tile_words(32, buffers=2), gemm_tile_words((64, 64, 8))
    (3072, 6144, 5120)
    """
    tm, tn, tk = gemm_tile("gemm_tile_words", tile)
    return checked_buffers("gemm_tile_words", buffers) * (tm * tk + tk * tn + tm * tn)


def largest_square_tile(capacity: Quantity, element_size: Quantity, buffers: int = 1) -> int:
    """Return the edge of the largest cube of tiles that fits, ⌊√(S / (b·3·w))⌋.

    Parameters
    ----------
    capacity
        Capacity of the memory, S, byte.
    element_size
        Size of one word, w, byte.
    buffers
        1, or 2 for double buffering, which halves the space for a tile.

    Returns
    -------
    int
        Edge in words.

    Raises
    ------
    ArgumentError
        If not even a tile of one word of each operand fits.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> [largest_square_tile(Q_(164, "KiB"), Q_(2, "byte"), buffers) for buffers in (1, 2)]
    [167, 118]
    """
    where = "largest_square_tile"
    words = words_that_fit(where, capacity, element_size)
    edge = math.isqrt(words // (3 * checked_buffers(where, buffers)))
    return _at_least_one(where, edge, words, 3 * buffers)


def largest_accumulator_tile(capacity: Quantity, element_size: Quantity) -> int:
    """Return the edge of the largest square tile of C that fits with one column of A and one row of B.

    With a reduction step of one, T² + 2T ≤ S: nearly the whole memory holds results, and a
    product moves about 2N³/√S words, a factor of √3 less than with three equal tiles.

    Parameters
    ----------
    capacity, element_size
        As in :func:`largest_square_tile`.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> largest_accumulator_tile(Q_(4, "KiB"), Q_(4, "byte"))
    31
    """
    where = "largest_accumulator_tile"
    words = words_that_fit(where, capacity, element_size)
    return _at_least_one(where, math.isqrt(words + 1) - 1, words, 3)


def _at_least_one(where: str, edge: int, words: int, needed: int) -> int:
    if edge < 1:
        raise ArgumentError(
            f"{where}(): `capacity` must hold at least {needed} words, one of each operand, got room for {words}. "
            'Write e.g. capacity=Q_(32, "KiB")'
        )
    return edge


@traced
def tile_sizes(device: Device, precision: str = "fp16", buffers: int = 1) -> FrozenDict[str, int]:
    """Return the edge of the largest square tile for each on-chip memory level.

    Parameters
    ----------
    device
        A device twin; levels without a recorded capacity are left out. If a program may use only
        part of a level, that part counts.
    precision
        Number format of all three tiles.
    buffers
        1, or 2 for double buffering.

    Returns
    -------
    FrozenDict
        Edge by level, in the order of the device.

    Raises
    ------
    UnknownNameError
        If the device has no level with a capacity inside its main memory.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> sizes = tile_sizes(Hardware.Cloud.A100, "fp16", buffers=2)
    >>> sizes["L2"], sizes["L1"]  # of the 192 KiB of L1, 164 KiB can be shared memory
    (1869, 118)
    """
    size = size_of(precision)
    inside = {
        level.name: largest_square_tile(level.quantity("usable"), size, buffers)
        for level in view(device).inner
        if level.has("capacity")
    }
    if not inside:
        raise UnknownNameError(
            f"tile_sizes(): {device.name} has no memory level with a capacity inside its {device.main_memory}. "
            "Choose a device that has, or give a capacity to largest_square_tile()"
        )
    return FrozenDict(inside)


def gemm_lower_bound(m: int, n: int, k: int, capacity_words: int) -> int:
    """Return the lower bound on the words that any schedule of a matrix product moves.

    The larger of the compulsory m·k + k·n + m·n and of 2mnk/√S − 2S.

    Parameters
    ----------
    m, n, k
        As in :func:`gemm_traffic`.
    capacity_words
        Capacity of the fast memory in words, S.

    References
    ----------
    T. Smith, B. Lowery, J. Langou, R. van de Geijn, A Tight I/O Lower Bound for Matrix
    Multiplication, arXiv:1702.02017.

    Examples
    --------
    >>> gemm_lower_bound(1024, 1024, 1024, 3 * 128 * 128)
    9588027
    """
    where = "gemm_lower_bound"
    m, n, k = (checked_count(where, name, value) for name, value in zip("mnk", (m, n, k), strict=True))
    room = checked_count(where, "capacity_words", capacity_words)
    # ⌈2mnk/√S⌉ in integers: √((2mnk)²/S), rounded up.
    square = -(-((2 * m * n * k) ** 2) // room)
    root = math.isqrt(square)
    root += root * root < square
    return max(m * k + k * n + m * n, root - 2 * room)
