"""Blocks of the few sizes that a library has for batched products in FP32."""

import numpy as np
from numpy.typing import NDArray

from mlsys.hardware import Device
from mlsys.models.estimate.work import MATMUL, Work

Array = NDArray[np.float64]
Tiles = tuple[tuple[int, int], ...]

# Rows and columns of the tiles that cuBLAS has for batched products of FP32 on vector units, by the beginning of an
# architecture's name; machines of others take any. NeuSight's profiles of PyTorch 2.1 name the kernel and the grid of
# 102,000 of them (sitar-lab/NeuSight, scripts/asplos/data/dataset/train/collect/bmm and test/bmm.csv@6945927d9; columns
# come first in a name): one tile on Pascal, Ampere and Ada, three on Volta and on Turing, these and a few of 256 x 64
# on Hopper. Neither alignment nor the depth of the sum has a say.
BATCHED_TILES: dict[str, Tiles] = {
    "Pascal": ((64, 128),),
    "Volta": ((64, 64), (128, 32), (32, 128)),
    "Turing": ((64, 128), (64, 64), (32, 128)),
    "Ampere": ((128, 128),),
    "Ada": ((128, 128),),
    "Hopper": ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (128, 32), (32, 128), (32, 32)),
}
# Multiplications that take as long as one value of an operand, loaded for a whole block: with more of them, smaller
# blocks are slower. Of the rate of 128 x 128 in the same profiles 64 x 64 attain 0.84 on a V100 and 0.95 on an A100,
# 64 x 128 0.94 and 0.98. A unit of 128 lanes multiplies twice while it loads a value: 0.74 and 0.85 on an H100.
LOADED = 10.0
# Steps that such a unit could have done while a block of a batch starts and ends, beyond those that one of 64 lanes
# could: an H100's rate falls from 0.75 of its peak to 0.50 and 0.56 at sums of 64 and 128 (scripts/asplos/label), a
# V100's and an A100's by a tenth.
STARTED, TWICE_AS_WIDE = 20.0, ("Ada", "Hopper")
# Rows and columns of the tile that rates are told of, in which large layers (``nn.Linear``) run, and of the one in
# which they do where it is another: nearly all of a millisecond on a P100, and most on an A100 (collect/linear).
USUAL_TILE = (128.0, 128.0)
LAYER_TILES = {"Pascal": (128.0, 32.0), "Ampere": (64.0, 128.0)}
# How many times as long it takes where the rows along the sum do not begin with a line of the cache, byte, on machines
# whose threads take an operand through their registers; later ones copy it past them (cp.async). In these profiles 1.06
# to 1.1 on a P100 and a V100, 1.2 on a T4, 1 on an A100; of batches, whose second operand lies across, on none.
LINE, ACROSS_LINES, BEFORE_COPIES = 128, 1.1, ("Pascal", "Volta", "Turing")


def batched_tiles(twin: Device) -> Tiles:
    """Return rows and columns of the tiles that a machine has for batched products of FP32; none where any are taken.

    Examples
    --------
    >>> from mlsys.hardware import Hardware
    >>> batched_tiles(Hardware["P100_PCIe"]), batched_tiles(Hardware["MI210"])
    (((64, 128),), ())
    """
    return next((tiles for name, tiles in BATCHED_TILES.items() if twin.architecture.startswith(name)), ())


def batched_blocks(m: Array, n: Array, tiles: Tiles, loaded: float = LOADED) -> tuple[Array, Array, Array]:
    """Return the blocks in which batched products run: of the tile that takes the least time in all.

    Parameters
    ----------
    m, n
        Rows and columns of each product.
    tiles
        As :func:`batched_tiles` returns them; one at least.
    loaded
        Multiplications that take as long as loading one value.

    Returns
    -------
    rows, columns, slower
        Of each product's blocks, and how many times as long as in blocks of 128 × 128 a multiplication takes.

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
    """Return how many times as long as in blocks of 128 × 128 a multiplication of a large layer in FP32 takes.

    Parameters
    ----------
    twin
        Whose vector units run it.
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
    """Return kernels whose products, of layers and of attention written out or alone, run in the blocks of cuBLAS.

    Parameters
    ----------
    work
        Kernels.
    twin
        Whose vector units run them.
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
