"""Which rows pay for copies from one layout to another: PyTorch's, one layer at a time."""

from collections.abc import Mapping
from functools import lru_cache

from mlsys.models.estimate import Snapshot, Work
from mlsys.models.estimate.layouts import BLOCKS, HEADS, copied_beside, layout_copies
from mlsys.models.estimate.lowering import Format
from mlsys.models.estimate.work import NO_WORK
from mlsys_evidence.questions.network_lookup import unfused
from mlsys_evidence.typed_rows import TypedRow

# Fully connected layers that some code of VGG writes as convolutions.
AS_CONVOLUTIONS = ("linear", "linear_1")


def copies(row: TypedRow, setting: str, shape: Mapping[str, int], fmt: Format, engine: Snapshot, batch: int) -> Work:
    """Return the copies that a program makes beside one pass over a network, so that its library's kernels can read it.

    Of the pairs that timm's tables have on one card, planes take 1.15 to 1.25 times as long as pixels forward, 1.2 to
    1.5 times in training. Programs that draw pictures mostly ask for pixels, and pay for no copies.

    Parameters
    ----------
    row, setting
        The program.
    shape
        Of one sample, as :func:`~mlsys_evidence.questions.networks.shape_of` returns it.
    fmt, engine, batch
        How it runs.
    """
    kind = copied_beside(setting, engine) if row.has("PyTorch") or row.has("TensorFlow") else ""
    sizes = tuple(sorted(shape.items()))
    if kind == BLOCKS:
        written_so = AS_CONVOLUTIONS if row.has("linear as convolutions") else ()
        return _copies(kind, row.network, sizes, fmt, written_so)
    if not kind or (fmt.vector_unit and kind != HEADS) or row.has("channels last"):
        return NO_WORK
    single = _copies(kind, row.network, sizes, fmt)
    return single.changed(moved=batch * single["moved"])


@lru_cache(maxsize=1024)
def _copies(
    kind: str, name: str, sizes: tuple[tuple[str, int], ...], fmt: Format, others: tuple[str, ...] = ()
) -> Work:
    single = layout_copies(kind, unfused(name, dict(sizes)), fmt, others).work
    single.columns.flags.writeable = False  # it is kept, and rows share it
    return single
