"""Software stacks: a value for what had been a text, and the text back again."""

import pytest

import mlsys
from mlsys import Hardware, SoftwareStack
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.models.estimate.library import fitted
from mlsys.models.software import software_of
from sampled import over_all


@over_all(fitted())
def test_every_fitted_name_is_read_and_written_back(name: str) -> None:
    stack = SoftwareStack.parse(name)
    assert str(stack) == name
    assert stack.family and stack.machine in ("GPU", "CPU", "NPU", "TPU", "SoC", "MCU")


def test_one_family_is_one_family_at_every_work_and_version() -> None:
    families = {stack.family for stack in SoftwareStack.known()}
    assert {"eager", "compiled", "torch.compile", "vLLM", "SGLang", "llama.cpp", "ncnn", "mobile runtime"} <= families
    assert {stack.version for stack in SoftwareStack.known() if stack.family == "vLLM"} == {"", "0.14"}
    assert not [family for family in families if family.endswith(("network", "gemm", "attention", "decode", " 1"))]


def test_a_stack_and_its_name_get_one_answer_and_the_result_says_which() -> None:
    eager = SoftwareStack("eager", work="network", machine="GPU")
    answers = [
        mlsys.analyze("A100", "resnet8", software=each)
        for each in (eager, str(eager), "eager network", "eager", SoftwareStack("eager"))
    ]
    assert all(answer.record() == answers[0].record() for answer in answers)
    assert {answer.software for answer in answers} == {eager}
    compared = mlsys.compare(["A100", "T4"], "resnet8", software=SoftwareStack("eager"))
    assert compared.analyses[0].software == eager


def test_a_sweep_takes_stacks_and_names_alike() -> None:
    eager = mlsys.analyze("A100", "resnet8", software="eager").estimate.m_as("s")
    for each in (SoftwareStack("eager"), "eager", "eager network", "eager network on GPU"):
        (row,) = mlsys.sweep(mlsys.SweepSpec(models=["resnet8"], devices=["A100"], settings=[each]))
        assert row.setting == "eager network on GPU"
        assert row.estimate_seconds == pytest.approx(eager, rel=1e-6)


def test_work_and_machine_left_open_are_those_of_the_question() -> None:
    assert str(software_of(Hardware.Edge.Pi5, "llama.cpp", "llm decode")) == "llama.cpp llm decode on CPU"
    assert str(software_of(Hardware.Tiny.STM32L4R5, "microcontroller runtime")) == "microcontroller runtime on MCU"


@pytest.mark.parametrize(
    ("software", "error", "text"),
    [
        ("egaer network on GPU", UnknownNameError, "Did you mean 'eager network on GPU'"),
        (SoftwareStack("egaer"), UnknownNameError, "For such work on such a device: .*compiled network on GPU"),
        (3, ArgumentError, "`software` must be a SoftwareStack or its name, such as .*, got 3"),
        ("", ArgumentError, "`software` must be a SoftwareStack or its name"),
    ],
)
def test_unknown_software_is_refused_with_what_exists(software: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        mlsys.analyze("A100", "resnet8", software=software)  # type: ignore[arg-type]
