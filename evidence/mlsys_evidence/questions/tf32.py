"""FP32 products that frameworks compute in TF32 on matrix units, unless TF32 is turned off."""

from collections.abc import Callable

from mlsys.calibration.engines import tf32_gain, with_narrow_convolutions
from mlsys.hardware import Device
from mlsys.models.estimate.kernel_time import MATRIX_UNITS
from mlsys.models.estimate.lowering import Format
from mlsys_evidence.typed_rows import TypedRow

TF32 = Format("tf32", 4, 4)


def multiplied_in(row: TypedRow, fmt: Format, twin: Device, part: Callable[[], float]) -> Format:
    """Return the format that products run in, where the row says FP32.

    GeForce cards multiply TF32 no faster than FP32: the two are not distinguished there.

    Parameters
    ----------
    row, fmt, twin
        The row, the format that it states, and its machine.
    part
        Returns the part of the operations that convolutions have.
    """
    plain = fmt.computes == "fp32" and fmt.vector_unit and twin.kind == "GPU" and twin.vendor == "NVIDIA"
    if not plain or not twin.has_peak("tf32", unit="matrix") or not row.tf32:
        return fmt
    if tf32_gain(twin) <= MATRIX_UNITS:
        return fmt
    if row.tf32 == "all":
        return TF32
    return with_narrow_convolutions(fmt, twin, part)
