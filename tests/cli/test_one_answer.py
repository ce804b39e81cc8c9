"""A command prints what its Python call returns: ``--json`` is the result's ``record()``."""

import json
import subprocess
import sys
from itertools import product
from typing import Any

import click
import pytest
from click.testing import CliRunner

import mlsys
from mlsys import Q_, Hardware
from mlsys.cli import main
from mlsys.edge import PowerPoint
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.mapping.fusion import as_kernels
from mlsys.models.analysis import analyse
from mlsys.models.analysis import analyze as analyze_model
from mlsys.planner.placement import example
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


@pytest.mark.parametrize("machine", ["A100", "DGX_H100", "nRF52840"])
def test_cost_prints_the_record_of_the_call(machine: str) -> None:
    answer = mlsys.cost(machine, Q_(24, "hour"), grid="France", year=2024, utilisation=0.5)
    arguments = ("cost", machine, "--hours", 24, "--grid", "France", "--year", 2024, "--utilisation", 0.5)
    assert printed(*arguments) == plain(answer.record())


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


@pytest.mark.parametrize("layout", ["tp=2,pp=2", "tp=8", ""])
def test_train_prints_the_record_of_the_call(layout: str) -> None:
    sizes = {axis: int(size) for axis, _, size in (part.partition("=") for part in layout.split(",") if part)}
    answer = mlsys.train("llama-3-8b", "DGX_H100", layout=sizes or None, tokens=1e12, batch=128, recompute="none")
    arguments = ("train", "llama-3-8b", "--on", "DGX_H100", "--tokens", "1T", "--batch", 128, "--recompute", "none")
    assert printed(*arguments, *(("--layout", layout) if layout else ())) == plain(answer.record())
    assert len(answer.layouts) == 1 or layout == ""
    assert answer.record()["days"] == pytest.approx(1e12 / (128 * 4096) * answer.time.m_as("s") / 86400)


@pytest.mark.parametrize("dataflow", ["ws", "os", "is"])
@pytest.mark.parametrize("shape", [(512, 512, 512), (100, 300, 700), (7, 1, 9)])
@pytest.mark.parametrize("array", [(128, 128), (32, 64)])
def test_systolic_prints_the_record_of_the_call(
    shape: tuple[int, int, int], array: tuple[int, int], dataflow: Any
) -> None:
    arguments = ("systolic", *shape, "--array", "x".join(map(str, array)), "--dataflow", dataflow)
    assert printed(*arguments) == plain(mlsys.systolic(*shape, array, dataflow).record())
    smaller = mlsys.systolic(*shape, array, dataflow, sram=1, fold_overlap="load").record()
    assert printed(*arguments, "--sram", 1, "--overlap", "load") == plain(smaller)


@pytest.mark.parametrize("device", DEVICES)
def test_device_and_devices_print_the_record_of_the_call(device: str) -> None:
    assert printed("device", device) == plain(mlsys.device(device).record())
    assert printed("devices", device, "H100") == plain(mlsys.devices(device, "H100").record())
    kind = mlsys.device(device).kind
    found = mlsys.devices(kind=kind, since=2020, sort="bandwidth")
    assert printed("devices", "--kind", kind, "--since", 2020, "--sort", "bandwidth") == plain(found.record())
    rates = [twin.memory_bw for twin in found if twin.glance()["bandwidth"] is not None]
    assert rates == sorted(rates, reverse=True) and len(found) > 3


