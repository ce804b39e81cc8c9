"""Alignment, padding and compressed operands: what a size that does not fit a tile, or a sparse matrix, changes."""

from mlsys.unit_checks import count, fraction, positive, quantity_function


@quantity_function("", size=count(), tile=count())
def padded_size(size: int, tile: int) -> int:
    r"""Return the size after padding to a whole number of tiles, :math:`T \lceil n/T \rceil`.

    Parameters
    ----------
    size
        Size *n* >= 1.
    tile
        Edge *T* >= 1 of a tile, or the multiple that alignment asks for.

    Examples
    --------
    >>> print(f"{padded_size(500, 64):d}")
    512
    """
    return -(-size // tile) * tile


@quantity_function("", size=count(), tile=count())
def padded_efficiency(size: int, tile: int) -> float:
    r"""Return the fraction of the padded work that is useful, :math:`n / (T \lceil n/T \rceil)`.

    Parameters
    ----------
    size
        Size *n* >= 1.
    tile
        Edge *T* >= 1 of a tile.

    Examples
    --------
    >>> print(f"{padded_efficiency(500, 64):.4f} {padded_efficiency(129, 128):.4f}")
    0.9766 0.5039
    """
    return size / (-(-size // tile) * tile)


@quantity_function("", element_size=positive("byte"), alignment=positive("byte"))
def aligned_elements(element_size: float, alignment: float) -> float:
    """Return the number of elements of which a dimension should be a multiple, so that each row starts aligned.

    Parameters
    ----------
    element_size
        Bytes of an element.
    alignment
        Alignment of the start of a row, bytes: 16 for tensor cores.

    References
    ----------
    NVIDIA, Matrix Multiplication Background User's Guide, section 4: multiples of 16 bytes.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{aligned_elements(Q_(2, 'byte'), Q_(16, 'byte')):g}")
    8
    """
    return alignment / element_size


@quantity_function(
    "FLOP/byte", m=count(), n=count(), k=count(), element_size=positive("byte"), stored_fraction=fraction()
)
def compressed_gemm_intensity(m: int, n: int, k: int, element_size: float, stored_fraction: float) -> float:
    """Return the FLOP of a dense GEMM over the bytes moved when one operand is stored compressed.

    Parameters
    ----------
    m, n, k
        Sizes of the product; the operand of size k × n is compressed.
    element_size
        Bytes of an element.
    stored_fraction
        Stored over dense bytes of that operand, such as 0.5625 for 2:4 in 16 bits.

    Returns
    -------
    Quantity
        FLOP/byte; the FLOP are those of the dense product.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{compressed_gemm_intensity(256, 4096, 4096, Q_(2, 'byte'), 0.5625):.1f}")
    372.4 FLOP/B
    """
    return 2 * m * n * k / ((m * k + stored_fraction * k * n + m * n) * element_size)
