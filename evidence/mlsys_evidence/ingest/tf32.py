"""FP32 products that frameworks compute in TF32 on matrix units, unless TF32 is turned off."""

import re

from mlsys.calibration.rows import Row

# All products: of TensorFlow since 2.4 (``enable_tensor_float_32_execution``: "enabled by default"; RFC 287), of
# TensorRT since 7.1 (``BuilderFlag.TF32``: "Enabled by default"), of PyTorch from 1.7 to 1.11. Since 1.12 it narrows
# convolutions alone (``torch.backends.cudnn.allow_tf32``; ``torch.backends.cuda.matmul.allow_tf32`` is false).
_ALL = r"^TensorFlow 2\.([4-9]|[1-9]\d)|^TensorRT (7\.[1-9]|[89]|[1-9]\d)\b|PyTorch 1\.([7-9]|1[01])\b"
_CONVOLUTIONS = r"PyTorch|torch"
_NEVER = r"PyTorch 1\.[0-6]\b|Torch7"
_SWITCHED_OFF = r"TF32 off|without TF32|no TF32"


def multiplied_in(row: Row) -> str:
    """Return which products in FP32 a program may compute in TF32: ``"all"``, ``"convolutions"`` or none."""
    if re.search(_SWITCHED_OFF, row.note):
        return ""
    if re.search(_ALL, row.software):
        return "all"
    return "convolutions" if re.search(_CONVOLUTIONS, row.software) and not re.search(_NEVER, row.software) else ""
