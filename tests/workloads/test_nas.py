"""Networks found by search, for microcontrollers and phones, have the work and the parameters that are published."""

import pytest

from mlsys.workloads import zoo

# MMAC and millions of parameters: mit-han-lab/tinyml, mcunet/README.md, March 2021; of the wake words' networks, work
# alone: mit-han-lab/mcunet, README.md; ProxylessNAS Mobile: Cai et al. 2019 and once-for-all's table.
PUBLISHED = {
    "mcunet_in0": (6.4, 0.75),
    "mcunet_in1": (12.8, 0.64),
    "mcunet_in2": (67.3, 0.73),
    "mcunet_in3": (81.8, 0.74),
    "mcunet_in4": (125.9, 1.73),
    "mcunet_vww1": (11.6, None),
    "mcunet_vww2": (55.8, None),
    "proxyless_mobile_0.3_176": (38.3, 0.75),
    "proxyless_mobile": (320.4, 4.08),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_work_and_parameters_are_those_published(name: str) -> None:
    network = zoo.network(name, batch=1)
    work, parameters = PUBLISHED[name]
    assert network.flops.m_as("MFLOP") / 2 == pytest.approx(work, abs=0.06)
    if parameters:
        assert network.parameters.m_as("param") / 1e6 == pytest.approx(parameters, abs=0.006)


def test_a_thin_mobilenet_has_a_thin_last_layer() -> None:
    """MbV2-s of the same table: 7.3 MMAC and 0.63 million parameters at 80 × 80."""
    network = zoo.network("mobilenet_v2_0.3_thin", batch=1, image=80)
    assert network.flops.m_as("MFLOP") / 2 == pytest.approx(7.3, abs=0.05)
    assert network.parameters.m_as("param") / 1e6 == pytest.approx(0.63, abs=0.005)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("mcunet-in3", "mcunet_in3"), ("proxyless-w0.3-r64", "proxyless_mobile_0.3_64"),
     ("mbv2-w0.3-r64", "mobilenet_v2_0.3_thin")],
)  # fmt: skip
def test_names_of_the_measurements_are_known(spelling: str, name: str) -> None:
    entry = zoo.resolve(spelling)
    assert entry is not None
    assert entry.name == name


def test_what_reads_plates_is_as_large_as_its_authors_say() -> None:
    """The README of sirius-ai/LPRNet_Pytorch: 1.7 MB of FP32; its work by hand, of each convolution at its size."""
    network = zoo.network("lprnet", batch=1)
    assert 4 * network.parameters.m_as("param") / 2**20 == pytest.approx(1.7, abs=0.05)
    first, second, third = 22 * 92 * 27 * 64, 20 * 90 * (64 * 32 + 2 * 3 * 32 * 32 + 32 * 128), 18 * 44
    third *= 64 * 64 + 2 * 2 * 3 * 64 * 64 + 2 * 64 * 256 + 256 * 64
    last = 16 * 18 * 64 * 4 * 256 + 4 * 18 * (256 * 13 * 68 + (64 + 128 + 256 + 68) * 68)
    assert network.flops.m_as("FLOP") / 2 == pytest.approx(first + second + third + last, rel=1e-9)
