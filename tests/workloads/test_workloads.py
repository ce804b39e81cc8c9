"""Operators carry the counts of the book's formulas and nothing of a machine."""

import pytest

from mlsys.errors import ArgumentError, ArgumentUnitError, UnknownNameError
from mlsys.precision import PRECISIONS, element_size
from mlsys.testing import assert_depends_on, assert_quantity_close
from mlsys.units import Q_
from mlsys.workloads import (
    Network,
    attention,
    conv2d,
    decode_step,
    dense,
    depthwise_conv2d,
    elementwise,
    gemm,
    layer_norm,
    relu,
    softmax,
    zoo,
)

MAKERS = {
    "gemm": lambda precision: gemm(32, 64, 128, precision),
    "dense": lambda precision: dense(32, 64, 128, precision),
    "conv2d": lambda precision: conv2d(2, 8, 16, 14, 3, precision=precision),
    "depthwise": lambda precision: depthwise_conv2d(2, 8, 14, precision=precision),
    "relu": lambda precision: relu(100, precision),
    "layer_norm": lambda precision: layer_norm(10, 16, precision),
    "softmax": lambda precision: softmax(10, 16, precision),
    "attention": lambda precision: attention(1, 2, 8, 8, 4, precision),
    "decode_step": lambda precision: decode_step(Q_(1, "Mparam"), precision=precision),
}


@pytest.mark.parametrize("name", MAKERS)
def test_work_does_not_depend_on_the_number_format_but_bytes_do(name: str) -> None:
    base = MAKERS[name]("fp32")
    for precision in PRECISIONS:
        other = MAKERS[name](precision)
        assert_quantity_close(other.flops, base.flops)
        assert_quantity_close(other.data, base.data * PRECISIONS[precision] / 32)
        assert other.precision == precision
        assert_quantity_close(other.intensity, other.flops / other.data)


@pytest.mark.parametrize("name", MAKERS)
def test_unknown_formats_are_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown precision 'fp61'\. Known: fp64.* Did you mean 'fp6'\?"):
        MAKERS[name]("fp61")


def test_sizes_of_elements() -> None:
    """IEEE 754 binary16/32/64; OCP 8-bit; TF32 occupies 32 bits in memory (NVIDIA A100 whitepaper)."""
    for precision, size in {
        "fp64": 8,
        "fp32": 4,
        "tf32": 4,
        "fp16": 2,
        "bf16": 2,
        "fp8": 1,
        "int8": 1,
        "int4": 0.5,
    }.items():
        assert_quantity_close(element_size(precision), Q_(size, "byte"))


def test_a_dense_layer_is_a_product() -> None:
    layer, product = dense(32, 100, 200), gemm(32, 200, 100)
    assert (layer.flops, layer.data) == (product.flops, product.data)
    assert layer.name == "dense 100→200, batch 32"


def test_same_padding_keeps_the_size_and_stride_halves_it() -> None:
    assert conv2d(1, 8, 8, 56, 3).shape["out_size"] == 56
    assert conv2d(1, 8, 8, 56, 3, stride=2).shape["out_size"] == 28
    assert conv2d(1, 3, 64, 224, 7, stride=2).shape["out_size"] == 112
    assert conv2d(1, 8, 8, 56, 3, padding=0).shape["out_size"] == 54
    assert depthwise_conv2d(1, 8, 56).shape["groups"] == 8


def test_fusing_attention_saves_traffic_and_no_work() -> None:
    apart, fused = (attention(2, 4, 128, 256, 64, fused=fused) for fused in (False, True))
    assert apart.flops == fused.flops
    assert_quantity_close(apart.data - fused.data, 4 * Q_(2 * 4 * 128 * 256 * 2, "byte"))


def test_decoding_is_two_operations_for_each_weight_and_sequence() -> None:
    model = Q_(3, "Mparam")
    alone, eight = decode_step(model), decode_step(model, batch=8)
    assert_quantity_close(alone.flops, Q_(6, "MFLOP"))
    assert_quantity_close(eight.flops, 8 * alone.flops)
    assert eight.data == alone.data, "the weights are read once for all"


def test_the_terms_of_a_normalisation_are_counted_one_by_one() -> None:
    """Ba et al. 2016, eq. 2, per element: sum; subtract, square, sum; subtract, scale; gain, bias."""
    assert_quantity_close(layer_norm(10, 16).flops, Q_(10 * 16 * (1 + 3 + 2 + 2), "FLOP"))
    assert_quantity_close(softmax(10, 16).flops, Q_(10 * 16 * 5, "FLOP"))
    assert_quantity_close(layer_norm(10, 16, operations_per_element=6).flops, Q_(960, "FLOP"))


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: gemm(0, 2, 2), r"gemm\(\): `m`"),
        (lambda: conv2d(1, 3, 8, 4, 7, padding=0), "the kernel does not fit"),
        (lambda: conv2d(1, 3, 8, 8, 3, groups=2), "`groups` must divide"),
        (lambda: layer_norm(-2, -3), r"layer_norm\(\): `rows`"),
        (lambda: softmax(2, 2.5), r"softmax\(\): `width`"),
        (lambda: layer_norm(2, 3, operations_per_element=0), "must be above zero FLOP, got 0"),
        (lambda: elementwise(10, 0), "A copy is traffic, not work"),
        (lambda: elementwise(10, float("nan")), "finite"),
        (lambda: decode_step(Q_(1, "Mparam"), batch=0), r"decode_step\(\): `batch`"),
        (lambda: decode_step(Q_(1, "Mparam"), batch=2.5), r"decode_step\(\): `batch`"),
    ],
)
def test_shapes_that_cannot_be_are_refused(make: object, complaint: str) -> None:
    with pytest.raises(ArgumentError, match=complaint):
        make()  # type: ignore[operator]


def test_a_model_of_bare_numbers_is_refused() -> None:
    with pytest.raises(ArgumentUnitError, match="`parameters` must be a quantity in param"):
        decode_step(1_500_000_000)


def test_a_network_is_the_sum_of_its_operators() -> None:
    parts = (gemm(8, 8, 8), relu(64), conv2d(1, 2, 2, 4, 3))
    network = Network("three", parts)
    assert_quantity_close(network.flops, Q_(sum(part.flops.m_as("FLOP") for part in parts), "FLOP"))
    assert_quantity_close(network.data, Q_(sum(part.data.m_as("byte") for part in parts), "byte"))
    assert_quantity_close(network.intensity, network.flops / network.data)
    assert len(network) == 3
    assert list(network) == list(parts)


def test_workloads_lean_on_no_machine() -> None:
    for make in MAKERS.values():
        assert_depends_on(make("fp16").intensity)


def test_resnet_scales_with_its_batch_and_reads_its_weights_once() -> None:
    single, many = (zoo.network("resnet50", batch=batch) for batch in (1, 32))
    assert_quantity_close(many.flops, 32 * single.flops)
    assert single.data < many.data < 32 * single.data
