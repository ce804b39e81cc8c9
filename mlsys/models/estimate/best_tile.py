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
AT_ONCE = 512  # products evaluated together: larger chunks would not fit in the CPU's cache
# Rows that stream past one set of weights in a systolic array before the next set is loaded.
STREAMED = 512.0
# Launch of the second kernel that sums a split reduction, in seconds.
SECOND_KERNEL = 2e-6

_OF_PRODUCTS = (
    "m", "n", "k", "batch", "units", "array", "shared", "feed", "rate", "supply", "width", "tall", "chain", "splits",
    "ramp", "team", "threads", "block_rows", "block_columns", "alone",
)  # fmt: skip


def at_best_tiles(columns: dict[str, Array]) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the seconds of products at their best tiles, and whether operands or instruction latency limit them.

    Parameters
    ----------
    columns
        Numbers of the products, of shape (products,): their shape, the rates of their machines and their block costs.
    """
    products = np.array([columns[name] for name in _OF_PRODUCTS])
    first, which = distinct_columns(products)  # half of the layers of a network, over several settings, are repeats
    rows = products[:, first]
    pieces = [_at_best_tile(rows[:, at : at + AT_ONCE].tobytes()) for at in range(0, rows.shape[1], AT_ONCE)]
    none = np.zeros(0, dtype=bool)
    times, waits, chained = zip(*pieces, strict=True) if pieces else ([np.zeros(0)], [none], [none])
    return np.concatenate(times)[which], np.concatenate(waits)[which], np.concatenate(chained)[which]


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
    fixed = array > 1
    offered = np.full(len(ALL_TILES), (shared > 1).any()) | (ALL_TILES.prod(axis=1) <= LARGEST_ALONE)
    tile_m, tile_n = ALL_TILES[offered].T[:, :, None]  # shape (tiles, 1); arrays below: (tiles, products)
    rows = np.where(fixed, np.minimum(np.ceil(m / 8) * 8, STREAMED), tile_m)
    columns = np.where(fixed, array, tile_n)
    allowed = (shared > 1) | (tile_m * tile_n <= LARGEST_ALONE) | fixed
    own_blocks = products["block_rows"] > 0
    allowed &= (tile_m >= products["block_rows"]) & (tile_n >= products["block_columns"])
    allowed &= own_blocks | ~NARROW[offered]
    apart = np.ceil(m / rows) * products["batch"]
    blocks = apart * np.ceil(n / columns)
    # Split-K is either off or as high as fills the units.
    most = np.where(own_blocks, 1.0, products["splits"])
    fill = np.clip(np.ldexp(1.0, np.frexp(np.maximum(units / blocks, 1.0))[1] - 1), 1.0, most)
    whole = _spent(products, rows, columns, apart, blocks, None)
    # Only tilings with few blocks leave units idle; for all others, split and whole blocks are the same.
    tile, product = np.nonzero(allowed & (fill > 1))
    here = tile, product
    some = {name: values[product] for name, values in products.items()}
    split = _spent(some, rows[here], columns[here], apart[here], blocks[here], fill[here])
    times, waits, chained = np.full((2, *allowed.shape), np.inf), *np.zeros((2, 2, *allowed.shape), dtype=bool)
    for kept, of_whole, of_split in zip((times, waits, chained), whole, split, strict=True):
        kept[0], kept[1][here] = of_whole, of_split
    times[0][~allowed] = np.inf
    times[np.isnan(times)] = np.inf
    # The first of the fastest is chosen: for each tile, whole blocks precede split ones.
    each = np.arange(len(m))
    flat = times.swapaxes(0, 1).reshape(-1, len(m))
    first = flat.argmin(axis=0)
    best = flat[first, each]
    taken = first % 2, first // 2, each
    finite = best < np.inf
    return best, finite & waits[taken], finite & chained[taken]


def _spent(
    products: dict[str, Array], rows: Array, columns: Array, apart: Array, blocks: Array, split: Array | None
) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the seconds of products in blocks of a given size, and whether operands or instruction latency limit them.

    Parameters
    ----------
    products
        Numbers of ``_OF_PRODUCTS``.
    rows, columns, apart, blocks
        Size of one block; number of blocks that share no rows; number of blocks.
    split
        Number of parts of each block's sum, above 1; None for unsplit blocks.
    """
    m, n, units, array, shared = (products[name] for name in ("m", "n", "units", "array", "shared"))
    feed, fixed, parts = products["feed"], array > 1, 1.0 if split is None else split
    own_blocks = products["block_rows"] > 0
    part = np.where(own_blocks & (blocks <= units), products["alone"], 1.0) if own_blocks.any() else 1.0
    depth = products["tall"] / parts
    arithmetic = 2 * rows * columns * (depth + products["ramp"]) / (part * products["rate"])
    feeding = (rows + columns) * depth * products["width"] / products["supply"]
    linked = products["chain"] * depth
    busy = np.maximum(arithmetic, feeding)
    inner = np.maximum(busy, linked)
    waves = np.ceil(blocks * parts / units)
    time = waves * inner
    if (products["threads"] > 1).any() or (products["team"] > 1).any():
        # Samples that are rows of one block have no threads of their own: all share that block's rows.
        team = np.maximum(products["team"], products["threads"] / apart)
        # Threads without a block do not make the other threads of their sample wait.
        time = time * waiting(team * blocks * parts / (waves * units))
    if split is None and (shared > 1).any():
        streamed = blocks / units * inner + 2 * units * rows * columns * 4 / feed
        time = np.where((shared > 1) & ~fixed & (blocks > units), np.minimum(time, streamed), time)
    elif split is not None:
        time = time + 2 * split * m * n * products["batch"] * 4 / feed + np.where(fixed, 0.0, SECOND_KERNEL)
    return time, (feeding > arithmetic) & (feeding >= linked), linked > busy
