"""Which rows pay for copies from one layout to another: PyTorch's, one layer at a time."""

import re
from collections.abc import Callable

from mlsys.models.calibrated import Snapshot, Work
from mlsys.models.calibrated.layouts import BLOCKS, HEADS, copied_beside, layout_copies
from mlsys.validation.cases.reading import Format
from mlsys.validation.rows import Row
from mlsys.workloads import Network

# timm writes the first two fully connected layers of VGG as convolutions (``ConvMlp`` of timm/models/vgg.py).
TIMM, AS_CONVOLUTIONS = "huggingface/pytorch-image-models", ("linear", "linear_1")


def copies(row: Row, setting: str, network: Callable[[], Network], fmt: Format, engine: Snapshot, batch: int) -> Work:
    """Return the copies that a program makes beside one pass over a network, so that its library's kernels can read it.

    Of the pairs that timm's tables have on one card, planes take 1.15 to 1.25 times as long as pixels forward, 1.2 to
    1.5 times in training. Programs that draw pictures mostly ask for pixels, and pay for no copies.

    Parameters
    ----------
    row, setting
        The program.
    network
        Builds it for one sample in FP16, with nothing fused.
    fmt, engine, batch
        How it runs.
    """
    kind = copied_beside(setting, engine) if re.search("PyTorch|TensorFlow", row.software) else ""
    if kind == BLOCKS:
        written_so = AS_CONVOLUTIONS if row.source == TIMM and row.model.startswith("vgg") else ()
        return layout_copies(kind, network(), fmt, written_so).work
    if not kind or (fmt.vector_unit and kind != HEADS) or re.search("NHWC|channels.last", f"{row.software} {row.note}"):
        return Work.of([])
    columns = layout_copies(kind, network(), fmt).work.columns
    columns[Work.FIELDS.index("moved")] *= batch
    return Work(columns)
