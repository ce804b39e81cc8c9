"""One question, one time: what a network takes does not depend on whether a row asks, or a reader."""

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.calibration.case import Case
from mlsys.calibration.estimates import case_parameters, estimated
from mlsys.calibration.rows import Row
from mlsys.mapping.fusion import as_run
from mlsys.models.analysis import analyze
from mlsys.models.estimate import MATMUL, CaseBatch, kernel_times
from mlsys.models.estimate.eager import run_as
from mlsys.workloads import load, zoo
from mlsys_evidence.questions import interpret
from sampled import drawn

A100, ROME, PI = "NVIDIA A100 80GB", "AMD EPYC 7742", "Raspberry Pi 5 (Cortex-A76, 4 cores)"
# Versions that nobody measured: a reader names none.
SOFTWARE = {
    "compiled network on GPU": ("TensorRT 99.0", A100, ("fp16", "fp32")),
    "eager network on GPU": ("PyTorch 2.99 eager", A100, ("fp16", "fp32")),
    "torch.compile network on GPU": ("PyTorch 2.99 torch.compile", A100, ("fp16", "fp32")),
    "TensorFlow network on GPU": ("TensorFlow 2.99", A100, ("fp16", "fp32")),
    "TensorFlow XLA network on GPU": ("TensorFlow 2.99 XLA", A100, ("fp16", "fp32")),
    "compiled network on CPU": ("OpenVINO 2099.1", ROME, ("fp32",)),
    "eager network on CPU": ("PyTorch 2.99 eager", ROME, ("fp32",)),
    "torch.compile network on CPU": ("PyTorch 2.99 torch.compile", ROME, ("fp32",)),
    "ncnn network on CPU": ("ncnn 2099", PI, ("fp32",)),
    "ncnn int8 network on CPU": ("ncnn 2099", PI, ("int8",)),
    "mobile runtime network on CPU": ("TFLite v99.1 (ruy)", PI, ("fp32",)),
}
NAMES = ("resnet50", "vgg16", "alexnet", "mobilenet_v2", "efficientnet_b0", "densenet121", "googlenet",
         "shufflenet_v2_1.0", "vit-b16", "bert-base", "bert-large", "gpt2")  # fmt: skip
QUESTIONS = [
    (setting, precision, name, batch)
    for setting, (*_, precisions) in SOFTWARE.items()
    for precision in precisions
    for name in NAMES
    for batch in (1, 16)
]


# Multiplied in TF32 by these unless they are told not to, which a reader is told.
IN_TF32 = [question for question in QUESTIONS if "TensorFlow" in question[0] and question[1] == "fp32"]


def case_of(setting: str, precision: str, name: str, batch: int, note: str = "TF32 off") -> Case:
    """Return the case of a row with the question in a published table."""
    software, device, _ = SOFTWARE[setting]
    image = zoo.entry(name).image
    shape = f"{image[-1]}x{image[-1]} image" if image else "seq 128"
    note = "; ".join(words for words in ({ROME: "64 threads", PI: "4 threads"}.get(device), note) if words)
    workload = "CNN inference on CPU" if "CPU" in setting else "image classification inference"
    return interpret(
        Row("m0", device, "CPU" if "CPU" in setting else "datacenter GPU", 1, workload, name, precision, str(batch),
            shape, "latency", 1.0, "ms", software, "nobody/nothing", "", "primary", "g0", note)
    )  # fmt: skip


def above_its_bound(case: Case) -> float:
    """Return what a case takes where no kernel beats the main memory, or the peak, as a reader is told."""
    stack = CaseBatch.of([(case.engine, case.work, case.cached)])
    work = case.work
    left = 2 * work["m"] * work["n"] * work["k"] * work["batch"]  # of a convolution by Winograd's algorithms
    flops = np.where(work["kind"] == MATMUL, np.minimum(work["flops"], left), work["flops"])
    times = kernel_times(stack, case_parameters([case], stack)).at_least(
        flops, work["moved"], case.engine.matmul, case.engine.bandwidth
    )
    return float(times.seconds @ work["count"])


def check_same_estimate(case: Case, precision: str, name: str, batch: int) -> None:
    sizes = {} if zoo.entry(name).image else {"sequence": 128}
    network = as_run(load(name, batch=batch, precision=precision, **sizes), run_as(case.setting))
    result = analyze(Hardware[case.twin], network, precision=precision, software=case.setting, samples=batch)
    assert case.setting == result.setting
    assert result.estimate.m_as("s") == pytest.approx(above_its_bound(case), rel=0.015)
    plain = float(estimated([case], CaseBatch.of([(case.engine, case.work, case.cached)]))[0])
    assert result.estimate.m_as("s") >= 0.995 * plain


@pytest.mark.parametrize(("setting", "precision", "name", "batch"), drawn(QUESTIONS, 24, "questions"))
def test_a_reader_is_told_what_a_row_is_told(setting: str, precision: str, name: str, batch: int) -> None:
    check_same_estimate(case_of(setting, precision, name, batch), precision, name, batch)


@pytest.mark.parametrize(("setting", "precision", "name", "batch"), drawn(IN_TF32, 6, "in TF32"))
def test_a_row_in_fp32_by_default_is_what_a_reader_asks_in_tf32(
    setting: str, precision: str, name: str, batch: int
) -> None:
    check_same_estimate(case_of(setting, precision, name, batch, note=""), "tf32", name, batch)
