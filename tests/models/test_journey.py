"""One request through a dense layer: sums, orders and single legs against arithmetic by hand."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import Hardware
from mlsys.models.journey import request_journey
from mlsys.models.overlap import PINNED_ATTAINS
from mlsys.provenance import perturbed
from mlsys.units import Q_

H100 = Hardware.Cloud.H100
sizes, batches = st.integers(1, 20_000), st.integers(1, 300)


@given(sizes, sizes, batches)
def test_parts_sum_and_a_hierarchy_is_one(inputs: int, outputs: int, batch: int) -> None:
    result = request_journey("DGX_H100", inputs, outputs, batch=batch)
    assert sum(part.m_as("s") for part in result.parts.values()) == pytest.approx(result.time.m_as("s"))
    assert sum(result.energy.values(), start=Q_(0.0, "J")).m_as("J") == pytest.approx(
        result.figures["energy"].m_as("J")
    )
    # Latencies from load to use hold those of the nearer memories, so that the hops sum to that of HBM alone.
    assert sum(leg.latency.m_as("ns") for leg in result.inner) == pytest.approx(H100.level("HBM").latency.m_as("ns"))
    for outer, nearer in itertools.pairwise(result.legs[:-2]):
        assert nearer.price < outer.price and nearer.passes >= outer.passes
    assert result.figures["operations"].m == 2 * inputs * outputs * batch
    # No shorter than the roofline's two bounds: compulsory bytes over the bandwidth, operations over the peak.
    streaming = result.parts["streaming"].m_as("s") * (1 + 1e-9)
    assert streaming >= (2 * inputs * (outputs + batch) + 2 * outputs * batch) / 3350e9
    assert streaming >= result.figures["operations"].m / H100.peak("fp16").m_as("FLOP/s")


def test_the_request_of_the_page_by_hand() -> None:
    """16,000 samples of two bytes meet 1,024 outputs, 64 tiles of 16: 32.0 kB in, 32.8 MB of weights, 2 kB out."""
    result = request_journey("DGX_H100", 16_000, 1024, launch=Q_(0, "s"))
    assert result.figures["request"].m_as("KiB") == 31.25
    copied, wire = 32_000 / (63e9 * 0.88), 1e-6
    assert result.parts["copy in"].m_as("s") == pytest.approx(copied + wire) and PINNED_ATTAINS == 0.88
    streams = [leg.streaming.m_as("us") for leg in result.inner]
    crossing = 32_768_000 + 64 * 32_000
    assert streams[0] == pytest.approx((32_768_000 + 32_000) / 3350e3)
    assert streams[1] == pytest.approx(crossing / 9766.9e3)
    assert streams[2] == pytest.approx(crossing / (253.4e3 * 64))
    assert streams[3] == pytest.approx(2 * 16_000 * 1024 * 8 / (989.4e6 * 64 / 132))
    assert [leg.passes for leg in result.inner] == [1, 64, 64, 64]
    # A byte of the request from host to HBM: DDR at 160 pJ, PCIe at 8 x 6.5 pJ, HBM at 8 x 3.92 pJ.
    assert result.legs[0].price.m_as("pJ/byte") == pytest.approx(160 + 52 + 31.36)


def test_weights_in_l2_save_their_trip_from_memory_and_nothing_else() -> None:
    cold, warm = (request_journey("DGX_H100", 16_000, 1024, weights_in_l2=known) for known in (False, True))
    trip = 32_768_000 * 8 * 3.92e-12
    assert (cold.figures["energy"] - warm.figures["energy"]).m_as("J") == pytest.approx(trip)
    assert [leg.weights for leg in warm.legs[2:]] == [leg.weights for leg in cold.legs[2:]]


@pytest.mark.parametrize(
    ("fact", "part"),
    [
        ("H100_SXM/memory/HBM/bandwidth", "streaming"),
        ("H100_SXM/links/PCIe/per_direction", "copy in"),
        ("H100_SXM/memory/HBM/latency", "first word"),
        ("DGX_H100/host/latency", "copy out"),
    ],
)
def test_a_fact_moves_its_own_part(fact: str, part: str) -> None:
    before = request_journey("DGX_H100", 16_000, 1024)
    with perturbed(fact, 0.5):
        after = request_journey("DGX_H100", 16_000, 1024)
    assert after.parts[part] != before.parts[part]
    assert after.parts["launch"] == before.parts["launch"] and fact in {each.name for each in before.facts}
