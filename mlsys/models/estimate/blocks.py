"""Block sizes that libraries have for batched products in FP32."""

import numpy as np
from numpy.typing import NDArray

from mlsys.hardware import Device
from mlsys.models.estimate.work import MATMUL, Work

Array = NDArray[np.float64]
Tiles = tuple[tuple[int, int], ...]

# Rows and columns of cuBLAS's tiles for batched FP32 products on vector units, by the first word of an architecture's
# name; other machines use any tile. NeuSight's profiles of PyTorch 2.1 name the kernel and the grid of 102,000 products
# (sitar-lab/NeuSight, scripts/asplos/data/dataset/train/collect/bmm and test/bmm.csv@6945927d9; columns come first in a
# name): one tile on Pascal, Ampere and Ada, three on Volta and on Turing, these and a few of 256 x 64 on Hopper.
# Neither alignment nor the depth of the sum matters.
BATCHED_TILES: dict[str, Tiles] = {
    "Pascal": ((64, 128),),
    "Volta": ((64, 64), (128, 32), (32, 128)),
    "Turing": ((64, 128), (64, 64), (32, 128)),
    "Ampere": ((128, 128),),
    "Ada": ((128, 128),),
    "Hopper": ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (128, 32), (32, 128), (32, 32)),
}
# Multiplications that take as long as loading one operand value for a whole block: the higher this number, the slower
# small blocks. Relative to 128 x 128, in the same profiles, 64 x 64 attains 0.84 on a V100 and 0.95 on an A100, 64 x
# 128 0.94 and 0.98. A unit of 128 lanes multiplies twice while it loads a value: 0.74 and 0.85 on an H100.
LOADED = 10.0
# Additional reduction steps lost by a 128-lane unit, relative to a 64-lane unit, while a block of a batch starts and
# ends: an H100's rate falls from 0.75 of its peak to 0.50 and 0.56 at sums of 64 and 128 (scripts/asplos/label), a
# V100's and an A100's by a tenth.
STARTED, TWICE_AS_WIDE = 20.0, ("Ada", "Hopper")
# Reference tile of the rates, in which large layers (``nn.Linear``) run, and the tile used instead on some machines:
# for nearly all layers of a millisecond on a P100, and most on an A100 (collect/linear).
USUAL_TILE = (128.0, 128.0)
LAYER_TILES = {"Pascal": (128.0, 32.0), "Ampere": (64.0, 128.0)}
# Slow-down where rows along the sum are not aligned to a cache line (bytes), on machines whose threads copy operands
# through registers; later ones bypass them (cp.async). In these profiles 1.06 to 1.1 on a P100 and a V100, 1.2 on a T4,
# 1 on an A100; for batches, whose second operand is transposed, 1 on all.
LINE, ACROSS_LINES, BEFORE_COPIES = 128, 1.1, ("Pascal", "Volta", "Turing")


def batched_tiles(twin: Device) -> Tiles:
    """Return the tiles (rows, columns) that a machine has for batched FP32 products; empty where any tile is used.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> batched_tiles(Hardware["P100_PCIe"]), batched_tiles(Hardware["MI210"])
    (((64, 128),), ())
    """
    return next((tiles for name, tiles in BATCHED_TILES.items() if twin.architecture.startswith(name)), ())


def batched_blocks(m: Array, n: Array, tiles: Tiles, loaded: float = LOADED) -> tuple[Array, Array, Array]:
    """Return the blocks in which batched products run: those of the tile with the least total time.

    Parameters
    ----------
    m, n
        Rows and columns of each product.
    tiles
        As returned by :func:`batched_tiles`; at least one.
    loaded
        Multiplications that take as long as loading one value.

    Returns
    -------
    rows, columns, slower
        Block size of each product, and its time per multiplication relative to blocks of 128 × 128.

    Examples
    --------
    >>> rows, columns, slower = batched_blocks(np.array([100.0, 27.0]), np.array([27.0, 100.0]), BATCHED_TILES["Volta"])
    >>> rows.tolist(), columns.tolist(), slower.round(2).tolist()
    ([128.0, 32.0], [32.0, 128.0], [1.2, 1.2])
    """
    rows, columns = np.array(tiles, dtype=float).T[:, :, None]
    each = _slower(rows, columns, loaded)
    taken = (np.ceil(m / rows) * rows * np.ceil(n / columns) * columns * each).argmin(axis=0)
    return rows[taken, 0], columns[taken, 0], each[taken, 0]


def _slower(rows: Array, columns: Array, loaded: float) -> Array:
    return (1 + loaded * (1 / rows + 1 / columns)) / (1 + loaded * sum(1 / side for side in USUAL_TILE))


def layer_slower(twin: Device, depth: float = 0.0) -> float:
    """Return the time per multiplication of a large FP32 layer, relative to blocks of 128 × 128.

    Parameters
    ----------
    twin
        The device whose vector units run it.
    depth
        Values in a row of either operand, along the sum.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> [round(layer_slower(Hardware[name], 1000), 2) for name in ("P100_PCIe", "V100_PCIe_32GB", "A100")]
    [1.32, 1.1, 1.07]
    """
    tile = next((tile for name, tile in LAYER_TILES.items() if twin.architecture.startswith(name)), USUAL_TILE)
    across = 4 * depth % LINE > 0 and twin.architecture.startswith(BEFORE_COPIES)
    rows, columns = np.array(tile)
    return float(_slower(rows, columns, LOADED)) * (ACROSS_LINES if across else 1.0)


def in_blocks(work: Work, twin: Device, computes: str) -> Work:
    """Return kernels with the products of layers and of unfused attention assigned to cuBLAS's block sizes.

    Parameters
    ----------
    work
        Kernels.
    twin
        The device whose vector units run them.
    computes
        The format they compute in.
    """
    if computes != "fp32":
        return work
    tiles, product = batched_tiles(twin), work["kind"] == MATMUL
    here = product & (work["batch"] > 1) & (work["weights"] == 0)
    k = np.where(product & ~here, layer_slower(twin), 1.0) * work["k"]
    fields = [k if name == "k" else work[name] for name in Work.FIELDS]
    if not tiles or not here.any():
        return Work(np.array(fields))
    wide = 2.0 if twin.architecture.startswith(TWICE_AS_WIDE) else 1.0
    rows, columns, slower = batched_blocks(work["m"], work["n"], tiles, wide * LOADED)
    changed = {
        "m": np.ceil(work["m"] / rows) * rows, "n": np.ceil(work["n"] / columns) * columns,
        "k": slower * work["k"] + (wide - 1) * STARTED,
        "block_rows": rows, "block_columns": columns,
    }  # fmt: skip
    fields = [np.where(here, changed.get(name, own), own) for name, own in zip(Work.FIELDS, fields, strict=True)]
    return Work(np.array(fields))
