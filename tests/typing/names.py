"""What a type checker makes of the package's first names: `make lint` checks these lines, nothing runs them."""

from typing import assert_type

from mlsys import Q_, Hardware, Quantity, fmt, models
from mlsys.hardware import Device
from mlsys.hardware.catalogue import Catalogue
from mlsys.models.result import Result
from mlsys.workloads import gemm

assert_type(Hardware, Catalogue)
assert_type(Hardware["A100"], Device)
assert_type(Hardware["A100"].memory_bw, Quantity)
assert_type(fmt(Q_(1, "GB")), str)
assert_type(models.roofline(Hardware["A100"], gemm(8, 8, 8)), Result)
