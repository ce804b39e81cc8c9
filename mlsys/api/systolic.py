"""``mlsys.systolic``: cycles and accesses of a matrix product on a systolic array."""

from mlsys.choices import Convention, FoldOverlap, Stationary
from mlsys.errors import ArgumentError
from mlsys.faults import short
from mlsys.models.systolic import ArrayCounts, count_systolic
from mlsys.unit_checks import checked_count

SRAM_KIB = 64
"""Default size of each buffer, KiB."""


def systolic(
    m: int,
    n: int,
    k: int,
    array: tuple[int, int] = (128, 128),
    dataflow: Stationary = "ws",
    *,
    convention: Convention = "physical",
    fold_overlap: FoldOverlap = "none",
    sram: int = SRAM_KIB,
) -> ArrayCounts:
    """Return the cycles and accesses of an (m × k) by (k × n) product, as the command ``mlsys systolic`` does.

    Parameters
    ----------
    m, n, k
        Sizes of the product.
    array
        Rows and columns of the array.
    dataflow, convention, fold_overlap
        As for :func:`mlsys.models.systolic.count_systolic`.
    sram
        Size of each of the three buffers, KiB; a word is one byte.

    Returns
    -------
    ArrayCounts
        Its ``record()`` is printed by ``mlsys systolic --json``.

    Raises
    ------
    ArgumentError
        If a size is not a whole number above zero.
    UnknownNameError
        For an unknown dataflow, convention or overlap of folds.

    See Also
    --------
    mlsys.models.systolic.systolic : The time of a workload on the array of a device.

    Examples
    --------
    >>> counts = systolic(512, 512, 512)
    >>> counts.cycles, counts.record()["dram_ifmap_reads"]
    (14304, 1048576)
    """
    if not isinstance(array, (tuple, list)) or len(array) != 2:
        raise ArgumentError(f"systolic(): `array` must be rows and columns, such as (128, 128), got {short(array)}")
    checked_count("systolic", "sram", sram)
    words = sram * 1024
    return count_systolic(
        m, n, k, *array, dataflow, convention=convention, fold_overlap=fold_overlap, ifmap_words=words,
        filter_words=words, ofmap_words=words,
    )  # fmt: skip
