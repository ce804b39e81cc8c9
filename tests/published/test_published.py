"""Numbers that other people printed. Each test says who, and why the tolerance is what it is."""

import pytest

from mlsys import formulas
from mlsys.constants import GPT2_PARAMS, RESNET50_PARAMS
from mlsys.hardware import Device, Hardware
from mlsys.models import roofline
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_, Quantity
from mlsys.workloads import conv2d, decode_step, dense, depthwise_conv2d, elementwise, relu, zoo

HALF = Q_(2, "byte")


# --- speedups --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("serial_percent", "speedup", "printed"),
    [
        (0.8, 1024, "111.5"),
        (0.4, 1024, "201.1"),
        (1, 1024, "91.2"),
        (5, 100, "16.8"),
        (10, 10, "5.3"),
        (50, 1024, "2.0"),
    ],
)
def test_amdahl_1967(serial_percent: float, speedup: float, printed: str) -> None:
    """G. M. Amdahl, Validity of the single processor approach, AFIPS SJCC 1967, as the formula
    1/(s + p/N) of J. L. Gustafson, CACM 31(5), 1988, who evaluates it at N = 1024.

    Compared as printed, to one decimal: the formula is exact, only the printing rounds.
    """
    assert f"{formulas.amdahl_speedup(1 - serial_percent / 100, speedup).magnitude:.1f}" == printed


def test_amdahl_would_not_allow_what_sandia_measured() -> None:
    """J. L. Gustafson, Reevaluating Amdahl's law, CACM 31(5), 1988: for s = 0.4 to 0.8 percent on 1,024 processors,
    speedups of 1,021, 1,020 and 1,016 were measured on problems that grow with the machine.

    His law at s = 0.8 % and 0.4 % gives 1,015.8 and 1,019.9. He printed three applications and a range of s, so
    measured and computed are compared after rounding to a whole number, at the two ends of the range; the third,
    1,021, needs s = 0.29 %, which rounds to 0.3 and lies just outside the range he names.
    """
    assert round(formulas.gustafson_speedup(1 - 0.008, 1024).magnitude) == 1016
    assert round(formulas.gustafson_speedup(1 - 0.004, 1024).magnitude) == 1020
    assert round(formulas.gustafson_speedup(1 - 0.0029, 1024).magnitude) == 1021
    assert formulas.amdahl_speedup(1 - 0.004, 1024).magnitude < 202


AMDAHL_TABLE = {
    0.80: ("3.57", "4.81", "4.98"),
    0.90: ("5.26", "9.17", "9.91"),
    0.95: ("6.90", "16.81", "19.63"),
    0.99: ("9.17", "50.25", "90.99"),
    0.999: ("9.91", "90.99", "500.25"),
}


@pytest.mark.parametrize("share", AMDAHL_TABLE)
def test_the_classroom_table_of_amdahls_law(share: float) -> None:
    """Speedups for S = 10, 100 and 1000, worked out with fractions: 1 / ((1 - p) + p/S), for instance
    1000 / (50 + 950/100) = 16.81. Compared as printed, to two decimals."""
    computed = [f"{formulas.amdahl_speedup(share, S).magnitude:.2f}" for S in (10, 100, 1000)]
    assert tuple(computed) == AMDAHL_TABLE[share]


# --- rooflines --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("intensity", "attained"), [(0.25, 3.75), (0.5, 7.5), (1, 15.0), (2, 17.6), (4, 17.6), (16, 17.6)]
)
def test_the_first_roofline(intensity: float, attained: float) -> None:
    """S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009, figure 1a: a dual-socket AMD Opteron X2 with a peak
    of 17.6 GFLOP/s in double precision and a measured 15 GB/s, drawn from 0.25 to 16 FLOP/byte.

    Exact but for floating point: these are the two lines of the figure, min(17.6, 15 I).
    """
    roof = formulas.attainable_performance(Q_(intensity, "FLOP/byte"), Q_(17.6, "GFLOP/s"), Q_(15, "GB/s"))
    assert_quantity_close(roof, Q_(attained, "GFLOP/s"))
    assert_quantity_close(formulas.ridge_point(Q_(17.6, "GFLOP/s"), Q_(15, "GB/s")), Q_(1.17, "FLOP/byte"), rtol=0.005)


def test_a_vector_increment_has_an_intensity_of_one_in_24() -> None:
    """Lawrence Berkeley National Laboratory, Roofline performance model, introduction: x[i] += y[i] in double
    precision does N FLOP and moves 24 N bytes, an intensity of 0.0417. To the three digits printed."""
    increment = elementwise(1_000_000, 1, inputs=2, outputs=1, precision="fp64")
    assert_quantity_close(increment.data, Q_(24, "MB"))
    assert f"{increment.intensity.m_as('FLOP/byte'):.4f}" == "0.0417"


