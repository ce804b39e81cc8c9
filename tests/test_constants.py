"""Constants against opinions that do not come from this package."""

import subprocess
import sys

import pytest

from mlsys import constants
from mlsys.hardware import Hardware
from mlsys.provenance import Fact, perturbed, recording
from mlsys.units import DimensionalityError, Quantity, Unit, ureg
from sampled import over_all

ALL = constants.facts()


# --- names -------------------------------------------------------------------------


def test_star_import_gives_every_name_that_dir_lists() -> None:
    scope: dict[str, object] = {}
    exec("from mlsys.constants import *", scope)
    assert set(dir(constants)) == set(scope) - {"__builtins__"}
    assert set(ALL) < set(scope)


UNITS = """
    byte KB MB GB TB PB KiB MiB GiB TiB bit flop KFLOPs MFLOPs GFLOPs TFLOPs PFLOPs EFLOPs ZFLOPs GFLOP TFLOP MAC
    second minute hour day MS US NS ms watt joule kilowatt_hour param Kparam Mparam Bparam Gbps USD count token
    inference meter
    """


@over_all(UNITS.split())
def test_units_are_units_of_our_registry(name: str) -> None:
    unit = getattr(constants, name)
    assert isinstance(unit, Unit)
    assert isinstance(3 * unit, Quantity)
    assert (3 * unit)._REGISTRY is ureg


def test_prefixes_are_those_of_the_si_brochure_and_iec_80000_13() -> None:
    assert (1 * constants.GB).m_as("byte") == 10**9
    assert (1 * constants.GiB).m_as("byte") == 2**30 == constants.GIB_TO_BYTES
    assert (constants.KIB_TO_BYTES, constants.MIB_TO_BYTES) == (1024, 1_048_576)
    assert [round((1 * unit).m_as("ps")) for unit in (constants.MS, constants.US, constants.NS)] == [
        10**9,
        10**6,
        10**3,
    ]
    assert (1 * constants.Gbps).m_as("byte/s") == 125e6
    assert (1 * constants.TOPS).m_as("FLOP/s") == 1e12


def test_multipliers_are_integers() -> None:
    words = ("THOUSAND", "MILLION", "BILLION", "TRILLION", "QUADRILLION")
    assert [getattr(constants, word) for word in words] == [10**3, 10**6, 10**9, 10**12, 10**15]
    assert all(type(getattr(constants, word)) is int for word in (*words, "DAYS_PER_YEAR", "HOURS_PER_DAY"))
    assert constants.DAYS_PER_YEAR == 365
    assert constants.SECONDS_PER_DAY == constants.HOURS_PER_DAY * constants.SECONDS_PER_HOUR


def test_widths() -> None:
    widths = {"FP64": 8, "FP32": 4, "TF32": 4, "FP16": 2, "BF16": 2, "FP8": 1, "INT8": 1, "INT4": 0.5}
    assert {name: getattr(constants, f"BYTES_{name}").m_as("byte") for name in widths} == widths
    assert constants.BYTES_FP32.m_as("bit") == constants.FP32_BITS


def test_sizes_that_the_architecture_names() -> None:
    sizes = ("HIDDEN_DIM", "SEQ_LEN", "HEADS")
    assert [getattr(constants, f"TRANSFORMER_{size}_EXAMPLE") for size in sizes] == [768, 512, 12]
    assert constants.SYSTOLIC_ARRAY_DIM == 128


# --- unknown names ------------------------------------------------------------------


def test_unknown_attribute_suggests_a_name() -> None:
    with pytest.raises(AttributeError, match=r"no name 'A100_MEMBW'\. Did you mean 'A100_MEM_BW'\?"):
        _ = constants.A100_MEMBW
    assert not hasattr(constants, "NOTHING_LIKE_IT")
    assert getattr(constants, "NOTHING_LIKE_IT", None) is None


def test_unknown_import_suggests_a_name() -> None:
    with pytest.raises(ImportError, match=r"Did you mean 'ENERGY_DRAM_ACCESS_PJ'\?"):
        from mlsys.constants import ENERGY_DRAM_ACCES_PJ  # noqa: F401


