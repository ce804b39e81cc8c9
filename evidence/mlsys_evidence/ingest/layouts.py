"""Which rows pay for copies from one layout to another: PyTorch's, one layer at a time."""

import re
from collections.abc import Mapping
from functools import lru_cache

from mlsys.calibration.rows import Row
from mlsys.models.estimate import Snapshot, Work
from mlsys.models.estimate.layouts import BLOCKS, HEADS, copied_beside, layout_copies
from mlsys.models.estimate.lowering import Format
from mlsys.models.estimate.work import NO_WORK
from mlsys_evidence.ingest.network_lookup import unfused

# timm writes the first two fully connected layers of VGG as convolutions (``ConvMlp`` of timm/models/vgg.py).
TIMM, AS_CONVOLUTIONS = "huggingface/pytorch-image-models", ("linear", "linear_1")


def copies(row: Row, setting: str, shape: Mapping[str, int], fmt: Format, engine: Snapshot, batch: int) -> Work:
    """Return the copies that a program makes beside one pass over a network, so that its library's kernels can read it.

    Of the pairs that timm's tables have on one card, planes take 1.15 to 1.25 times as long as pixels forward, 1.2 to
    1.5 times in training. Programs that draw pictures mostly ask for pixels, and pay for no copies.

    Parameters
    ----------
    row, setting
        The program.
    shape
        Of one sample, as :func:`~mlsys_evidence.ingest.networks.shape_of` returns it.
    fmt, engine, batch
        How it runs.
    """
    kind = copied_beside(setting, engine) if re.search("PyTorch|TensorFlow", row.software) else ""
    sizes = tuple(sorted(shape.items()))
    if kind == BLOCKS:
        written_so = AS_CONVOLUTIONS if row.source == TIMM and row.model.startswith("vgg") else ()
        return _copies(kind, row.model, sizes, fmt, written_so)
    if not kind or (fmt.vector_unit and kind != HEADS) or re.search("NHWC|channels.last", f"{row.software} {row.note}"):
        return NO_WORK
    single = _copies(kind, row.model, sizes, fmt)
    return single.changed(moved=batch * single["moved"])


@lru_cache(maxsize=1024)
def _copies(
    kind: str, name: str, sizes: tuple[tuple[str, int], ...], fmt: Format, others: tuple[str, ...] = ()
) -> Work:
    single = layout_copies(kind, unfused(name, dict(sizes)), fmt, others).work
    single.columns.flags.writeable = False  # it is kept, and rows share it
    return single
