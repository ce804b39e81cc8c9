"""A command prints what its Python call returns: ``--json`` is the result's ``record()``."""

import json
import subprocess
import sys
from itertools import product
from typing import Any

import pytest
from click.testing import CliRunner

import mlsys
from mlsys import Q_, Hardware
from mlsys.cli import main
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.mapping.fusion import as_kernels
from mlsys.models.analysis import analyse
from mlsys.workloads import Network, gemm, zoo
from sampled import drawn

NETWORKS = ("resnet50", "bert-base", "mobilenet-v2")
DEVICES = ("A100", "T4", "Graviton3")
BATCHES = (1, 8)
QUESTIONS = list(product(NETWORKS, DEVICES, BATCHES))


def printed(*arguments: object) -> Any:
    result = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def plain(record: Any) -> Any:
    """As JSON writes it: tuples are lists there."""
    return json.loads(json.dumps(record))


@pytest.mark.parametrize(("network", "device", "batch"), drawn(QUESTIONS, 4, "analyze"))
def test_analyze_prints_the_record_of_the_call(network: str, device: str, batch: int) -> None:
    answer = mlsys.analyze(device, network, batch=batch)
    assert printed("analyze", network, "--device", device, "--batch", batch) == plain(answer.record())
    loaded = mlsys.analyze(Hardware[device], mlsys.load(network, batch=batch, precision="fp16"))
    assert loaded.record() == answer.record()
    assert mlsys.analyze(device, mlsys.load(network), batch=batch).record() == answer.record()


@pytest.mark.parametrize(("network", "batch"), drawn(list(product(NETWORKS, BATCHES)), 2, "compare"))
def test_compare_prints_the_record_of_the_call(network: str, batch: int) -> None:
    answer = mlsys.compare(DEVICES, network, batch=batch)
    assert printed("compare", network, "--devices", ",".join(DEVICES), "--batch", batch) == plain(answer.record())
    assert mlsys.compare(DEVICES, mlsys.load(network), batch=batch).record() == answer.record()


@pytest.mark.parametrize(("network", "batch"), list(product(NETWORKS, BATCHES)))
def test_flops_prints_the_record_of_the_call(network: str, batch: int) -> None:
    answer = mlsys.flops(network, batch=batch)
    assert printed("flops", network, "--batch", batch) == plain(answer.record())
    assert mlsys.flops(mlsys.load(network, batch=batch)).record() == answer.record()


@pytest.mark.parametrize(
    ("network", "device", "batch"),
    drawn(list(product(("resnet8", "mobilenet-v2", "bert-base"), ("nRF52840", "A100", "T4"), BATCHES)), 3, "memory"),
)
def test_memory_prints_the_record_of_the_call(network: str, device: str, batch: int) -> None:
    answer = mlsys.memory(network, device=device, batch=batch, fusion=True)
    arguments = ("memory", network, "--device", device, "--batch", batch, "--fuse")
    assert printed(*arguments) == plain(answer.record())
    assert answer.plan.peak == mlsys.plan_memory(mlsys.fuse(mlsys.load(network, batch=batch))).peak


@pytest.mark.parametrize(
    ("network", "device", "batch"), drawn(list(product(NETWORKS, ("A100", "T4", "GenericKPU"), BATCHES)), 3, "tiles")
)
def test_tiles_prints_the_record_of_the_call(network: str, device: str, batch: int) -> None:
    answer = mlsys.tiles(device, network, batch=batch)
    assert printed("tiles", network, "--device", device, "--batch", batch) == plain(answer.record())
    assert mlsys.tiles(device, mlsys.load(network, batch=batch)).record() == answer.record()


@pytest.mark.parametrize("dataflow", ["ws", "os", "is"])
@pytest.mark.parametrize("shape", [(512, 512, 512), (100, 300, 700), (7, 1, 9)])
@pytest.mark.parametrize("array", [(128, 128), (32, 64)])
def test_systolic_prints_the_record_of_the_call(
    shape: tuple[int, int, int], array: tuple[int, int], dataflow: Any
) -> None:
    words: dict[str, Any] = dict.fromkeys(("ifmap_words", "filter_words", "ofmap_words"), 64 * 1024)
    counts = mlsys.count_systolic(*shape, *array, dataflow, **words)
    arguments = ("systolic", *shape, "--array", "x".join(map(str, array)), "--dataflow", dataflow)
    assert printed(*arguments) == plain(counts.record())