@pytest.mark.parametrize(
    ("network", "devices", "batch"),
    drawn(list(product(("resnet8", "mobilenet-v2", "ds-cnn"), ("A100,T4", "T4,L4", "A100,L4"), BATCHES)), 2, "plan"),
)
def test_plan_prints_the_record_of_the_call(network: str, devices: str, batch: int) -> None:
    answer = mlsys.plan(network, "efficiency", devices=devices.split(","), batch=batch)
    arguments = ("plan", "--profiles-from", network, "--devices", devices, "--batch", batch, "--goal", "efficiency")
    done = CliRunner().invoke(main, [*map(str, arguments), "--format", "json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == plain(answer.record())
    loaded = mlsys.plan(mlsys.load(network), "efficiency", devices=devices.split(","), batch=batch)
    assert loaded.record() == answer.record()


def test_plan_of_a_file_prints_the_record_of_the_call(tmp_path: Any) -> None:
    path = tmp_path / "pipeline.json"
    path.write_text(json.dumps(example()), "utf-8")
    done = CliRunner().invoke(main, ["plan", str(path), "--format", "json", "--top-k", "3"])
    records = [mlsys.plan(source, top=3).record() for source in (path, example())]
    assert records == [json.loads(done.stdout)] * 2


@pytest.mark.parametrize(
    ("layer", "device", "batch"),
    drawn(list(product(("resnet8:1", "lenet5:all", "ds-cnn:2"), ("GenericTPU", "A100", "T4"), BATCHES)), 2, "mapper"),
)
def test_mapper_prints_the_record_of_the_call(layer: str, device: str, batch: int) -> None:
    answer = mlsys.mapper(device, layer, batch=batch)
    assert printed("mapper", layer, "--device", device, "--batch", batch) == plain(answer.record())
    network, _, which = layer.partition(":")
    assert (
        mlsys.mapper(device, which, mlsys.load(network), batch=batch).record()[0]["words"]
        == answer.record()[0]["words"]
    )


@pytest.mark.parametrize(
    ("network", "batch"), drawn(list(product(("resnet8", "ds-cnn", "lenet5"), BATCHES)), 2, "edge")
)
def test_edge_layers_and_arena_print_the_record_of_the_call(network: str, batch: int) -> None:
    answer = mlsys.edge_layers(network, batch=batch, latency=Q_(5, "ms"), bandwidth=Q_(12.8, "GB/s"))
    measured = ("--latency", "5 ms", "--bandwidth", "12.8 GB/s")
    assert printed("edge", "layers", network, "--batch", batch, *measured) == plain(answer.record())
    assert mlsys.edge_layers(mlsys.load(network, batch=batch)).totals == answer.totals
    for device in ("STM32H743", "nRF52840", "STM32F746"):
        fit = mlsys.edge_arena(network, device=device)
        assert printed("edge", "arena", network, "--device", device) == plain(fit.record())
    assert printed("edge", "arena", network, "--macs", 256) == plain(mlsys.edge_arena(network, macs=256).record())


def test_edge_clock_prints_the_record_of_the_call() -> None:
    points = [
        PowerPoint(Q_(168, "MHz"), Q_(145, "ms"), Q_(18, "mJ")),
        PowerPoint(Q_(80, "MHz"), Q_(305, "ms"), Q_(24, "mJ")),
    ]
    written = ("--point", "168 MHz, 145 ms, 18 mJ", "--point", "80 MHz, 305 ms, 24 mJ")
    assert printed("edge", "clock", *written) == plain(mlsys.edge_clock(points).record())


@pytest.mark.parametrize(
    ("operation", "system", "options"),
    [
        ("all-reduce", "DGX_H100", {"nodes": 2}),
        ("all-gather", "TPUv5e_pod", {"chips": 64}),
        ("all-to-all", "MI300X_platform", {"algorithm": "direct"}),
        ("broadcast", "Server_8x_L40S", {"library": "ideal"}),
        ("all-reduce", "T4", {}),
    ],
)
def test_collective_prints_the_record_of_the_call(operation: Any, system: str, options: dict[str, Any]) -> None:
    answer = mlsys.collective(operation, Q_(1, "GB"), system, **options)
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    assert printed("collective", operation, "1 GB", "--on", system, *words) == plain(answer.record())


NO_CALL = {
    "calibrate": "writes a file of fitted factors",
    "check": "mlsys.hardware.load_device raises with every fault of a file; mlsys.check is of a condition",
    "claims": "reads and compares the pages of a book",
    "compile-bench": "measures this machine: mlsys.measure",
    "edge": "its layers, arena and clock are edge_layers, edge_arena, edge_clock; run and report work on folders",
    "explain": "measures this machine: mlsys.measure",
    "measure": "measures this machine",
    "questions": "writes a question bank, not an answer about a device",
    "validate": "grades the package, not a question about a device",
}


def test_every_command_has_a_call_of_its_name_or_a_reason() -> None:
    names = main.list_commands(click.Context(main))
    for name in names:
        assert (name in NO_CALL) != callable(getattr(mlsys, name.replace("-", "_"), None)) or name == "check", name
    assert set(NO_CALL) < set(names)


def test_every_door_gives_resnet_50_on_an_a100_the_same_time_and_bound() -> None:
    """Batch 1, FP16: the command, the call by name and by object, and the kernels that the catalogue writes down."""
    record = printed("analyze", "resnet50", "--device", "A100")
    kernels = as_kernels(mlsys.load("resnet50", precision="fp16"))
    answers = [
        mlsys.analyze("A100", "resnet50"),
        mlsys.analyze(Hardware.Cloud.A100, mlsys.load("resnet50")),
        mlsys.analyze("A100", mlsys.load("resnet50", precision="fp16")),
        analyze_model(Hardware.Cloud.A100, kernels),
        analyze_model(Hardware.Cloud.A100, mlsys.load("resnet50")),
    ]
    for answer in answers:
        assert answer.estimate.m_as("s") == pytest.approx(record["estimate_seconds"], rel=1e-12)
        assert answer.bound.m_as("s") == pytest.approx(record["bound_seconds"], rel=1e-12)
    written = mlsys.analyze("A100", zoo.network("resnet50", precision="fp16"))  # counts no work beside the products
    assert written.bound.m_as("s") == pytest.approx(record["bound_seconds"], rel=1e-3)
    assert written.estimate.m_as("s") == pytest.approx(record["estimate_seconds"], rel=1e-3)
    assert len(answers[0].operators) < len(mlsys.load("resnet50")), "kernels, not operators"
    assert (record["precision"], record["batch"], record["image"]) == ("fp16", 1, 224)


@pytest.mark.parametrize(("network", "device", "batch"), drawn(QUESTIONS, 3, "model"))
def test_the_model_answers_what_the_everyday_call_does(network: str, device: str, batch: int) -> None:
    loaded = mlsys.load(network, batch=batch)
    assert analyze_model(Hardware[device], loaded).record() == mlsys.analyze(device, loaded).record()
    unfused = analyze_model(Hardware[device], loaded, loaded)
    assert unfused.record() == mlsys.analyze(device, network, batch=batch, fusion=False).record()
    assert len(unfused.operators) == len(loaded)


def test_the_old_name_of_the_model_is_deprecated_and_answers_the_same() -> None:
    network = mlsys.load("resnet8")
    with pytest.warns(DeprecationWarning, match="write analyze"):
        old = analyse(Hardware.Cloud.A100, network, setting="compiled network")
    assert old.record() == mlsys.analyze("A100", network, software="compiled network").record()


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
    assert many.record()["recipe"] == "operators built by hand"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: mlsys.analyze("A10O", "resnet50"), UnknownNameError, "unknown device 'A10O'. Did you mean"),
        (lambda: mlsys.analyze(3, "resnet50"), ArgumentError, "`device` must be a device or its name"),  # type: ignore[arg-type]
        (lambda: mlsys.analyze("A100", 3), ArgumentError, "`network` must be a network or an argument"),  # type: ignore[arg-type]
        (lambda: mlsys.analyze("A100", "resnet50", sequence=4), ArgumentError, "`sequence`"),
        (
            lambda: mlsys.analyze("A100", mlsys.load("gpt2"), phase="decode"),
            ArgumentError,
            "`phase` applies to networks",
        ),
        (lambda: mlsys.analyze("A100", zoo.network("gpt2"), batch=2), ArgumentError, "`batch` cannot change 'GPT-2"),
        (lambda: mlsys.flops(zoo.network("gpt2"), precision="fp16"), ArgumentError, "built by hand, in their number"),
        (lambda: mlsys.compare("A100", "resnet50"), ArgumentError, "`devices` must be a list, got 'A100'"),
        (lambda: mlsys.compare([], "resnet50"), ArgumentError, "`devices` must name at least one"),
        (lambda: mlsys.plan(mlsys.load("lenet5")), ArgumentError, "a network needs `devices`"),
        (lambda: mlsys.plan("a.json", batch=2), ArgumentError, "`batch` applies to a network, which needs `devices`"),
        (
            lambda: mlsys.mapper("A100", "gemm:8x8x8", batch=2),
            ArgumentError,
            "`batch` applies to a network, not to gemm",
        ),
        (lambda: mlsys.mapper("A100", "lenet5:conv9"), UnknownNameError, "has no layer 'conv9'"),
        (lambda: mlsys.systolic(8, 8, 8, 128), ArgumentError, "`array` must be rows and columns"),  # type: ignore[arg-type]
        (lambda: mlsys.devices("A100", kind="GPU"), ArgumentError, "either names to compare or criteria"),
        (lambda: mlsys.edge_layers("lenet5", latency=Q_(1, "ms")), ArgumentError, "must be given together"),
        (lambda: mlsys.edge_arena(zoo.network("gpt2")), ArgumentError, "`network` must be a captured network"),
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
    results = tmp_path / "results"
    points = printed("sweep", path, "--out", results)["points"]
    assert points == plain(mlsys.sweep(path, results).record()["points"]) and len(points) == 2
    first = "import mlsys; mlsys.SweepSpec; import mlsys.sweep; print(callable(mlsys.sweep), mlsys.sweep.SweepSpec)"
    done = subprocess.run([sys.executable, "-c", first], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("True <class")


def test_every_name_of_the_package_is_there() -> None:
    for name in dir(mlsys):
        assert getattr(mlsys, name) is not None
    assert mlsys.roofline(Hardware.Cloud.A100, gemm(64, 64, 64, "fp16")).time > Q_(0, "s")