def test_a_rate_that_a_device_lacks_says_what_it_has() -> None:
    with pytest.raises(AttributeError, match=r"no fp8 peak\. It has: .*int8"):
        _ = constants.A100_FLOPS_FP8


# --- flat names are views -------------------------------------------------------------

VIEWS = {
    "A100_FLOPS_FP16_TENSOR": lambda device: device.peak("fp16", unit="matrix"),
    "A100_FLOPS_FP16_SPARSE": lambda device: device.peak("fp16", "2:4", "matrix"),
    "A100_FLOPS_TF32": lambda device: device.tf32_flops,
    "A100_FLOPS_FP32": lambda device: device.peak("fp32", unit="vector"),
    "A100_FLOPS_INT8": lambda device: device.int8_flops,
    "A100_TOPS_INT8": lambda device: device.int8_flops,
    "A100_MEM_BW": lambda device: device.memory_bw,
    "A100_MEM_CAPACITY": lambda device: device.memory_capacity,
    "A100_TDP": lambda device: device.tdp,
    "NVLINK_A100_BW": lambda device: device.link("NVLink").per_direction,
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_flat_name_is_the_value_of_the_twin(name: str) -> None:
    flat, twin = getattr(constants, name), VIEWS[name](Hardware.Cloud.A100)
    assert flat == twin
    assert flat.origin is twin.origin


def test_a_flat_name_follows_the_twin() -> None:
    with perturbed("A100_80GB/memory/HBM/bandwidth", 2.0):
        assert constants.A100_MEM_BW.m_as("GB/s") == 2 * 2039


def test_nvlink_is_per_direction() -> None:
    # NVIDIA A100 datasheet: 12 links of 25 GB/s each way, printed there as 600 GB/s for both.
    assert constants.NVLINK_A100_BW.m_as("GB/s") == 12 * 25


def test_every_listed_device_name_has_a_source() -> None:
    flat = [name for name in dir(constants) if name.startswith(("NVLINK_", "A100_", "H100_", "T4_", "TPUV4_"))]
    assert flat
    assert all(getattr(constants, name).source for name in flat)


# --- facts: pedigree -------------------------------------------------------------------


@over_all(ALL)
def test_every_fact_has_a_birth_certificate(name: str) -> None:
    origin = ALL[name].origin
    assert isinstance(origin, Fact)
    assert origin.name == name
    assert len(origin.meaning) > 10
    assert len(origin.source) > 15
    assert 2005 <= int(origin.date[:4]) <= 2026
    assert origin.confidence != "unverified"
    assert name in repr(getattr(constants, name))


def test_no_fact_cites_a_private_place() -> None:
    text = " ".join(f"{quantity.origin.source} {quantity.origin.meaning}" for quantity in ALL.values()).lower()  # type: ignore[union-attr]
    assert not any(word in text for word in ("/work", "index id", "search", "physics.csv"))


@pytest.mark.parametrize("missing", ["name", "meaning", "source", "date"])
def test_a_fact_without_its_papers_is_refused(missing: str) -> None:
    papers = {"name": "X", "meaning": "a thing", "source": "somebody", "date": "2020", missing: " "}
    with pytest.raises(ValueError, match=f"`{missing}` must"):
        constants.fact(1.0, "s", **papers)  # type: ignore[arg-type]


def test_a_fact_without_a_source_argument_is_refused() -> None:
    with pytest.raises(TypeError, match="source"):
        constants.fact(1.0, "s", name="X", meaning="a thing", date="2020")  # type: ignore[call-arg]


def test_reading_is_noted_and_listing_is_not() -> None:
    with recording() as seen:
        constants.facts()
        dir(constants)
    assert not seen
    with recording() as seen:
        _ = constants.ENERGY_MAC_FP32_PJ
    assert set(seen) == {"ENERGY_ADD_FP32_PJ", "ENERGY_MUL_FP32_PJ", "ENERGY_MAC_FP32_PJ"}


def test_what_ifs_reach_derived_facts() -> None:
    with perturbed("ENERGY_MUL_FP32_PJ", 2.0):
        assert constants.ENERGY_MAC_FP32_PJ.m_as("pJ") == pytest.approx(0.9 + 2 * 3.7)
    assert constants.ENERGY_MAC_FP32_PJ.m_as("pJ") == 4.6


def test_what_is_handed_out_is_a_copy() -> None:
    mine = constants.ENERGY_DRAM_ACCESS_PJ
    mine.ito("nJ")
    mine *= 3
    listed = constants.facts()["ENERGY_DRAM_ACCESS_PJ"]
    listed.ito("nJ")
    assert f"{constants.ENERGY_DRAM_ACCESS_PJ:~P}" == "640.0 pJ"


# --- facts: links ----------------------------------------------------------------------


@pytest.mark.parametrize(("generation", "gigatransfers"), [(3, 8), (4, 16), (5, 32)])
def test_pcie_is_what_sixteen_lanes_carry_after_encoding(generation: int, gigatransfers: int) -> None:
    # PCI-SIG: 8, 16, 32 GT/s per lane, 128 payload bits in 130. Our values are rounded to the customary digits.
    expected = gigatransfers * 16 * (128 / 130) / 8
    assert getattr(constants, f"PCIE_GEN{generation}_BW").m_as("GB/s") == pytest.approx(expected, rel=5e-4)


def test_infiniband_is_four_lanes_one_direction() -> None:
    # IBTA roadmap: HDR 50 Gbit/s and NDR 100 Gbit/s per lane.
    assert constants.INFINIBAND_HDR_BW.m_as("Gbps") == 4 * 50
    assert constants.INFINIBAND_NDR_BW.m_as("Gbps") == 4 * 100


# --- facts: energy ---------------------------------------------------------------------


def test_horowitz_2014_figure_1_1_9() -> None:
    # As transcribed in N. Jouppi et al., Ten Lessons, ISCA 2021, table 2, column 45 nm.
    printed = {
        "ADD": {"INT8": 0.03, "INT32": 0.1, "FP16": 0.4, "FP32": 0.9},
        "MUL": {"INT8": 0.2, "INT32": 3.1, "FP16": 1.1, "FP32": 3.7},
    }
    for operation, row in printed.items():
        for precision, picojoules in row.items():
            assert getattr(constants, f"ENERGY_{operation}_{precision}_PJ").m_as("pJ") == picojoules
    per_64_bit = {"ENERGY_SRAM_L1_PJ": 10, "ENERGY_SRAM_32KB_PJ": 20, "ENERGY_SRAM_L2_PJ": 100}
    assert {name: 2 * getattr(constants, name).m_as("pJ") for name in per_64_bit} == per_64_bit


def test_han_2015_figure_1() -> None:
    # "Memory access is 3 orders of magnitude more energy expensive than simple arithmetic": relative cost 6400.
    assert (constants.ENERGY_DRAM_ACCESS_PJ / constants.ENERGY_ADD_INT32_PJ).m_as("") == pytest.approx(6400)
    assert (constants.ENERGY_REG_PJ / constants.ENERGY_ADD_INT32_PJ).m_as("") == pytest.approx(10)
    assert (constants.ENERGY_SRAM_L1_PJ / constants.ENERGY_ADD_INT32_PJ).m_as("") == pytest.approx(50)


def test_the_energy_of_a_wire_is_per_bit_and_not_per_transition() -> None:
    """Keckler et al. 2011, table 1, 40 nm: 256 bits over 10 mm take 310 pJ; a transition takes 240 fJ/bit/mm."""
    most = constants.ENERGY_WIRE_MOST_PJ_PER_BIT_MM.m_as("pJ/bit/mm")
    assert most * 256 * 10 == pytest.approx(310, rel=5e-3)
    assert most == pytest.approx(0.240 / 2, rel=0.02), "half of random bits differ from the bit before"
    # Kogge et al. 2008, p. 128, prints 18 to 110 fJ/bit/mm.
    assert constants.ENERGY_WIRE_LEAST_PJ_PER_BIT_MM.m_as("fJ/bit/mm") == pytest.approx(18)
    assert "nm" not in constants.ENERGY_WIRE_PJ_PER_BIT_MM.origin.meaning, "its source names no node"


def test_dram_per_byte_is_a_quarter_of_a_word() -> None:
    assert constants.ENERGY_DRAM_PJ_PER_BYTE.m_as("pJ/byte") == 640 / 4
    assert constants.ENERGY_DRAM_PJ_PER_BYTE.m_as("pJ/bit") == 20


def test_hbm_is_not_the_dram_of_2014() -> None:
    # O'Connor 2017, abstract: FGDRAM halves the energy of HBM2; Jouppi 2021: HBM2 3.9 to 7.0 pJ/bit.
    assert 3.9 <= constants.ENERGY_HBM2_PJ_PER_BIT.m_as("pJ/bit") <= 7.0
    assert constants.ENERGY_DRAM_PJ_PER_BYTE > 5 * constants.ENERGY_HBM2_PJ_PER_BIT


@pytest.mark.parametrize(("precision", "picojoules"), [("INT8", 0.23), ("INT32", 3.2), ("FP16", 1.5), ("FP32", 4.6)])
def test_a_mac_is_an_addition_and_a_multiplication(precision: str, picojoules: float) -> None:
    mac = getattr(constants, f"ENERGY_MAC_{precision}_PJ")
    assert mac.m_as("pJ") == picojoules
    assert mac.origin.confidence == "derived"
    assert f"ENERGY_ADD_{precision}_PJ + ENERGY_MUL_{precision}_PJ" in mac.source
    assert "Horowitz" in mac.source


@pytest.mark.parametrize(
    ("rate", "mac"),
    [
        ("ENERGY_FLOP_FP32_PJ", "ENERGY_MAC_FP32_PJ"),
        ("ENERGY_FLOP_PJ", "ENERGY_MAC_FP32_PJ"),
        ("ENERGY_FLOP_FP16_PJ", "ENERGY_MAC_FP16_PJ"),
        ("ENERGY_OP_INT8_PJ", "ENERGY_MAC_INT8_PJ"),
    ],
)
def test_energy_of_a_flop_times_flops_is_the_energy_of_the_macs(rate: str, mac: str) -> None:
    macs = 1000
    energy = getattr(constants, rate) * (macs * constants.MAC)
    assert energy.m_as("pJ") == pytest.approx(macs * getattr(constants, mac).m_as("pJ"))
    with pytest.raises(DimensionalityError):
        getattr(constants, rate).to("pJ")


def test_word_ratios_of_the_memory_wall() -> None:
    # A 32-bit DRAM word against arithmetic, each ratio from Horowitz's and Han's own numbers.
    ratios = {
        "ENERGY_MAC_FP32_PJ": 139,
        "ENERGY_MAC_FP16_PJ": 427,
        "ENERGY_MAC_INT8_PJ": 2783,
        "ENERGY_SRAM_L1_PJ": 128,
    }
    for name, ratio in ratios.items():
        assert round((constants.ENERGY_DRAM_ACCESS_PJ / getattr(constants, name)).m_as("")) == ratio


# --- facts: latency ----------------------------------------------------------------------


def test_latencies_are_cycles_over_clock() -> None:
    chased = {
        "LATENCY_L1_REGISTER": (34.1, 1755),
        "LATENCY_L2_CACHE": (265.5, 1755),
        "LATENCY_HBM2E": (655.3, 1755),
        "LATENCY_HBM3": (685.9, 1980),
        "LATENCY_NVLINK": (1120, 1410),
    }
    for name, (cycles, megahertz) in chased.items():
        assert getattr(constants, name).m_as("ns") == pytest.approx(cycles / megahertz * 1e3, rel=2e-3)


def test_latencies_that_their_sources_print_in_time() -> None:
    assert constants.LATENCY_PCIE_GEN3.m_as("ns") == 493  # pcie-bench/data, LAT_CMD_RD, 64 bytes, median
    assert constants.LATENCY_NVLINK_COPY.m_as("us") == 8.92  # LLMCompass, link_module_dict["NVLinkV3"]
    assert constants.LATENCY_INFINIBAND.m_as("us") == 0.83  # Potter 2018, 32 bytes, RC, MTU 4096
    assert constants.LATENCY_NVME_SSD.m_as("us") == 92  # Micron 9200, latency to media, read, 92 to 150


def test_farther_is_slower() -> None:
    near_to_far = [
        "LATENCY_L1_REGISTER",
        "LATENCY_L2_CACHE",
        "LATENCY_HBM3",
        "LATENCY_NVLINK",
        "LATENCY_INFINIBAND",
        "LATENCY_NVLINK_COPY",
        "LATENCY_NVME_SSD",
    ]
    latencies = [getattr(constants, name) for name in near_to_far]
    assert latencies == sorted(latencies)
    assert constants.LATENCY_HBM3 < constants.LATENCY_PCIE_GEN5 < constants.LATENCY_NVLINK_COPY


def test_the_pcie_estimate_admits_it() -> None:
    assert constants.LATENCY_PCIE_GEN5.origin.confidence == "derived"
    assert constants.LATENCY_PCIE_GEN5 == constants.LATENCY_PCIE_GEN3


# --- facts: networks, rebuilt layer by layer -----------------------------------------------


def test_gpt2_xl_from_its_layers() -> None:
    width, layers = constants.GPT2_HIDDEN_DIM, constants.GPT2_LAYERS
    attention = (width * 3 * width + 3 * width) + (width * width + width)
    feed_forward = (width * 4 * width + 4 * width) + (4 * width * width + width)
    layer = attention + feed_forward + 2 * 2 * width
    assert layer == 12 * width**2 + 13 * width
    assert layers * layer + 50257 * width + 1024 * width + 2 * width == constants.GPT2_PARAMS.m_as("param")


def test_llama_7b_from_its_layers() -> None:
    width, hidden, layers, words = 4096, 11008, 32, 32000
    layer = 4 * width * width + 3 * width * hidden + 2 * width
    expected = layers * layer + 2 * words * width + width
    assert constants.LLAMA_7B_PARAMS.m_as("param") == constants.LLAMA2_7B_PARAMS.m_as("param") == expected


def test_bert_base_from_its_layers() -> None:
    width = 768
    embeddings = (30522 + 512 + 2) * width + 2 * width
    attention = 4 * (width * width + width) + 2 * width
    feed_forward = (width * 3072 + 3072) + (3072 * width + width) + 2 * width
    pooler = width * width + width
    expected = embeddings + 12 * (attention + feed_forward) + pooler
    assert constants.BERT_BASE_PARAMS.m_as("param") == expected
    assert constants.BERT_BASE_PARAMS.m_as("Mparam") == pytest.approx(110, rel=5e-3)  # Devlin et al. 2018: 110M


def resnet50() -> tuple[int, int]:
    """Return the parameters and MACs of ResNet-50 v1.5, from table 1 of He et al. 2015."""
    params = macs = 0

    def convolution(inputs: int, outputs: int, kernel: int, size: int) -> None:
        nonlocal params, macs
        weights = inputs * outputs * kernel * kernel
        params += weights + 2 * outputs
        macs += weights * size * size

    convolution(3, 64, 7, 112)
    inputs, size = 64, 56
    for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for block in range(blocks):
            convolution(inputs, width, 1, size)
            if block == 0 and stage > 0:
                size //= 2  # v1.5: the 3x3 convolution strides
            convolution(width, width, 3, size)
            convolution(width, 4 * width, 1, size)
            if block == 0:
                convolution(inputs, 4 * width, 1, size)
            inputs = 4 * width
    return params + 2048 * 1000 + 1000, macs + 2048 * 1000


def test_resnet50_from_its_layers() -> None:
    params, macs = resnet50()
    assert constants.RESNET50_PARAMS.m_as("param") == params == 25_557_032  # torchvision prints this
    assert constants.RESNET50_FLOPs.m_as("FLOP") == 2 * macs
    assert constants.RESNET50_FLOPs.m_as("MAC") / 1e9 == pytest.approx(4.09, abs=0.005)  # torchvision's "GFLOPS"


def test_gpt3_as_its_authors_round_it() -> None:
    # Brown et al. 2020, table 2.1: 96 layers of width 12288; 12·L·d² is within 1% of "175B".
    assert constants.GPT3_PARAMS.m_as("Bparam") == 175
    assert constants.GPT3_PARAMS.m_as("param") == pytest.approx(12 * 96 * 12288**2, rel=0.01)


# --- light ---------------------------------------------------------------------------------


def test_importing_reads_no_device_file() -> None:
    code = "import sys, mlsys.constants; print('mlsys.hardware' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
