"""FP32 that frameworks multiply in TF32 on matrix units, unless they are asked not to."""

import re
from collections.abc import Callable

from mlsys.calibration.engines import tf32_gain, with_narrow_convolutions
from mlsys.calibration.rows import Row
from mlsys.hardware import Device
from mlsys.models.estimate.kernel_time import MATRIX_UNITS
from mlsys.models.estimate.lowering import Format
from mlsys_evidence.ingest.reading import number_format

# All products: of TensorFlow since 2.4 (``enable_tensor_float_32_execution``: "enabled by default"; RFC 287), of
# TensorRT since 7.1 (``BuilderFlag.TF32``: "Enabled by default"), of PyTorch from 1.7 to 1.11. Since 1.12 it narrows
# convolutions alone (``torch.backends.cudnn.allow_tf32``; ``torch.backends.cuda.matmul.allow_tf32`` is false).
_ALL = r"^TensorFlow 2\.([4-9]|[1-9]\d)|^TensorRT (7\.[1-9]|[89]|[1-9]\d)\b|PyTorch 1\.([7-9]|1[01])\b"
_CONVOLUTIONS = r"PyTorch|torch"
_TOLD_NOT_TO = r"TF32 off|without TF32|no TF32"


def multiplied_in(row: Row, fmt: Format, twin: Device, part: Callable[[], float]) -> Format:
    """Return the format that products run in, where the row says FP32.

    GeForce cards multiply TF32 no faster than FP32: nothing is told apart there.

    Parameters
    ----------
    row, fmt, twin
        The row, the format that it states, and its machine.
    part
        Returns the part of the operations that convolutions have.
    """
    plain = fmt.computes == "fp32" and fmt.vector_unit and twin.kind == "GPU" and twin.vendor == "NVIDIA"
    if not plain or not twin.has_peak("tf32", unit="matrix") or re.search(_TOLD_NOT_TO, row.note):
        return fmt
    narrow = number_format("tf32")
    if tf32_gain(twin) <= MATRIX_UNITS:
        return fmt
    if re.search(_ALL, row.software):
        return narrow
    if not re.search(_CONVOLUTIONS, row.software) or re.search(r"PyTorch 1\.[0-6]\b|Torch7", row.software):
        return fmt
    return with_narrow_convolutions(fmt, twin, part)
