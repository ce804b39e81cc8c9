"""Blind evaluations are frozen, from sources that the fit does not know, and predicted without their rows."""

import gzip
import hashlib
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from click.testing import CliRunner

import mlsys_evidence
from mlsys.calibration.case import Inexpressible
from mlsys.calibration.rows import Row
from mlsys.cli.main import main
from mlsys.errors import ArgumentError
from mlsys.models.estimate import CaseBatch, calibrated_times
from mlsys.models.estimate.library import fallback_stack, fitted
from mlsys.models.estimate.ranges import ALL_SOURCES, fitted_ranges, range_of
from mlsys_evidence import Prediction, blind_evaluation_rows, completed_blind_evaluations, score
from mlsys_evidence.evaluate.blind_evaluation import (
    BLIND_EVALUATIONS,
    blind_evaluation_sources,
    first_answers,
    run_blind_evaluation,
)
from mlsys_evidence.fit import refit
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import DATA, cited_rows, shipped_rows

# Rows of each blind evaluation, and their sum: taken before any of them was predicted for the first time.
FROZEN = {
    1: (504, "98fc9366bedb239392b0eb2d8ed7d41811d668c333abe39b37c2d9d9d58c7481"),
    2: (531, "3de770a64cc150f3b5aba50f69f57999f9dd9207ef2fe8592bcc0c113145eb46"),
    3: (553, "f48fcd1f8033b53ff73207eea8c660b9caba025a9f974cf90595261f5d75ecb0"),
    4: (521, "84a1373508839e3797a53dd165d916485acbe7791785d9e1f4a2ba3524697212"),
    5: (845, "128f31ff069e8bd9dd2a61efb5366437bf3f99e3301237271c5cfb6369c6891c"),
    6: (155, "4716297c0f69e9cee6ada75e2ef260621121e9f2e6c1959d3a102e89df371736"),
}
# Lines of tables as their sources print them, and which of their numbers are rows.
PUBLISHED = (
    ("jcjohnson/cnn-benchmarks", "|GTX 1080 Ti|5.1.10|34.14|67.06|101.21|", "34.14 101.21"),
    ("deepseek-ai/DeepGEMM", "| 4096 | 2112  | 7168  | 1009 TFLOPS |     503 GB/s     |  1.1x   |", "1009"),
    ("mit-han-lab/llm-awq", "| LLaMA-3-8B  | 17.07             | 6.39              | 2.69x   |", "17.07 6.39"),
    ("openppl-public/ppl.nn", "| resnet50 |1.00594 | 1.07656 | 0.72971 | 0.753079 |", "1.00594 1.07656 .72971 .753079"),
    ("bytedance/effective_transformer", "| 100  | 15.08 | 10.39 | 1.45 | 8.75 | 1.72 |", "15.08 10.39"),
    ("Tencent/TNN", "| DenseNet 121    | 65.70                       | 45.83        |", "65.70 45.83"),
    ("turboderp-org/exllamav2", "| Llama2     | EXL2 4.0 bpw | 7B    | -  | -   | 185 t/s | **211** t/s |", "211"),
    ("tlkh/tf-metal-experiments", "| BERTLarge   | M1 Max 32c | 16        | 19 seq/sec  | 36W   | 14 GB  |", "19"),
    ("google-coral/pycoral", "inception_v4_299_quant_edgetpu.tflite 100.33", "100.33"),
    ("sipeed/TinyMaix", "|STM32H750   |ARM CM7   |  1MB|  1024KB| 480M| 94  | 64  | 15  | <1  ||", "94 64"),
    ("turboderp/exllama", "| Llama | 7B | 128 | no | 2,048 t | 5,194 MB  | 13,918 t/s | 173 t/s |", "13918 173"),
    ("Megvii-BaseDetection/YOLOX", "|[YOLOX-s](./exps/default/yolox_s.py) |640  |40.5 |40.5  |9.8  |9.0 |", "9.8"),
    ("tile-ai/tilelang", "|   256 | 0.089056    | 386                 |", "386"),
    ("aallan/benchmarking-ml-on-the-edge", "| Jetson Nano  | TensorRT  | | 72.3 | 61.6 |", "72.3 61.6"),
    ("Azure/AI-benchmarking-guide", "| 1024        | 1024      | 1024     | 119.4                   |", "119.4"),
    ("OAID/Tengine", "squeezenet_v1.1  min =  190.74 ms   max =  191.98 ms   avg =  191.15 ms", "191.15"),
    ("foundation-model-stack/fms-fsdp", "| 7b  | HSDP  | Y  | No AC   | 2     | 4550     | 9600     |", "4550 9600"),
    ("siliconflow/onediff", "| PyTorch iteration speed | 21.25 it/s | 38.32 it/s | 36.11 it/s |", "21.25 38.32 36.11"),
    ("huggingface/diffusers", "| SD - txt2img | 40.5 | 41.89 | 44.65 | 49.81 |", "40.5 41.89 44.65 49.81"),
    ("freedomtan/glDelegateBench", "|Mobilenet | 117 | 37 | 20 |", "117 37 20"),
    ("swdee/go-rknnlite", "| YOLOv5s      | 33.3ms    | 25.5ms    | 1.5ms    | 5.5ms     |", "25.5"),
    ("ELS-RD/transformer-deploy", "[TensorRT (FP16)] mean=80.57ms, sd=1.00ms, min=76.23ms, max=83.16ms", "80.57"),
    ("leimao/CUDA-GEMM-Optimization", "| cuBLAS GEMM Kernel                | 138.955  |", "138.955"),
    ("alibaba/MNN", "[ - ] resnet-v2-50.mnn     max =  166.551ms  min =  152.422ms  avg =  154.803ms", "154.803"),
    ("facebookresearch/LeViT", "levit.LeViT_128S cuda:0 12879.792635259 images/s @ batch size 2048", "12879.792635259"),
    ("PaddlePaddle/FastDeploy", "| [MobileNetV1_ssld] | TensorRT | GPU | 0.91 | 0.43 |0.49 | 0.54 |", ".91 .43"),
    ("microsoft/BitNet", "| 20480 × 3200        | 30.99             | 112.39            |   3.63     |", "112.39"),
    ("pranjalssh/fast.cu", "cuBLAS: 795 TFLOPs", "795"),
    ("mli/transformers-benchmarks", "| 116 / 230 | 60 / 95  |  14 / 95 | 42 / 81 | 86 / 172 |", "116 230 60 95 14 172"),
    ("google/jetstream-pytorch", "2024-03-28 | TPU v5e-8 | bfloat16 | 96 | 2048 | 1024 | 1024 | 3663", "3663"),
    ("pytorch/tutorials", "| resnet50   |  4.3 |                 233.9 |                 225.2 | False", "225.2"),
    ("PaddlePaddle/PaddleSlim", "| MobileNetV1 | 88.4955 | 47.95 | 27.5189 |", "88.4955 27.5189"),
    ("microsoft/DeepSpeed", "| 12               | 49.32    | 61.41      | 1.2         |", "49.32 61.41"),
    ("ml-explore/mlx-lm", "q5 g32 | 63.16 | 1570.80 | 110.29 | 4.00 | mlx-community/Qwen3-4B", "110.29 1570.8"),
    ("deepseek-ai/DeepEP", "| Intranode |      8       |  153 GB/s (NVLink)   |      8      |  158 GB/s |", "153 158"),
    ("bytedance/flux", "| MoE layer0 (H800) | 4.702ms | 1.146ms |", "1.146 4.702"),
    ("ymcui/Chinese-LLaMA-Alpaca-2", "| GPU Speed | 53 | 19 | 21 | 17 | 18 | 20 | x | x | 25 | 26 |", "17 20 25 26 53"),
    ("artyom-beilis/pytorch_dlprim", "|resnet18|64|695.096|419.69|60||resnet18|64|1044.985|", "695.096 1044.985"),
    ("shanemmattner/embedded-agent-bridge", "| micro_speech (CNN) | 1,716,853 | 11.4 ms | 22.7 ms |", "11.4 22.7"),
    ("Piorkos/tinyML-performance", "| image classification | 547 ms | 423 ms | 82.4 ms | 27.0 ms |", "27 82.4 423 547"),
    ("roboflow/rf-detr", "|  LW-DETR-T | 60.7 | 42.9 | 84.7 | 57.1 | 1.9 | 12.1 | 640x640 |", "1.9"),
    ("Qengineering/YoloV5-NPU", "| yolov7           | yolov7-tiny    | 53.4    | 16.1       |", "16.1 53.4"),
)  # fmt: skip
OPEN = ("MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "Unlicense")
ALL = tuple(row for number in BLIND_EVALUATIONS for row in blind_evaluation_rows(number))


def of(source: str, **wanted: object) -> Row:
    """Return the only row of a source that has these values."""
    (row,) = (
        row
        for row in ALL
        if row.source == source and all(getattr(row, name) == value for name, value in wanted.items())
    )
    return row


@pytest.mark.parametrize("number", BLIND_EVALUATIONS)
def test_a_set_is_the_one_that_was_frozen_before_the_first_answer(number: int) -> None:
    count, frozen = FROZEN[number]
    kept = gzip.decompress((DATA / f"{BLIND_EVALUATIONS[number]}.csv.gz").read_bytes())
    assert hashlib.sha256(kept).hexdigest() == frozen
    assert len(blind_evaluation_rows(number)) == count


def test_no_row_is_in_two_blind_evaluations() -> None:
    assert len({row.id for row in ALL}) == len(ALL)


@pytest.mark.parametrize(("source", "line", "rows"), PUBLISHED)
def test_rows_are_what_their_sources_print(source: str, line: str, rows: str) -> None:
    printed = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", line.replace(",", ""))}
    values = {float(number) for number in rows.split()}
    assert values <= printed, "the quotation itself"
    own: dict[str, set[float]] = {}
    for row in ALL:
        if row.source == source:
            own.setdefault(row.source_path, set()).add(row.value)
    assert values in own.values()


@pytest.mark.parametrize("number", BLIND_EVALUATIONS)
def test_no_source_of_the_fit_or_of_another_blind_evaluation_is_in_it(number: int) -> None:
    others = {row.source for other in BLIND_EVALUATIONS if other != number for row in blind_evaluation_rows(other)}
    known = {"/".join(name.lower().split("/")[:2]) for name in (row.source for row in (*shipped_rows(), *cited_rows()))}
    known |= {name.lower() for name in others}
    sources = blind_evaluation_sources(number)
    for name, source in sources.items():
        assert not any(re.match(rf"{re.escape(name.lower())}\b(?!-)", other) for other in known), name
        assert source["licence"].startswith(OPEN), name
        assert source["version"] and source["method"]
    assert {row.source for row in blind_evaluation_rows(number)} == set(sources)
    for row in blind_evaluation_rows(number):
        version = row.source_path.partition("@")[2].split()[0]
        assert version[:7] in sources[row.source]["version"]


@pytest.mark.parametrize("number", BLIND_EVALUATIONS)
def test_the_fit_reads_no_row_of_it(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refit, "shipped_rows", lambda: shipped_rows()[::40])
    fitted_rows = {case.row.id for cases in refit.settings().values() for case in cases}
    assert fitted_rows
    assert not fitted_rows & {row.id for row in blind_evaluation_rows(number)}
    published = {(row.device, row.seq_or_shape, row.model, row.workload, row.value) for row in shipped_rows()}
    assert not [
        row
        for row in blind_evaluation_rows(number)
        if (row.device, row.seq_or_shape, row.model, row.workload, row.value) in published
    ]


@pytest.mark.parametrize("number", completed_blind_evaluations())
def test_scores_are_those_of_each_row_by_hand(number: int) -> None:
    rows = blind_evaluation_rows(number)
    lines = gzip.decompress((DATA / f"{BLIND_EVALUATIONS[number]}_first.csv.gz").read_bytes()).decode().splitlines()
    first = {name: tuple(map(float, ends)) for name, *ends in (line.split(",") for line in lines[1:]) if ends[1]}
    whole = score(first_answers(number))
    inside = sum(first[row.id][1] <= row.value <= first[row.id][2] for row in rows if row.id in first)
    assert whole.expressible == len(first)
    assert whole.coverage == pytest.approx(100 * inside / len(first), abs=0.01)
    errors = [abs(first[row.id][0] / row.value - 1) for row in rows if row.id in first]
    assert whole.median_ape == pytest.approx(100 * median(errors), abs=0.01)


def test_what_was_answered_is_not_answered_again() -> None:
    with pytest.raises(ValueError, match="was run before"):
        run_blind_evaluation(1)
    with pytest.raises(ValueError, match="`number` must be that of a blind evaluation"):
        run_blind_evaluation(len(BLIND_EVALUATIONS) + 1)


def test_an_answer_without_its_case_is_scored_by_its_unit() -> None:
    time, rate = (next(row for row in ALL if row.unit == unit) for unit in ("ms", "tokens/s"))
    slow = [Prediction(time, "", value=4 * time.value), Prediction(rate, "", value=rate.value / 4)]
    assert [each.ratio for each in slow] == [4, 4]
    nothing = score([Prediction(time, ""), Prediction(rate, "")])
    assert (nothing.rows, nothing.expressible, nothing.median_ape) == (2, 0, None)
    graded = score([*slow, Prediction(time, "")])
    assert (graded.rows, graded.expressible, graded.median_ape, graded.bias) == (3, 2, 187.5, 300)


def test_the_command_takes_no_rows_beside_a_blind_evaluation(tmp_path: Path) -> None:
    run = CliRunner()
    table = tmp_path / "rows.csv"
    done = run.invoke(main, ["validate", "--blind-evaluation", "1", "--csv", str(table)])
    assert done.exit_code == 0, done.output
    line = next(line for line in done.output.splitlines() if line.startswith("all, as first answered"))
    assert line.split()[4:6] == ["504", "353"]
    heads, first, *_ = table.read_text().splitlines()
    assert (heads.rpartition(",")[2], first.rpartition(",")[2]) == ("blind_evaluation", "1")
    for other in (["--refit"], ["--data", str(DATA / "cited.csv")]):
        refused = run.invoke(main, ["validate", "--blind-evaluation", *other])
        assert refused.exit_code == 2
        assert "--blind-evaluation" in refused.output
    unknown = run.invoke(main, ["validate", "--blind-evaluation", "9"])
    assert unknown.exit_code == 2
    assert "--blind-evaluation takes a number (1, 2, " in unknown.output


def test_names_of_the_last_release_still_work() -> None:
    done = CliRunner().invoke(main, ["validate", "--exam", "9"])
    assert done.exit_code == 2 and "--blind-evaluation takes a number" in done.output
    with pytest.warns(DeprecationWarning, match="write completed_blind_evaluations"):
        assert mlsys_evidence.held_examinations is completed_blind_evaluations
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mlsys_evidence.nothing


def test_all_blind_evaluations_are_reported_unless_one_is_named() -> None:
    done = CliRunner().invoke(main, ["validate", "--blind-evaluation", "--json"])
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert list(record["blind_evaluations"]) == [str(number) for number in completed_blind_evaluations()]
    assert record["rows"] == sum(len(blind_evaluation_rows(number)) for number in completed_blind_evaluations())
    assert record["blind_evaluations"]["1"]["first_answers"]["median_ape"] == 44.79


def test_bits_of_a_weight_are_read_where_they_are_stated() -> None:
    four, three = (
        interpret(of("turboderp-org/exllamav2", model="llama-2-7b", precision=f"EXL2 {bits} bpw weights, fp16")).work
        for bits in ("4.0", "3.0")
    )
    assert four.weights / three.weights == pytest.approx(4 / 3, rel=1e-6)


@pytest.mark.parametrize(
    ("source", "software", "setting"),
    [
        ("apache/mxnet", "MXNet 1.2.0, cuDNN 7.0.5", "eager"),
        ("apache/mxnet", "MXNet 1.2.0 CPU", "compiled"),
        ("microsoft/onnxruntime", "PyTorch 1.5.1 TorchScript", "eager"),
        ("FlagOpen/FlagPerf", "PaddleNLP, FlashAttention", "Megatron"),
        ("li-plus/chatglm.cpp", "chatglm.cpp (ggml, CUDA)", "llama.cpp"),
        ("opencv/opencv_zoo", "OpenCV DNN", "compiled"),
        ("opencv/opencv_zoo", "OpenCV DNN (CUDA, cuDNN)", "eager"),
        ("freedomtan/glDelegateBench", "TFLite GPU delegate (OpenGL ES)", "opencl"),
    ],
)
def test_programs_of_unseen_sources_are_those_of_their_kind(source: str, software: str, setting: str) -> None:
    rows = [row for row in ALL if (row.source, row.software) == (source, software)]
    assert rows
    assert {interpret(row).setting.split()[0] for row in rows} == {setting}


def test_an_edge_tpu_streams_what_its_memory_does_not_hold() -> None:
    board = "Google Coral Edge TPU (Dev Board)"
    small = interpret(of("google-coral/pycoral", device=board, model="MobileNet-v1 1.0")).work
    large = interpret(of("google-coral/pycoral", device=board, model="inception_v4")).work
    assert small.weights == 0, "4.2 million parameters of a byte fit 6.9 MiB"
    assert large.weights == pytest.approx(42.7e6 - 6.9 * 2**20, rel=0.03)


def test_a_language_model_on_one_thread_has_one_core() -> None:
    row = of("microsoft/T-MAC", device="NVIDIA Jetson AGX Orin", value=1.04)
    one, twelve = (
        interpret(replace(row, workload=f"LLM decode (autoregressive) on CPU {threads}")).engine
        for threads in ("1 thread", "12 threads")
    )
    assert twelve.matmul / one.matmul == pytest.approx(12, rel=0.01)


def test_a_kernel_of_a_controller_may_state_time_or_ticks() -> None:
    row = next(row for row in ALL if row.workload == "kernel" and row.device == "ESP32-S3")
    ticks = replace(row, value=row.value * 240, unit="CPU ticks")
    assert interpret(ticks).seconds == pytest.approx(interpret(row).seconds) == pytest.approx(row.value * 1e-6)


def test_messages_between_machines_are_refused() -> None:
    row = next(row for row in ALL if "nodes" in row.workload)
    with pytest.raises(Inexpressible, match="between nodes"):
        interpret(row)


def test_four_in_five_lie_within_the_range_where_another_setting_stands_in() -> None:
    known = fitted()
    reached: dict[str, list[bool]] = {}
    for row in shipped_rows()[::9]:
        try:
            case = interpret(row)
        except (ArgumentError, Inexpressible):
            continue
        other = fallback_stack(case.setting, [name for name in known if name != case.setting])
        if other not in fitted_ranges():
            continue
        stack = CaseBatch.of([(case.engine, case.work, case.cached)])
        seconds = max(float(calibrated_times(stack, known[other].vectorised()[None])[0]), case.at_least)
        apart = abs(math.log(case.seconds / seconds))
        reached.setdefault(case.setting, []).append(apart < float(fitted_ranges()[other]["lent"]))
    assert len(reached) > 60
    assert 0.72 < np.mean([np.mean(own) for own in reached.values()]) < 0.88
    usual = range_of("Paddle TensorRT transformer on GPU", "V100", source=ALL_SOURCES)
    lent = fitted_ranges()["Paddle TensorRT network on GPU"]["lent"]
    assert (usual.low, usual.high) == pytest.approx((math.exp(-lent), math.exp(lent)))
    unseen = range_of("Paddle TensorRT transformer on GPU", "V100", source="a reader")
    assert unseen.low < usual.low < usual.high < unseen.high
    assert "is used instead" in unseen.why and "the measuring source is unknown" in unseen.why
