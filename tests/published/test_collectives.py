"""Collectives against published costs: MPICH's formulas worked by hand, NCCL's own model, nccl-tests' convention."""

import pytest

from mlsys import Q_, collective, formulas
from mlsys.hardware import Hardware, systems
from mlsys.models.collectives import collective_time, double_tree
from mlsys.models.collectives.group import group_of
from mlsys.models.collectives.nccl import Generation, candidates

# Microseconds for alpha = 5 us, gamma = 0, by the formulas in the comments of pmodels/mpich@6a79bf6575, src/mpi/coll.
WORKED = [
    # p, n, byte/s: ring, recursive doubling, Rabenseifner all-reduce; ring, doubling all-gather; binomial broadcast
    (2, 1e6, 100e9, 20.0, 15.0, 20.0, 10.0, 10.0, 15.0),
    (4, 1e6, 100e9, 45.0, 30.0, 35.0, 22.5, 17.5, 30.0),
    (8, 1e3, 100e9, 70.0175, 15.03, 30.0175, 35.00875, 15.00875, 15.03),
    (8, 1e6, 100e9, 87.5, 45.0, 47.5, 43.75, 23.75, 45.0),
    (8, 1e9, 100e9, 17570, 30015, 17530, 8785, 8765, 30015),
    (64, 1e6, 100e9, 649.6875, 90.0, 79.6875, 324.84375, 39.84375, 90.0),
    (64, 1e9, 50e9, 40005, 120030, 39435, 20002.5, 19717.5, 120030),
]
COLUMNS = (
    formulas.ring_all_reduce_time,
    formulas.recursive_doubling_all_reduce_time,
    formulas.rabenseifner_all_reduce_time,
    formulas.ring_all_gather_time,
    formulas.recursive_doubling_all_gather_time,
    formulas.tree_broadcast_time,
)


@pytest.mark.parametrize("row", WORKED, ids=lambda row: f"{row[0]}-{row[1]:g}")
def test_costs_worked_by_hand(row: tuple[float, ...]) -> None:
    ranks, size, rate, *expected = row
    result = [formula.bare(size, ranks, 5e-6, rate) * 1e6 for formula in COLUMNS]
    assert result == pytest.approx(expected, rel=1e-6)


def test_a_ring_of_a_gigabyte_over_300_gigabytes_a_second() -> None:
    """The course's numbers: 3.33, 5.0, 5.83 and 6.56 ms for 2, 4, 8 and 64 ranks; 24.5 GB and 54 ms for 14 GB."""
    times = [formulas.ring_all_reduce_time.bare(1e9, ranks, 0.0, 300e9) * 1e3 for ranks in (2, 4, 8, 64)]
    assert times == pytest.approx([3.33, 5.0, 5.83, 6.56], abs=0.005)
    gradients = collective("all-reduce", Q_(14, "GB"), "DGX_H100", algorithm="ring", library="ideal")
    assert gradients.bytes_per_link["scale_up"].m_as("GB") == pytest.approx(24.5)
    assert gradients.time.m_as("ms") == pytest.approx(54, abs=0.5)


def test_nccls_own_model_of_a_ring_in_the_low_latency_protocol() -> None:
    """NVIDIA/nccl, tuning.cc: eight ranks of one node, 6.6 + 14 x 0.6 = 15.0 us; measured on H100: 15.5 us."""
    plain = Generation(wire=1.0, low_latency_cap=1e15, start=0.0, step=1.0, channels=24, switch=0.0)
    ring = candidates("all-reduce", 512, group_of("test", systems["DGX_H100"], 8), plain)[0]
    assert (ring.algorithm, ring.protocol) == ("ring", "LL")
    assert ring.latency * 1e6 == pytest.approx(15.0)
    assert collective("all-reduce", Q_(512, "byte"), "DGX_H100").time.m_as("us") == pytest.approx(15.5, rel=0.05)


def test_the_double_binary_tree_is_nccls() -> None:
    """NVIDIA/nccl, trees.cc, for 4, 7 and 8 ranks."""
    assert double_tree(4) == ((-1, 2, 0, 2), (1, 3, 1, -1))
    assert double_tree(7) == ((-1, 2, 4, 2, 0, 6, 4), (5, -1, 3, 5, 3, 1, 0))
    assert double_tree(8) == ((-1, 2, 4, 2, 0, 6, 4, 6), (1, 3, 1, 7, 5, 3, 5, -1))


def test_the_bus_bandwidth_of_nccl_tests() -> None:
    """NVIDIA/nccl-tests#45: an all-gather of 1 GB in all on 8 ranks in 5 ms is 200 GB/s, and 175 GB/s on the bus."""
    rate = formulas.algorithm_bandwidth(Q_(1, "GB"), Q_(5, "ms"))
    assert rate.m_as("GB/s") == pytest.approx(200)
    assert (rate * formulas.all_gather_traffic_factor(8)).m_as("GB/s") == pytest.approx(175)


def test_nvlink_4_over_pcie_5() -> None:
    """One direction each: 450 over 63 GB/s after PCIe's coding."""
    h100 = Hardware.Cloud.H100
    assert (h100.link("NVLink").per_direction / h100.link("PCIe").per_direction).m_as("") == pytest.approx(
        7.14, abs=0.005
    )


@pytest.mark.parametrize(
    ("system", "chips", "bus"),
    [("DGX_A100", 8, 234.9), ("DGX_H200", 8, 367.2), ("DGX_B200", 6, 677.8)],
    ids=lambda value: str(value),
)
def test_rings_attain_what_large_messages_were_measured_at(system: str, chips: int, bus: float) -> None:
    """S. Bekman, Machine Learning Engineering, network/README.md@744d01e: 8 to 16 GiB around a ring, NVLS off."""
    result = collective_time(system, "all-reduce", Q_(16, "GiB"), chips=chips, algorithm="ring")
    assert result.bus_bandwidth.m_as("GB/s") == pytest.approx(bus, rel=0.05)
