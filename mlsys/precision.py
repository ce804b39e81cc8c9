"""Number formats: their names and the memory that one value occupies."""

from collections.abc import Mapping
from types import MappingProxyType

from mlsys.errors import UnknownNameError, did_you_mean
from mlsys.units import Quantity, ureg

_BYTE = ureg.Unit("byte")

# Bits per stored value. TF32 is a rate of the matrix unit; its operands are stored as FP32.
PRECISIONS: Mapping[str, int] = MappingProxyType(
    {
        "fp64": 64,
        "fp32": 32,
        "tf32": 32,
        "fp16": 16,
        "bf16": 16,
        "int16": 16,
        "fp8": 8,
        "int8": 8,
        "fp6": 6,
        "fp4": 4,
        "int4": 4,
        "int1": 1,
    }
)


def precision_name(precision: str) -> str:
    """Return the canonical name of a number format, or raise and list the known names.

    Examples
    --------
    >>> precision_name("FP16")
    'fp16'
    >>> precision_name("fp61")
    Traceback (most recent call last):
        ...
    mlsys.errors.UnknownNameError: unknown precision 'fp61'. Known: fp64, fp32, ... Did you mean 'fp6'?
    """
    name = str(precision).lower()
    if name not in PRECISIONS:
        raise UnknownNameError(
            f"unknown precision {precision!r}. Known: {', '.join(PRECISIONS)}.{did_you_mean(name, PRECISIONS)}"
        )
    return name


def element_size(precision: str) -> Quantity:
    """Return the size in memory of one value of ``precision``, in bytes.

    Examples
    --------
    >>> print(element_size("fp16"), element_size("int4"))
    2 B 0.5 B
    """
    return ureg.Quantity(PRECISIONS[precision_name(precision)] / 8, _BYTE)