def test_every_door_gives_resnet_50_on_an_a100_the_same_time_and_bound() -> None:
    """Batch 1, FP16: the command, the call by name and by object, and the kernels that the catalogue writes down."""
    record = printed("analyze", "resnet50", "--device", "A100")
    kernels = as_kernels(mlsys.load("resnet50", precision="fp16"))
    answers = [
        mlsys.analyze("A100", "resnet50"),
        mlsys.analyze(Hardware.Cloud.A100, mlsys.load("resnet50")),
        mlsys.analyze("A100", mlsys.load("resnet50", precision="fp16")),
        analyse(Hardware.Cloud.A100, kernels, precision="fp16"),
    ]
    for answer in answers:
        assert answer.estimate.m_as("s") == pytest.approx(record["estimate_seconds"], rel=1e-12)
        assert answer.bound.m_as("s") == pytest.approx(record["bound_seconds"], rel=1e-12)
    written = mlsys.analyze("A100", zoo.network("resnet50", precision="fp16"))  # counts no work beside the products
    assert written.bound.m_as("s") == pytest.approx(record["bound_seconds"], rel=1e-3)
    assert written.estimate.m_as("s") == pytest.approx(record["estimate_seconds"], rel=1e-3)
    assert len(answers[0].operators) < len(mlsys.load("resnet50")), "kernels, not operators"
    assert (record["precision"], record["batch"], record["image"]) == ("fp16", 1, 224)


def test_a_format_that_was_chosen_is_kept_and_one_that_nobody_chose_is_fp16() -> None:
    formats = [
        mlsys.analyze("A100", network).precision
        for network in (
            "resnet50",
            mlsys.load("resnet50"),
            mlsys.load("resnet50").at(batch=2),
            mlsys.load("resnet50", precision="fp32"),
            mlsys.load("resnet50").stored_as("fp32"),
        )
    ]
    assert formats == ["fp16", "fp16", "fp16", "fp32", "fp32"]


def test_eager_software_fuses_nothing_and_says_so() -> None:
    eager = mlsys.analyze("A100", "resnet50", software="eager network on GPU")
    assert len(eager.operators) == 174 and eager.network is not None
    assert eager.network.kernels == "174 kernels, one for each operator: not fused"
    assert eager.record() == mlsys.analyze("A100", "resnet50", software="eager network", fusion=False).record()
    fused = mlsys.analyze("A100", mlsys.fuse(mlsys.load("resnet50", precision="fp16")))
    assert fused.network is not None and fused.network.kernels == "56 kernels for 174 operators: fused by the caller"


def test_samples_set_the_rate_alone() -> None:
    network = Network("mine", (gemm(512, 512, 512, "fp16"),))
    alone, many = mlsys.analyze("A100", network), mlsys.analyze("A100", network, samples=8)
    assert many.estimate == alone.estimate
    assert many.rate.m_as("1/s") == pytest.approx(8 * alone.rate.m_as("1/s"))
    assert many.record()["recipe"] == "operators made by hand"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: mlsys.analyze("A10O", "resnet50"), UnknownNameError, "no device 'A10O'. Did you mean"),
        (lambda: mlsys.analyze(3, "resnet50"), ArgumentError, "`device` must be a device or its name"),  # type: ignore[arg-type]
        (lambda: mlsys.analyze("A100", 3), ArgumentError, "`network` must be a network or what"),  # type: ignore[arg-type]
        (lambda: mlsys.analyze("A100", "resnet50", sequence=4), ArgumentError, "`sequence`"),
        (lambda: mlsys.analyze("A100", mlsys.load("gpt2"), phase="decode"), ArgumentError, "`phase` is for a network"),
        (lambda: mlsys.analyze("A100", zoo.network("gpt2"), batch=2), ArgumentError, "`batch` cannot change 'GPT-2"),
        (lambda: mlsys.flops(zoo.network("gpt2"), precision="fp16"), ArgumentError, "made by hand, in their number"),
        (lambda: mlsys.compare("A100", "resnet50"), ArgumentError, "`devices` must be several, got 'A100' alone"),
        (lambda: mlsys.compare([], "resnet50"), ArgumentError, "`devices` must name at least one"),
        (lambda: mlsys.memory(zoo.network("gpt2")), ArgumentError, "`network` must be a captured network"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_go_together_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as refused:
        call()
    assert text in str(refused.value)


def test_a_sweep_is_called_by_the_name_of_its_command(tmp_path: Any) -> None:
    """``mlsys.sweep`` is a package that can be called, however it was imported."""
    path = tmp_path / "small.yaml"
    path.write_text("models: [resnet8]\ndevices: [A100]\nbatches: [1, 2]\n", "utf-8")
    assert [row.batch for row in mlsys.sweep(path)] == [1, 2]
    first = "import mlsys; mlsys.SweepSpec; import mlsys.sweep; print(callable(mlsys.sweep), mlsys.sweep.SweepSpec)"
    done = subprocess.run([sys.executable, "-c", first], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("True <class")


def test_every_name_of_the_package_is_there() -> None:
    for name in dir(mlsys):
        assert getattr(mlsys, name) is not None
    assert mlsys.roofline(Hardware.Cloud.A100, gemm(64, 64, 64, "fp16")).time > Q_(0, "s")
