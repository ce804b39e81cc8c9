"""The best block of a matrix product for a memory: fewest words moved, by a closed form per number of blocks.

Three blocks are held in the memory, (bm × bk) of the left operand, (bk × bn) of the right one and
(bm × bn) of results, double-buffered: while one set is in use, the next arrives or the last leaves.
The reduction is the innermost loop, so a sum stays until it is complete.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlsys.models.architecture.demand import Product

Size = TypeVar("Size", int, NDArray[Any])
# Double buffering: one buffer in use, one being filled.
BUFFERS = 2


class Block(NamedTuple):
    """A block size and its traffic.

    Attributes
    ----------
    m, n, k
        Sizes of a block.
    order
        Loops over blocks, outermost first: ``"mnk"`` or ``"nmk"``.
    words
        Words moved beyond the first pass over each operand, for all copies of the product.
    """

    m: int
    n: int
    k: int
    order: str
    words: float

    def counts(self, product: Product) -> tuple[int, int, int]:
        """Return the number of blocks along each dimension."""
        return -(-product.m // self.m), -(-product.n // self.n), -(-product.k // self.k)


def footprint(bm: Size, bn: Size, bk: Size) -> Size:
    """Return the words of three double-buffered blocks.

    Examples
    --------
    >>> footprint(104, 104, 104) * 4 <= 256 * 1024 < footprint(105, 105, 105) * 4
    True
    """
    words: Size = BUFFERS * (bm * bk + bk * bn + bm * bn)
    return words


def words_reread(product: Product, bm: Any, bn: Any, bk: Any, order: str) -> Any:
    """Return the words that blocks move beyond one pass over each operand, for all copies.

    Accepts scalars or arrays. The left operand is read again for each block of columns, the right one
    for each block of rows, unless it stays in place; a pass over the pixels of a convolution reads
    the rows shared by neighbouring blocks in each of them.

    Examples
    --------
    >>> words_reread(Product(1024, 1024, 1024, 1, 1024 * 1024, 0), 128, 128, 128, "mnk")
    14680064
    """
    tm, tn, tk = -(-product.m // bm), -(-product.n // bn), -(-product.k // bk)
    split = tk > 1
    if order == "mnk":
        left = np.where(split, tn, 1)
        right = np.where(split | (tn > 1), tm, 1)
    else:
        left = np.where(split | (tm > 1), tn, 1)
        right = np.where(split, tm, 1)
    one_pass = np.minimum(product.left + (tm - 1) * product.halo, product.m * product.k)
    words = left * one_pass - product.left + (right - 1) * (product.k * product.n)
    return product.copies * (words if np.ndim(words) else int(words))


@lru_cache(maxsize=4096)
def _sizes(length: int) -> NDArray[np.int64]:
    """Return the smallest block size for every number of blocks, in descending order."""
    root = math.isqrt(length)
    few = -(-length // np.arange(1, root + 2, dtype=np.int64))
    small = np.arange(min(root + 1, int(few[-1])), 0, -1, dtype=np.int64)
    sizes = np.unique(np.concatenate([few, small]))[::-1]
    sizes.flags.writeable = False
    return sizes


@lru_cache(maxsize=1 << 16)
def fewest_words(
    product: Product,
    words: float,
    steps: tuple[int, ...],
    *,
    at_least: tuple[int, int] = (1, 1),
) -> Block | None:
    """Return the block that moves the fewest words through a memory, or None if none fits.

    Parameters
    ----------
    product
        The matrix product.
    words
        Capacity in words for all blocks, both buffers.
    steps
        Allowed block lengths along the reduction; the whole reduction is always allowed.
    at_least
        Minimum rows and columns of results in a block, unless the product has fewer.

    Notes
    -----
    For a given number of row blocks the smallest such block leaves the most space for columns, and
    more columns mean fewer words, so one candidate per number of row blocks is enough.

    Examples
    --------
    >>> fewest_words(Product(512, 512, 512, 1, 512 * 512, 0), 65536, (16,))
    Block(m=256, n=103, k=16, order='mnk', words=1310720)
    """
    shortest = min(product.m, at_least[0])
    rows = _sizes(product.m)
    rows = np.append(rows[rows > shortest], shortest)
    least = min(product.n, at_least[1])
    best: Block | None = None
    key: tuple[float, int] = (math.inf, 0)
    for bk in dict.fromkeys(min(product.k, step) for step in (*steps, product.k)):
        columns = np.minimum((words / BUFFERS - rows * bk) // (rows + bk), product.n).astype(np.int64)
        fits = columns >= least
        if not fits.any():
            continue
        bm, columns = rows[fits], columns[fits]
        tn = -(-product.n // columns)
        bn = np.maximum(-(-product.n // tn), least)
        blocks = -(-product.m // bm) * -(-product.n // bn) * -(-product.k // bk)
        for order in product.orders:
            moved = words_reread(product, bm, bn, bk, order)
            least_moved = moved.min()
            if least_moved > key[0]:
                continue
            here = np.flatnonzero(moved == least_moved)
            index = int(here[np.argmin(blocks[here])])
            rank = (float(least_moved), int(blocks[index]))
            if rank < key:
                key, best = rank, Block(int(bm[index]), int(bn[index]), bk, order, int(moved[index]))
    return best


def cube_edge(m: int, n: int, k: int, words: float, depth: int | None = None) -> int:
    """Return the edge of the largest cube whose double-buffered blocks, clipped to the product, fit; 0 if none.

    ``depth`` fixes the third edge; by default it is that of the cube.

    Examples
    --------
    >>> [cube_edge(4096, 4096, 4096, size * 1024 // 4) for size in (256, 512)]
    [104, 147]
    >>> cube_edge(1, 4096, 4096, 512 * 1024 // 4)  # one row leaves room for a larger block of weights
    255
    """

    def fits(edge: int) -> bool:
        return bool(footprint(min(edge, m), min(edge, n), min(depth or edge, k)) <= words)

    low, high = 0, max(m, n, k if depth is None else 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


@lru_cache(maxsize=1 << 16)
def cubes(product: Product, words: float) -> Block | None:
    """Return the largest cube that fits, clipped to the product, in the better loop order; None if none fits.

    Attention may also keep the whole depth of keys and values if that moves less.

    Examples
    --------
    >>> cubes(Product(1024, 1024, 1024, 1, 1024 * 1024, 0), 65536)
    Block(m=104, n=104, k=104, order='mnk', words=18874368)
    """
    blocks: list[Block] = []
    for depth in (None, product.k) if len(product.orders) == 1 else (None,):
        edge = cube_edge(product.m, product.n, product.k, words, depth)
        if edge:
            bm, bn, bk = min(edge, product.m), min(edge, product.n), min(depth or edge, product.k)
            blocks += [Block(bm, bn, bk, order, words_reread(product, bm, bn, bk, order)) for order in product.orders]
    return min(blocks, key=lambda block: block.words, default=None)
