"""The best tile of a matrix product: an exhaustive search over library tiles, with and without split-K."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mlsys.models.estimate.dedupe import distinct_columns
from mlsys.models.estimate.thread_scaling import waiting

Array = NDArray[np.float64]

# Tiles that matrix libraries offer, rows × columns of the output.
TILES = (
    (256, 256),
    (256, 128),
    (128, 256),
    (128, 128),
    (128, 64),
    (64, 128),
    (64, 64),
    (64, 32),
    (32, 64),
    (32, 32),
    (16, 16),
)
LARGEST_ALONE = 256 * 128
SMALL_TILES = ((16, 16), (8, 8), (4, 8), (1, 8))
# Two more tiles for kernels with a known smallest block (cuDNN's scudnn_128x32; cuBLAS's of either side in batches).
NARROW_TILES = ((128, 32), (32, 128))
ALL_TILES = np.array((*TILES, *SMALL_TILES, *NARROW_TILES), dtype=float)
NARROW = np.arange(len(ALL_TILES))[:, None] >= len(TILES) + len(SMALL_TILES)
AT_ONCE = 2048  # products evaluated together: larger chunks would not fit in the CPU's cache
# Rows that stream past one set of weights in a systolic array before the next set is loaded.
STREAMED = 512.0
# Launch of the second kernel that sums a split reduction, in seconds.
SECOND_KERNEL = 2e-6

_OF_PRODUCTS = (
    "m", "n", "k", "batch", "units", "array", "shared", "feed", "rate", "supply", "width", "tall", "chain", "splits",
    "ramp", "team", "threads", "block_rows", "block_columns", "alone",
)  # fmt: skip

# Of these the time of split blocks depends on; kernels with blocks of their own split no sum.
_OF_SPLITS = tuple(name for name in _OF_PRODUCTS if name not in ("block_columns", "alone"))


def at_best_tiles(columns: dict[str, Array]) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the seconds of products at their best tiles, and whether operands or instruction latency limit them.

    Parameters
    ----------
    columns
        Numbers of the products, of shape (products,): their shape, the rates of their machines and their block costs.
    """
    products = np.array([columns[name] for name in _OF_PRODUCTS])
    first, which = distinct_columns(products)  # half of the layers of a network, over several settings, are repeats
    first, which = _by_kind(products, first, which)
    rows = products[:, first]
    pieces = [_at_best_tile(rows[:, at : at + AT_ONCE].tobytes()) for at in range(0, rows.shape[1], AT_ONCE)]
    none = np.zeros(0, dtype=bool)
    times, waits, chained = zip(*pieces, strict=True) if pieces else ([np.zeros(0)], [none], [none])
    return np.concatenate(times)[which], np.concatenate(waits)[which], np.concatenate(chained)[which]


