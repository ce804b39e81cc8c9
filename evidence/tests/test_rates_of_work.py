"""Rows that state operations a second of a network, and products that matrix units multiply in FP32."""

from dataclasses import replace

import pytest

from mlsys.calibration.case import Inexpressible
from mlsys.calibration.engines import engine_for
from mlsys.calibration.rows import Row
from mlsys.hardware import Hardware
from mlsys.workloads import zoo
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows


def _row(**words: object) -> Row:
    return replace(shipped_rows()[0], n_devices=1, note="", quality="primary", **words)  # type: ignore[arg-type]


def test_operations_a_second_are_a_rate_of_the_networks_work() -> None:
    """Jouppi et al. 2017: CNN0 has 2,888 multiply-adds for each byte of its eight million weights, and does 86 TOP/s
    where the peak, 65,536 multiply-adds at 700 MHz, is called 92.
    """
    row = _row(
        device="Google TPU v1", workload="production NN inference", model="CNN0 (16 conv layers, 8M weights)",
        precision="int8", batch="8", seq_or_shape="", metric="achieved throughput", value=86.0, unit="TOP/s",
    )  # fmt: skip
    case = interpret(row)
    assert case.inverse
    assert case.seconds == pytest.approx(2 * 8e6 * 2888 / 86e12, rel=0.01)
    assert interpret(replace(row, value=86000.0, unit="GOP/s")).seconds == pytest.approx(case.seconds)


def test_the_convolutions_of_a_network_are_read_as_frames() -> None:
    """Chen et al. 2017: Eyeriss does 35 frames a second of AlexNet's convolutions, which have 666 million MAC."""
    row = _row(
        device="Eyeriss (65 nm, 168 PE)", workload="CNN conv layers", model="AlexNet conv layers", precision="int16",
        batch="4", seq_or_shape="227x227", metric="throughput", value=35.0, unit="frames/s", software="",
    )  # fmt: skip
    case = interpret(row)
    assert case.seconds == pytest.approx(4 / 35)
    assert case.work.flops == pytest.approx(4 * 2 * 666e6, rel=0.01)


def test_tensor_engines_of_trainium_multiply_fp32() -> None:
    """AWS, NeuronCore-v2: 47.5 TFLOP/s in FP32 of a chip, ten times its vector engines'; NVIDIA's have no such rate."""
    trainium, card = Hardware["Trainium1"], Hardware["A100_80GB"]
    assert engine_for(trainium, "fp32", vector_unit=True).matmul == pytest.approx(47.5e12)
    assert engine_for(card, "fp32", vector_unit=True).matmul == pytest.approx(19.5e12)


def test_who_published_a_network_is_no_part_of_its_name() -> None:
    assert zoo.resolve("HuggingFace BERT-Large") is zoo.resolve("bert-large")


def test_little_in_flight_is_bound_by_the_latency_of_an_h200() -> None:
    """By Little's law: 16 bytes of 3 % of 132 x 2,048 threads in 1.5 latencies of 373 ns, whatever the bandwidth."""
    row = _row(
        device="NVIDIA H200 SXM", workload="GPU STREAM scale vs occupancy (Little's law)", precision="fp64", batch="",
        seq_or_shape="2.1 GB per array, blockSize=32, occupancy=3.0%", metric="memory bandwidth", value=240.0,
        unit="GB/s", software="gpu-stream",
    )  # fmt: skip
    case = interpret(row)
    bytes_a_second = 16 * 0.03 * 132 * 2048 / (1.5 * 373.4e-9)
    assert case.at_least == pytest.approx(2 * 2.1e9 / bytes_a_second)


def test_two_sockets_stream_each_from_its_own_memory() -> None:
    """Of the rate that both have, one socket moves half; its memory gives 76.8 GB/s (Intel, Xeon E5-2699 v4)."""
    row = _row(
        device="Intel Xeon Broadwell 2S (BabelStream)", workload="STREAM Triad", precision="fp64", batch="",
        seq_or_shape="33554432 (elements)", metric="memory bandwidth", value=124.8, unit="GB/s", software="",
    )  # fmt: skip
    case = interpret(row)
    moved = float((case.work["moved"] * case.work["count"]).sum())
    assert moved / case.seconds == pytest.approx(124.8e9 / 2)
    assert case.seconds > moved / 76.8e9
    with pytest.raises(Inexpressible, match="the traffic between its sockets"):
        interpret(replace(row, workload="beyond cache"))
