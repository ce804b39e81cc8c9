"""The time of a blocked matrix product on a device, from the words that its tiles move."""

from dataclasses import dataclass, replace

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.mapping import Mapping
from mlsys.models.result import Result
from mlsys.models.roofline import roofline
from mlsys.models.tiling.capacity import checked_buffers, gemm_tile_words, largest_square_tile
from mlsys.models.tiling.traffic import gemm_tile, gemm_traffic, loop_order
from mlsys.precision import element_size
from mlsys.provenance import Step, traced
from mlsys.unit_checks import check_types
from mlsys.units import Q_, computed, ureg
from mlsys.workloads.operator import Operator

_BYTE = ureg.Unit("byte")


@dataclass(frozen=True)
class Tiling:
    """Tiling of a matrix product: tile, memory level, buffering and loop order.

    Attributes
    ----------
    tile
        Edge of a cube, or (tm, tn, tk).
    level
        Memory level of the device that holds the tiles.
    buffers
        1, or 2 for double buffering: the next tiles arrive while these are used, and only
        then do computation and data movement overlap.
    order
        Loops over tiles, outermost first.

    Examples
    --------
    >>> Tiling(64, "L1").tile
    (64, 64, 64)
    """

    tile: int | tuple[int, int, int]
    level: str
    buffers: int = 1
    order: str = "mnk"

    def __post_init__(self) -> None:
        object.__setattr__(self, "tile", gemm_tile("Tiling", self.tile))
        object.__setattr__(self, "buffers", checked_buffers("Tiling", self.buffers))
        loop_order("Tiling", self.order)


@traced
@check_types(
    device=(Device, "a device, such as Hardware.Cloud.A100"),
    mapping=(Tiling, "a tiling, such as Tiling(96, 'L1')"),
)
def tiled_gemm(device: Device, workload: Operator, mapping: Tiling) -> Result:
    """Return the time of a matrix product whose tiles move between main memory and one level.

    Parameters
    ----------
    device
        A device twin with a recorded capacity of ``mapping.level``.
    workload
        A product made by :func:`mlsys.workloads.gemm` or ``dense``.
    mapping
        Tile, level, buffering and order.

    Returns
    -------
    Result
        With ``parts`` *compute*, *exposed memory* and *launch*, and the figures of the
        roofline, whose bytes are those that the tiling moves.

    Raises
    ------
    ArgumentError
        If the tiles do not fit in the level, or the operator is not a matrix product.
    UnknownNameError
        If the device lacks the level, its capacity, or the precision.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads import gemm
    >>> a100, work = Hardware.Cloud.A100, gemm(4096, 4096, 4096)
    >>> for tiling in (Tiling(96, "L1", buffers=2), Tiling(1024, "L2", buffers=2)):
    ...     print(tiled_gemm(a100, work, tiling).bound_by)
    memory
    compute
    >>> tiled_gemm(a100, work, Tiling(256, "L1"))
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentError: tiled_gemm(): `mapping.tile` 256×256×256 needs 384 KiB in fp16, but L1 ... 164 KiB ...
    """
    if workload.kind != "gemm":
        raise ArgumentError(
            f"tiled_gemm(): `workload` must be a matrix product, got {workload.name!r} of kind {workload.kind!r}. "
            "Write e.g. workload=gemm(1024, 1024, 1024)"
        )
    size, capacity = element_size(workload.precision), device.level(mapping.level).usable
    needed = Q_(gemm_tile_words(mapping.tile, mapping.buffers) * size.m_as("byte"), "byte")
    if needed > capacity:
        tile = "×".join(map(str, gemm_tile("tiled_gemm", mapping.tile)))
        doubled = ", double-buffered," if mapping.buffers == 2 else ""
        fits = largest_square_tile(capacity, size, mapping.buffers)
        raise ArgumentError(
            f"tiled_gemm(): `mapping.tile` {tile}{doubled} needs {needed.to('KiB'):.4g} in {workload.precision}, "
            f"but {mapping.level} of {device.name} holds {capacity.to('KiB'):.4g} of tiles. Write e.g. tile={fits}"
        )
    shape = workload.shape
    traffic = gemm_traffic(shape["m"], shape["n"], shape["k"], mapping.tile, mapping.order)
    # Bytes depend on the tile only; the level merely has to hold it.
    cut = Step("tiled_gemm", (workload.operations,), ("operations",), against=capacity.facts)
    moved = replace(workload, data=computed(traffic.data(size).m_as("byte"), _BYTE, cut))
    result = roofline(device, moved, Mapping(overlap=mapping.buffers == 2))
    words = {
        f"{name} moved": computed(float(count) * size.m_as("byte"), _BYTE, cut)
        for name, count in traffic.by_operand.items()
    }
    return replace(
        result,
        model="tiled_gemm",
        figures=FrozenDict({**result.figures, "moved": moved.data, **words}),
        assumptions=(
            "the dense peak is reached",
            f"tiles of {mapping.tile} words in {mapping.level}, order {mapping.order}; levels between it and "
            f"{device.main_memory} save nothing",
            f"{device.main_memory} at its peak bandwidth",
            "double buffering: tiles move while units compute"
            if mapping.buffers == 2
            else "single buffering: units wait for their tiles",
        ),
    )