def test_tpu_v1() -> None:
    """N. P. Jouppi et al., In-datacenter performance analysis of a tensor processing unit, ISCA 2017: 65,536 8-bit
    MACs at 700 MHz are called 92 TOPS, and with 34 GB/s of weights the ridge is at about 1,350 operations (there:
    multiply-accumulates) per byte.

    0.3 %: 65,536 x 2 x 700 MHz is 91.75 TOPS, printed as 92; 1,350 is printed to three digits.
    """
    tpu = Hardware.Cloud.TPUv1
    computed = Q_(65536, "MAC/cycle") * Q_(700, "MHz")
    assert_quantity_close(tpu.peak("int8"), Q_(92, "TOP/s"))
    assert_quantity_close(computed, tpu.peak("int8"), rtol=3e-3)
    assert_quantity_close(tpu.ridge_point("int8"), Q_(1350, "MAC/byte"), rtol=3e-3)
    assert_quantity_close(tpu.ridge_point("int8"), Q_(2706, "FLOP/byte"), rtol=1e-3)


def test_a100_peak_from_its_parts() -> None:
    """NVIDIA A100 Tensor Core GPU architecture whitepaper, 2020: 108 SMs, 4 tensor cores each, 256 FP16 multiply-adds
    a clock, boost clock 1,410 MHz, 312 TFLOP/s.

    0.1 %: the product is 311.87, printed as 312.
    """
    computed = 2 * 108 * 4 * 256 * Q_(1.41, "GHz") * Q_(1, "FLOP/cycle")
    assert_quantity_close(Hardware.Cloud.A100.peak("fp16"), computed, rtol=1e-3)
    assert_quantity_close(Hardware.Cloud.A100.peak("fp16"), Q_(312, "TFLOP/s"))


@pytest.mark.parametrize(
    ("name", "peak", "bandwidth", "ridge"),
    [
        ("V100", 125, 900, 138.9),  # NVIDIA Tesla V100 datasheet, 2018: SXM2
        ("T4", 65, 320, 203.1),  # NVIDIA T4 datasheet, 2019
        ("A100", 312, 2039, 153.0),  # NVIDIA A100 datasheet, 2021: 80 GB SXM
        ("H100", 989.4, 3350, 295.3),  # NVIDIA H100 datasheet, 2022: SXM, 1,979 with sparsity
    ],
)
def test_ridges_from_the_datasheets(name: str, peak: float, bandwidth: float, ridge: float) -> None:
    """Dense FP16 tensor peak (TFLOP/s) over memory bandwidth (GB/s), from the datasheets named above.

    The twin must hold the printed numbers (to 0.1 %: H100's 989.4 is printed as 989 or half of 1,979), and the ridge
    is their quotient to one decimal, within one unit of it.
    """
    device: Device = getattr(Hardware.Cloud, name)
    assert_quantity_close(device.peak("fp16"), Q_(peak, "TFLOP/s"), rtol=1e-3)
    assert_quantity_close(device.memory_bw, Q_(bandwidth, "GB/s"), rtol=1e-3)
    assert_quantity_close(device.ridge_point("fp16"), Q_(ridge, "FLOP/byte"), rtol=0, atol=Q_(0.1, "FLOP/byte"))


# --- networks ---------------------------------------------------------------------------


def test_resnet50() -> None:
    """K. He et al., Deep residual learning for image recognition, CVPR 2016, table 1; torchvision's documentation of
    resnet50 prints 25,557,032 parameters and 4.09 "GFLOPS", which are multiply-accumulates. To the digits printed.

    The paper's own 3.8 x 10^9 has the stride in the 1 x 1 convolution (v1), so it is smaller than torchvision's.
    """
    network = zoo.network("resnet50", batch=1)
    assert f"{network.flops.m_as('GMAC'):.2f}" == "4.09"
    assert network.flops.m_as("GMAC") > 3.8
    assert sum(operator.kind == "conv2d" for operator in network) == 1 + 3 * (3 + 4 + 6 + 3) + 4
    assert Q_(25_557_032, "param") == RESNET50_PARAMS


