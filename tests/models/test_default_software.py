"""Default software: the program that runs such work on such a machine, where none is named."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mlsys import Hardware
from mlsys.cli.main import main
from mlsys.mapping.fusion import as_kernels
from mlsys.models.analysis import analyze
from mlsys.models.estimate.default_software import machine_kind, setting_of
from mlsys.models.estimate.library import fitted, machines
from mlsys.sweep import SweepSpec, sweep
from mlsys.workloads import Network, Workload, load, zoo
from mlsys_evidence import validate
from mlsys_evidence.rows import shipped_rows

KINDS = ("network", "llm prefill", "llm decode")


@pytest.mark.parametrize("kind", KINDS)
def test_every_device_has_default_software_that_was_fitted_to_such_machines(kind: str) -> None:
    for device in Hardware:
        name, machine = setting_of(device, None, kind, "int8"), machine_kind(device)
        assert name.endswith(f" on {machine}") and not name.startswith("energy"), (device.id, name)
        of_the_kind = [known for known in fitted() if known.endswith(f"llm {kind[4:]} on {machine}")]
        if machine == "MCU" or not of_the_kind:
            continue
        if kind == "llm decode":  # software fitted to images is no default for tokens where those were measured
            assert name in of_the_kind, device.id


@pytest.mark.parametrize(
    ("device", "kind", "precision", "setting"),
    [
        ("H100", "llm decode", "fp16", "compiled llm decode on GPU"),
        ("Hailo15H", "network", "int8", "Hailo int8 network on NPU"),
        ("Hailo15H", "network", "fp16", "Hailo int8 network on NPU"),  # not AWS's compiler
        ("EdgeTPU", "network", "fp16", "npu runtime int8 network on NPU"),
        ("RV1109_NPU", "network", "int8", "RKNN int8 first network on NPU"),
        ("RK3568_NPU", "network", "int8", "RKNN int8 network on NPU"),
        ("Inferentia2", "llm decode", "bf16", "NeuronX llm decode on NPU"),
        ("Trainium1", "llm prefill", "bf16", "NeuronX llm prefill on NPU"),
        ("Gaudi2", "llm decode", "bf16", "HPU graphs llm decode on NPU"),
        ("Snapdragon8Elite", "llm decode", "int8", "npu runtime llm decode on NPU"),
        ("Apple_M2", "llm prefill", "fp16", "early llama.cpp llm prefill on SoC"),
        ("Xeon_8380", "llm decode", "fp32", "llama.cpp llm decode on CPU"),
        ("Xeon_8380", "llm prefill", "fp32", "compiled network on CPU"),
        ("Xeon_8380", "network", "INT8", "compiled int8 network on CPU"),
        ("Snapdragon888_CPU", "network", "fp32", "mobile runtime network on CPU"),
        ("RaspberryPi5", "network", "int8", "mobile runtime network on CPU"),
        ("Snapdragon8Elite_CPU", "network", "fp32", "mobile runtime network on CPU"),
        ("SnapdragonXElite_CPU", "network", "fp32", "compiled network on CPU"),
        ("JetsonAGXXavier_CPU", "network", "fp32", "mobile runtime network on CPU"),
        ("RaspberryPi5", "llm prefill", "fp16", "compiled network on CPU"),
        ("Graviton3", "network", "fp32", "compiled network on CPU"),
        ("A100", "network", "int8", "compiled network on GPU"),
        ("RK3588_NPU", "network", "int8", "RKNN int8 network on NPU"),
        ("EthosU55_128", "network", "int8", "microcontroller runtime on NPU"),
        ("STM32H743", "network", "int8", "microcontroller runtime on MCU"),
    ],
)
def test_the_default_software(device: str, kind: str, precision: str, setting: str) -> None:
    assert setting_of(Hardware[device], None, kind, precision) == setting


def test_makers_have_software_of_their_own_where_it_was_measured() -> None:
    """The default of an NPU is the runtime that was measured on it, not another maker's compiler."""
    for setting, twins in machines().items():
        if setting in ("AI Hub network on NPU", "Cloud AI network on NPU", "RKNN network on NPU"):
            assert {setting_of(Hardware[twin], None) for twin in twins} == {setting}


