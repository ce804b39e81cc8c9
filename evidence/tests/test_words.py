"""Descriptions of unseen sources' rows, compared with arithmetic on their meaning."""

from dataclasses import replace

import pytest

from mlsys.calibration.case import Inexpressible
from mlsys.calibration.rows import Row
from mlsys.workloads import zoo
from mlsys_evidence.ingest.reading import device_of, number_format
from mlsys_evidence.ingest.software import network_software, unrolls
from mlsys_evidence.questions import interpret

_ROW = Row(
    "mine", "NVIDIA RTX 3090", "consumer GPU", 1, "LLM decode (autoregressive)", "llama-2-7b", "fp16", "1",
    "128 generated tokens", "latency per token", 17.0, "ms", "llama.cpp (CUDA)", "mine", "", "primary", "mine", "",
)  # fmt: skip
_ENCODER = replace(
    _ROW, workload="transformer encoder forward", model="BERT-base", batch="40", seq_or_shape="seq 384",
    metric="latency", value=50.0, software="TensorRT 8.4",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "gibibytes"), [("Q2_K", 2.63), ("Q3_K_M", 3.06), ("Q4_K_M", 3.80), ("Q5_K", 4.45), ("Q6_K", 5.15)]
)
def test_a_file_of_seven_billion_weights_is_as_large_as_its_makers_print(name: str, gibibytes: float) -> None:
    """Sizes for LLaMA v1 7B, 6.738e9 weights: ggml-org/llama.cpp, tools/quantize/quantize.cpp."""
    assert number_format(name).weight * 6.738e9 / 2**30 == pytest.approx(gibibytes, rel=0.015)


@pytest.mark.parametrize("length", ["one generated token", "length not stated"])
def test_one_sequence_of_unknown_length_reads_little_but_its_weights(length: str) -> None:
    stated, unstated = interpret(_ROW), interpret(replace(_ROW, seq_or_shape=length))
    moved = [float((case.work["moved"] * case.work["count"]).sum()) for case in (stated, unstated)]
    assert moved[1] == pytest.approx(moved[0], rel=1e-6)
    assert moved[1] == pytest.approx(2 * 6.74e9, rel=0.03)
    with pytest.raises(Inexpressible, match="tokens generated not stated"):
        interpret(replace(_ROW, seq_or_shape=length, batch="64"))


def test_texts_a_second_and_the_time_of_a_batch_of_them_are_one_measurement() -> None:
    rate = replace(_ENCODER, metric="throughput", value=40 / 0.050, unit="samples/s")
    assert interpret(rate).seconds == pytest.approx(interpret(_ENCODER).seconds)
    assert interpret(rate).inverse


def test_blocks_described_in_words_have_the_products_of_those_blocks() -> None:
    """A block of width h has 12 h² weights: 4 around attention, 8 in the layers that are four times as wide."""
    case = interpret(replace(_ENCODER, model="an encoder (6 layers, 8 heads x64, hidden 512)"))
    weights = float((case.work["weights"] * case.work["count"]).sum())
    assert weights == pytest.approx(6 * 12 * 512**2 * 2, rel=0.01)


def test_pytorch_runs_a_stack_of_blocks_as_any_network() -> None:
    eager = interpret(replace(_ENCODER, precision="fp16", software="PyTorch 2.1 eager (Hugging Face Transformers)"))
    assert eager.setting == "eager network on GPU"


def test_a_saving_mode_is_slower_by_its_clock() -> None:
    tiny = replace(
        _ROW, workload="MLPerf Tiny KWS", model="KWS DS-CNN", precision="int8", seq_or_shape="49x10 MFCC",
        metric="latency", software="TFLite Micro",
    )  # fmt: skip
    fast, slow = (interpret(replace(tiny, device=f"Ambiq Apollo510 ({mode} mode)")) for mode in ("HP", "LP"))
    assert fast.engine.matmul / slow.engine.matmul == pytest.approx(250 / 96)


def test_names_of_programs_say_what_they_run_on() -> None:
    assert unrolls("Caffe") and not unrolls("Caffe, cuDNN")
    assert network_software("PlaidML 0.7 (Keras 2.2)") == network_software("Caffe (OpenCL)") == "opencl"
    assert network_software("Sophon SDK (TPU-MLIR)") == network_software("Pulsar2 3.2") == "npu runtime"


def test_a_language_model_by_pulsar_multiplies_wide_numbers() -> None:
    """Its picture networks are bytes throughout."""
    axera = replace(_ROW, device="Axera AX650N", precision="quantised by Pulsar2 (bits not stated)", software="Pulsar2")
    picture = replace(
        axera, workload="CNN inference", model="ResNet-50", seq_or_shape="224x224 image", metric="latency"
    )
    assert interpret(axera).engine.matmul < interpret(picture).engine.matmul


def test_one_name_of_two_chips_is_refused() -> None:
    assert device_of("Huawei Ascend 910 (Atlas 800, eight)")[0].id == "Ascend910"
    with pytest.raises(Inexpressible, match="no twin"):
        device_of("Huawei Ascend 910 (Atlas 800T A2)")


def test_an_ascend_trains_products_of_fp32_on_its_cubes() -> None:
    """A cube does 4,096 multiply-adds a cycle, in FP16 alone; its vector units 64."""
    step = replace(
        _ROW, device="Huawei Ascend 910 (Atlas 800, eight)", workload="image classification training",
        model="ResNet-50", batch="32", seq_or_shape="224x224 image", metric="latency",
        software="MindSpore (graph mode)",
    )  # fmt: skip
    rates = [interpret(replace(step, precision=precision)).engine.matmul for precision in ("fp32", "fp16")]
    assert rates[0] == rates[1]


def test_a_pipeline_is_its_steps_of_each_picture_and_guidance_looks_twice() -> None:
    pipeline = replace(
        _ROW, workload="diffusion pipeline (Flux transformer, 28 steps)", model="FLUX.1-dev 1024x1024",
        precision="bf16", batch="4", seq_or_shape="1024x1024 image", metric="latency", software="PyTorch torch.compile",
    )  # fmt: skip
    film = replace(
        pipeline, workload="diffusion pipeline (video transformer, 50 steps)", model="CogVideoX-5B", batch="1"
    )
    for row, name, looks in ((pipeline, "flux", 28 * 4), (film, "cogvideox_5b", 50 * 2)):
        work = interpret(row).work
        flops = zoo.network(name, precision="fp16").flops.m_as("FLOP")
        assert float(work["flops"] @ work["count"]) == pytest.approx(looks * flops, rel=0.02)
    with pytest.raises(Inexpressible, match="steps"):
        interpret(replace(pipeline, workload="diffusion pipeline"))


def test_narrow_weights_alone_are_multiplied_in_16_bits() -> None:
    for words in ("fp8 weights, bf16", "int8 weights"):
        fmt = number_format(words)
        assert (fmt.computes, fmt.weight, fmt.value) == ("fp16", 1, 2)
    assert number_format("fp8 (dynamic), bf16").computes == "fp8"