def _by_kind(
    products: Array, first: NDArray[np.intp], which: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return distinct columns ordered by kind of machine, so that a chunk needs few of the laws."""
    array, shared, team, threads, block = (
        products[_OF_PRODUCTS.index(name), first] > 1 for name in ("array", "shared", "team", "threads", "block_rows")
    )
    order = np.argsort(16 * array + 8 * shared + 4 * (team | threads) + block, kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return first[order], places[which]


@lru_cache(maxsize=64)  # a fit changes one parameter at a time, and half of them leave the products unchanged
def _at_best_tile(numbers: bytes) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the result of :func:`at_best_tiles` for one chunk of products; all tiles are tried at once.

    Parameters
    ----------
    numbers
        The products as the bytes of an array, with one row for each of ``_OF_PRODUCTS``.
    """
    products = dict(zip(_OF_PRODUCTS, np.frombuffer(numbers).reshape(len(_OF_PRODUCTS), -1), strict=True))
    m, n, units, array, shared = (products[name] for name in ("m", "n", "units", "array", "shared"))
    fixed, own_blocks = array > 1, products["block_rows"] > 0
    offered = np.full(len(ALL_TILES), (shared > 1).any()) | (ALL_TILES.prod(axis=1) <= LARGEST_ALONE)
    offered &= own_blocks.any() | ~NARROW[:, 0]
    rows, columns = ALL_TILES[offered].T[:, :, None]  # shape (tiles, 1); arrays below: (tiles, products)
    allowed = (shared > 1) | (rows * columns <= LARGEST_ALONE) | fixed
    if own_blocks.any():
        allowed &= (rows >= products["block_rows"]) & (columns >= products["block_columns"])
        allowed &= own_blocks | ~NARROW[offered]
    if fixed.any():
        rows = np.where(fixed, np.minimum(np.ceil(m / 8) * 8, STREAMED), rows)
        columns = np.where(fixed, array, columns)
    row_blocks = np.ceil(m / rows) * products["batch"]
    blocks = row_blocks * np.ceil(n / columns)
    whole = np.where(allowed, _spent(products, rows, columns, row_blocks, blocks, None), np.inf)
    each, best, parts = np.arange(len(m)), _fastest(whole), np.ones(len(m))
    # Split-K is either off or as high as fills the units; only tilings with few blocks leave units idle.
    here = np.nonzero(allowed & (2 * blocks <= units) & ~own_blocks & (products["splits"] > 1))
    if len(here[0]):
        some = {name: products[name][here[1]] for name in _OF_SPLITS}
        tall, wide = (np.broadcast_to(size, blocks.shape)[here] for size in (rows, columns))
        fill = np.clip(np.ldexp(1.0, np.frexp(some["units"] / blocks[here])[1] - 1), 1.0, some["splits"])
        split, filled = np.full(blocks.shape, np.inf), np.ones(blocks.shape)
        split[here], filled[here] = _spent(some, tall, wide, row_blocks[here], blocks[here], fill), fill
        tile, seconds = _fastest(split)
        # The first of the fastest is chosen: for each tile, whole blocks precede split ones.
        quicker = (seconds < best[1]) | ((seconds == best[1]) & (tile < best[0]))
        best = np.where(quicker, tile, best[0]), np.where(quicker, seconds, best[1])
        parts = np.where(quicker, filled[tile, each], parts)
    tall, wide = (np.broadcast_to(size, blocks.shape)[best[0], each] for size in (rows, columns))
    arithmetic, feeding, linked = _phases(products, tall, wide, blocks[best[0], each], parts)
    finite = best[1] < np.inf
    waits = finite & (feeding > arithmetic) & (feeding >= linked)
    return best[1], waits, finite & (linked > np.maximum(arithmetic, feeding))


def _fastest(seconds: Array) -> tuple[NDArray[np.intp], Array]:
    """Return the first of the fastest tiles of each product, and its seconds."""
    seconds[np.isnan(seconds)] = np.inf
    tile = seconds.argmin(axis=0)
    return tile, seconds[tile, np.arange(seconds.shape[1])]


def _phases(
    products: dict[str, Array], rows: Array, columns: Array, blocks: Array, parts: Array | float
) -> tuple[Array, Array, Array]:
    """Return the seconds of a block's arithmetic, of the delivery of its operands and of its chain of instructions."""
    depth = products["tall"] / parts
    arithmetic = rows * columns * (2 * (depth + products["ramp"]) / products["rate"])
    own_blocks = products["block_rows"] > 0
    if own_blocks.any():
        arithmetic = arithmetic / np.where(own_blocks & (blocks <= products["units"]), products["alone"], 1.0)
    return arithmetic, (rows + columns) * (depth * products["width"] / products["supply"]), products["chain"] * depth


def _spent(
    products: dict[str, Array], rows: Array, columns: Array, row_blocks: Array, blocks: Array, split: Array | None
) -> Array:
    """Return the seconds of products in blocks of a given size.

    Parameters
    ----------
    products
        Numbers of ``_OF_PRODUCTS``.
    rows, columns, row_blocks, blocks
        Size of one block; number of blocks that share no rows; number of blocks.
    split
        Number of parts of each block's sum, above 1; None for unsplit blocks.
    """
    m, n, units, array, shared = (products[name] for name in ("m", "n", "units", "array", "shared"))
    feed, fixed, parts = products["feed"], array > 1, 1.0 if split is None else split
    arithmetic, feeding, linked = _phases(products, rows, columns, blocks, parts)
    inner = np.maximum(np.maximum(arithmetic, feeding), linked)
    waves = np.ceil(blocks * parts / units)
    time = waves * inner
    if (products["threads"] > 1).any() or (products["team"] > 1).any():
        # Samples that are rows of one block have no threads of their own: all share that block's rows.
        team = np.maximum(products["team"], products["threads"] / row_blocks)
        # Threads without a block do not make the other threads of their sample wait.
        time = time * waiting(team * blocks * parts / (waves * units))
    if split is None and (shared > 1).any():
        streamed = blocks / units * inner + rows * columns * (2 * units * 4 / feed)
        time = np.where((shared > 1) & ~fixed & (blocks > units), np.minimum(time, streamed), time)
    elif split is not None:
        time = time + 2 * split * m * n * products["batch"] * 4 / feed + np.where(fixed, 0.0, SECOND_KERNEL)
    return time