def test_a_network_knows_its_kind_whichever_way_it_is_brought() -> None:
    decode, prefill = (load("llama-3-8b", phase=phase, precision="fp16") for phase in ("decode", "prefill"))
    assert (decode.kind, prefill.kind, load("resnet50").kind) == ("llm decode", "llm prefill", "network")
    assert (as_kernels(decode).kind, as_kernels(prefill).kind) == ("llm decode", "llm prefill")
    assert prefill.at(batch=2).kind == prefill.stored_as("fp32").kind == prefill.to_network().kind == "llm prefill"
    plain = zoo.network("llama-3-8b", phase="decode")
    assert Workload.from_network(plain).to_network() == plain
    assert Network("mine", plain.operators).kind == "network"


@pytest.mark.parametrize(
    ("phase", "kind"), [("decode", "llm decode"), ("prefill", "llm prefill"), (None, "llm prefill")]
)
def test_commands_sweeps_and_python_agree(phase: str | None, kind: str, tmp_path: Path) -> None:
    arguments = ["llama-3-8b", "--precision", "bf16", "--json", *(["--phase", phase] if phase else [])]

    def result(*words: str) -> Any:
        done = CliRunner().invoke(main, [*words, *arguments])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    alone, (beside,) = result("analyze", "--device", "A100"), result("compare", "--devices", "A100")
    given: dict[str, Any] = {} if phase is None else {"phase": phase}
    network = load("llama-3-8b", precision="bf16", **given)
    python = analyze(Hardware["A100"], as_kernels(network), precision="bf16")
    spec = SweepSpec(models=[{"model": "llama-3-8b", **given}], devices=["A100"], precisions=["bf16"])
    columns = sweep(spec, tmp_path).columns
    settings = {alone["setting"], beside["setting"], python.setting, *columns["setting"]}
    assert settings == {f"compiled {kind} on GPU"}
    seconds = [alone["estimate_seconds"], beside["estimate_seconds"], *columns["estimate_seconds"]]
    assert seconds == pytest.approx([python.estimate.m_as("s")] * 3, rel=1e-6)


def test_software_and_units_are_printed() -> None:
    arguments = ["llama-3-8b", "--phase", "decode"]
    beside = CliRunner().invoke(main, ["compare", *arguments, "--devices", "A100,Apple_M2"]).output
    assert "software: compiled llm decode on GPU, llama.cpp llm decode on SoC; choose another with --software" in beside
    assert "tokens/s" in beside and "samples/s" not in beside
    alone = CliRunner().invoke(main, ["analyze", *arguments, "--device", "A100"]).output
    rate = next(line.split() for line in alone.splitlines() if line.startswith("  rate"))
    assert rate[-1] == "tokens/s" and "no measurements of" not in alone
    assert "prompts/s" in CliRunner().invoke(main, ["analyze", "gpt2", "--device", "A100"]).output


@pytest.mark.parametrize("program", ["eager network", "torch.compile network", "compiled network"])
def test_a_sweep_runs_operators_as_the_software_does(program: str, tmp_path: Path) -> None:
    """As `analyze` does: eager software runs no fused kernels in a sweep either."""
    arguments = ["analyze", "resnet50", "--device", "A100", "--setting", program, "--json"]
    alone = json.loads(CliRunner().invoke(main, arguments).stdout)
    columns = sweep(SweepSpec(models=["resnet50"], devices=["A100"], settings=[program]), tmp_path).columns
    assert columns["estimate_seconds"] == pytest.approx([alone["estimate_seconds"]], rel=1e-6)
    assert list(columns["operators"]) == [len(alone["operators"])]


def test_a_request_takes_one_core_of_a_neural_processor_of_three() -> None:
    """Rockchip's rows say of which cores they are: one of the RK3588's three, as its runtime takes by itself."""
    row = next(
        row for row in shipped_rows() if row.device == "Rockchip RK3588 (NPU, 1 of 3 cores)" and row.model == "yolov5s"
    )
    stated = validate([row]).predictions[0].seconds
    result = analyze(Hardware["RK3588_NPU"], zoo.network("yolov5s", precision="int8")).estimate.m_as("s")
    assert result == pytest.approx(stated, rel=0.05)