def test_llama_7b_cache() -> None:
    """H. Touvron et al., LLaMA, 2023, table 2, and the published configuration of Llama-2-7b: 32 layers, 32 key-value
    heads of 4096/32. In FP16 a token takes 2 x 32 x 4096 x 2 = 524,288 bytes. Exact: a count."""
    a_token = formulas.kv_cache_bytes(layers=32, kv_heads=32, head_dim=128, tokens=1, element_size=HALF)
    assert a_token == Q_(524_288, "byte") == Q_(0.5, "MiB")
    assert formulas.kv_cache_bytes(32, 32, 128, 2048, HALF) == Q_(1, "GiB")


def test_seven_billion_parameters_are_fourteen_gigabytes() -> None:
    """The rule of thumb of two bytes for each FP16 weight. Exact; in GiB it is 13.04."""
    assert_quantity_close(formulas.weight_bytes(Q_(7, "Gparam"), HALF), Q_(14, "GB"))
    assert f"{formulas.model_memory(Q_(7, 'Gparam'), HALF, 'GiB'):.2f}" == "13.04"


def _gpt2_parameters(layers: int, width: int, words: int = 50257, positions: int = 1024) -> Quantity:
    """Embeddings, and for each block two norms, four projections and a fourfold feed-forward, with biases."""
    block = 2 * 2 * width + (3 * width * width + 3 * width) + (width * width + width)
    block += (4 * width * width + 4 * width) + (4 * width * width + width)
    return Q_(words * width + positions * width + layers * block + 2 * width, "param")


def test_gpt2_xl() -> None:
    """A. Radford et al., Language models are unsupervised multitask learners, 2019, table 2: 48 layers of width 1600
    are called 1542 million parameters; the released weights are the 1558M model, 1,557,611,200 by its own shapes.

    Exact: both are counts.
    """
    assert _gpt2_parameters(48, 1600) == Q_(1_557_611_200, "param")
    assert _gpt2_parameters(48, 1600) == GPT2_PARAMS


def test_decoding_gpt2_on_an_a100() -> None:
    """One FLOP for each byte in FP16 (two operations for each two-byte weight), so the rate is bandwidth over weights:
    2,039 GB/s / 3.0 GB = 680 token/s for 1.5 billion parameters, at 2.04 of 312 TFLOP/s, 0.65 %. As printed there:
    three digits."""
    a100, step = Hardware.Cloud.A100, decode_step(Q_(1.5, "Gparam"))
    result = roofline(a100, step)
    assert_quantity_close(step.intensity, Q_(1, "FLOP/byte"))
    assert_quantity_close(1 / result.time, Q_(680, "1/s"), rtol=1e-3)
    assert_quantity_close(result.figures["roof"], Q_(2.04, "TFLOP/s"), rtol=1e-3)
    assert f"{result.figures['utilisation'].magnitude:.2%}" == "0.65%"
    weights = formulas.weight_bytes(Q_(1.5, "Gparam"), HALF)
    assert_quantity_close(formulas.decode_rate_ceiling(weights, a100.memory_bw), Q_(680, "token/s"), rtol=1e-3)


# Worked by hand: FLOP, then bytes as input + filters + output in FP16. Each product is written out.
BY_HAND = {
    "convolution": (
        conv2d(32, 128, 256, size=56, kernel=3),
        2 * 32 * 256 * 56 * 56 * 128 * 9,
        2 * (32 * 128 * 56 * 56 + 256 * 128 * 9 + 32 * 256 * 56 * 56),
        762.2,
    ),
    "batch 32": (dense(32, 2048, 2048), 2 * 32 * 2048 * 2048, 2 * (32 * 2048 + 2048 * 2048 + 32 * 2048), 31.03),
    "batch 1": (dense(1, 2048, 2048), 2 * 2048 * 2048, 2 * (2048 + 2048 * 2048 + 2048), 0.999),
    "projections": (
        dense(32 * 512, 768, 3 * 768),
        2 * 32 * 512 * 768 * 2304,
        2 * (32 * 512 * 768 + 768 * 2304 + 32 * 512 * 2304),
        556.4,
    ),
    "depthwise": (
        depthwise_conv2d(32, 128, size=56),
        2 * 32 * 128 * 56 * 56 * 9,
        2 * (2 * 32 * 128 * 56 * 56 + 128 * 9),
        4.5,
    ),
    "rectifier": (relu(4096), 4096, 2 * 2 * 4096, 0.25),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_operators_worked_by_hand(name: str) -> None:
    """Counts are exact; the intensity to the digits given (0.05 % of 762.2, 0.999)."""
    operator, flop, data, intensity = BY_HAND[name]
    assert operator.flops.m_as("FLOP") == flop
    assert operator.data.m_as("byte") == data
    assert_quantity_close(operator.intensity, Q_(intensity, "FLOP/byte"), rtol=5e-4)
