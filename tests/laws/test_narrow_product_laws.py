"""A product with fewer columns takes no longer: the missing ones can be filled with nothing."""

from itertools import pairwise, product

import pytest

from mlsys import Hardware
from mlsys.models.analysis import analyze
from mlsys.workloads import Network, gemm
from sampled import drawn

MACHINES = (
    ("Apollo510", "fp16"), ("ATSAMD51", "int8"), ("STM32F411", "int8"), ("Xeon_8360Y", "fp64"), ("A100_80GB", "fp16"),
    ("RaspberryPi5", "fp32"), ("TPUv4", "bf16"), ("Apple_M2", "fp16"),
)  # fmt: skip
QUESTIONS = [(*machine, m, k) for machine, m, k in product(MACHINES, (16, 129, 512), (32, 128, 200))]


@pytest.mark.parametrize(("device", "precision", "m", "k"), drawn(QUESTIONS, 24, "narrow products"))
def test_fewer_columns_take_no_longer(device: str, precision: str, m: int, k: int) -> None:
    times = []
    for n in (1, 2, 3, 4, 8):
        network = Network("a product", (gemm(m, n, k, precision=precision),))
        times.append(float(analyze(Hardware[device], network, precision=precision).estimate.m_as("s")))
    assert all(one <= 1.001 * other for one, other in pairwise(times)), times


OF_VECTORS = (("Trainium2", "fp32"), ("Xeon_8480", "fp32"), ("GTX_TITAN", "fp32"), ("RaspberryPi5", "fp32"),
              ("Apple_M2", "fp16"), ("Xeon_8480", "int8"), ("A100", "fp16"), ("ESP32S3", "int8"))  # fmt: skip
FEW = [(*machine, n, k) for machine, n, k in product(OF_VECTORS, (64, 1024, 4096), (256, 4096))]


@pytest.mark.parametrize(("device", "precision", "n", "k"), drawn(FEW, 24, "few rows"))
def test_twice_the_rows_take_no_more_than_twice_as_long(device: str, precision: str, n: int, k: int) -> None:
    """A program may take the rows one after the other."""
    times = []
    for m in (1, 2, 4, 8, 16, 32):
        network = Network("a product", (gemm(m, n, k, precision=precision),))
        times.append(float(analyze(Hardware[device], network, precision=precision).estimate.m_as("s")))
    assert all(twice <= 2.02 * one for one, twice in pairwise(times)), times
