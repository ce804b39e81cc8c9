"""Which rows pay for copies from one layout to another: PyTorch's, one layer at a time."""

import re
from collections.abc import Callable

from mlsys.models.calibrated import Snapshot, Work
from mlsys.models.calibrated.laws import MATRIX_UNITS
from mlsys.models.calibrated.layouts import blocked_weights, turned_kernels
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
    if "PyTorch" not in row.software:
        return Work.of([])
    if re.fullmatch(r"(eager|torch\.compile) network on CPU", setting):
        written_so = AS_CONVOLUTIONS if row.source == TIMM and row.model.startswith("vgg") else ()
        return blocked_weights(network(), fmt, written_so)
    planes = not re.search("NHWC|channels.last", f"{row.software} {row.note}")
    matrix_units = engine.over_vector > MATRIX_UNITS and engine.array <= 1 and not fmt.vector_unit
    if not re.fullmatch(r"eager (network|training) on GPU", setting) or not planes or not matrix_units:
        return Work.of([])
    columns = turned_kernels(network(), fmt, 1 if setting.startswith("eager training") else 2).columns
    columns[Work.FIELDS.index("moved")] *= batch
    return Work(columns)
