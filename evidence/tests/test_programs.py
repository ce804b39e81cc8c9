"""Rows of programs on processors: several side by side, instructions that they leave idle, what they fuse."""

from dataclasses import replace

import pytest

from mlsys.calibration.case import Case
from mlsys.calibration.engines import engine_for, summing_in_half
from mlsys.calibration.rows import Row
from mlsys.hardware import Hardware
from mlsys.models.estimate import MATMUL, CaseBatch, Work, bound
from mlsys.models.estimate.library import parameters_of
from mlsys_evidence.evaluate.blind_evaluation import blind_evaluation_rows
from mlsys_evidence.fit.refit import jobs_of
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows

XEON = "Intel Xeon Platinum 8480+"


def _row(software: str, model: str = "VGG-16", precision: str = "fp32", device: str = XEON, **more: str) -> Row:
    any_row = next(row for row in shipped_rows() if "CNN inference on CPU" in row.workload)
    plain = replace(
        any_row, device=device, workload="CNN inference on CPU", note="", batch="1", unit="ms", metric="latency"
    )
    return replace(plain, software=software, model=model, precision=precision, **more)


def _side_by_side(note: str) -> Case:
    return interpret(_row("ONNX Runtime 1.18", batch="14", unit="images/s", metric="throughput", note=note))


@pytest.mark.parametrize(
    "note", ["14 instances of 4 cores, batch 1 each", "one socket, 4 cores/instance, 14 instances"]
)
def test_programs_side_by_side_read_weights_of_their_own(note: str) -> None:
    many, one = _side_by_side(note), _side_by_side("56 cores")
    assert many.seconds == one.seconds  # both rates are of fourteen pictures
    assert many.work["weights"].sum() == one.work["weights"].sum()  # one program's copy ...
    assert 14 * many.engine.bandwidth == pytest.approx(one.engine.bandwidth)  # ... for its part of the memory
    assert 14 * many.engine.cache == pytest.approx(one.engine.cache)
    # Four threads share a picture either way, at the clock of all cores.
    assert many.engine.team == pytest.approx(one.engine.team)
    assert many.engine.clock == one.engine.clock
    # 138.4 million parameters in FP32, fourteen times, at 307.2 GB/s: no round is faster.
    _, moving = bound(CaseBatch.of([(many.engine, many.work, many.cached)]))
    assert moving[0] >= 14 * 138.3e6 * 4 / 307.2e9


@pytest.mark.parametrize(
    ("software", "pixels", "each_cycle"),
    [("ONNX Runtime 1.18", True, 256), ("onnxruntime v1.22.1", True, 256),
     ("ONNX Runtime 1.18", False, 2048), ("OpenVINO 2024", True, 2048),
     ("PyTorch 2.3.0 CPU", False, 256), ("PyTorch", False, 2048)],
)  # fmt: skip
def test_kernels_without_amx_multiply_at_the_rate_of_vnni(software: str, pixels: bool, each_cycle: int) -> None:
    shape = "224x224 image" if pixels else "seq 128"
    row = _row(software, "ResNet-50" if pixels else "BERT-base", "int8", seq_or_shape=shape, note="56 threads")
    engine = interpret(row).engine
    assert engine.matmul / (engine.units * engine.clock) == pytest.approx(each_cycle, rel=1e-3)


def test_no_bytes_are_lost_where_there_are_no_tiles() -> None:
    ice_lake = Hardware["Xeon_8380"]
    assert engine_for(ice_lake, "int8", vector_unit=True).matmul == engine_for(ice_lake, "int8").matmul


def test_a_version_of_pytorch_starts_its_operators_in_bytes_as_well() -> None:
    settings = [interpret(_row(name, "ResNet-18", "int8")).setting for name in ("PyTorch 2.3.0 CPU", "PyTorch")]
    assert settings == ["eager network on CPU", "eager int8 network on CPU"]


def test_tensorflow_fuses_on_x86_and_not_on_arm() -> None:
    boards = (XEON, "Raspberry Pi 4 (Cortex-A72, 4 cores)")
    settings = [interpret(_row("TensorFlow 2.15 CPU", "MobileNet-v2", device=name)).setting for name in boards]
    assert settings == ["compiled network on CPU", "eager network on CPU"]


@pytest.mark.parametrize("software", ["Tengine Lite 1.0", "MNN 2.8 CPU", "TNN 0.3"])
def test_runtimes_with_winograd_multiply_a_quarter_as_often(software: str) -> None:
    board = "Raspberry Pi 4 (Cortex-A72, 4 cores)"
    plain, fewer = (interpret(_row(name, device=board)).work for name in ("TFLite CPU (ruy)", software))
    # VGG-16 multiplies 15.35 billion times in convolutions of 3 x 3, and 0.12 billion in its last layers, which stay.
    assert _multiplications(plain) == pytest.approx(15.47e9, rel=0.01)
    # Its last three see 14 x 14 pixels, and tiles of 4 x 4 cover 16 x 16.
    edges = 3 * 512 * 512 * 9 * (16**2 - 14**2)
    assert _multiplications(fewer) == pytest.approx((15.35e9 + edges) / 4 + 0.12e9, rel=0.01)
    # Of 138.3 million weights 14.71 million are of convolutions; each nine of these are kept as thirty-six, in FP32.
    assert plain.weights == pytest.approx(4 * 138.3e6, rel=0.01)
    assert fewer.weights - plain.weights == pytest.approx(4 * 3 * 14.71e6, rel=0.01)


def _multiplications(work: Work) -> float:
    products = work["m"] * work["n"] * work["k"] * work["batch"] * work["count"]
    return float(products[work["kind"] == MATMUL].sum())


@pytest.mark.parametrize(
    ("note", "gigahertz"),
    [("Raspberry Pi 3B  (Cortex-A53 1.2GHZ x 4)", 1.2), ("", 1.4), ("two of them (1.2 GHz x 2)", 1.4),
     ("(1.0GHz x 2 + 1.2GHz x 4)", 1.4)],
)  # fmt: skip
def test_cores_run_at_the_clock_that_a_row_states_of_all_of_them(note: str, gigahertz: float) -> None:
    engine = interpret(_row("Tengine Lite 1.0", device="Raspberry Pi 3 (4x Cortex-A53)", note=note)).engine
    assert engine.clock == pytest.approx(gigahertz * 1e9)
    assert engine.matmul == pytest.approx(4 * 4 * 2 * gigahertz * 1e9)  # four cores of four lanes, 2 FLOP in each


def test_what_a_row_states_of_x86_is_the_boost_of_one_core() -> None:
    stated, not_stated = (
        interpret(_row("OpenVINO 2024", device="AMD Ryzen 7 5700G", note=note)).engine.clock
        for note in ("(4.6 GHz x 8)", "")
    )
    assert stated == not_stated


def test_one_thread_of_ncnn_is_fitted_together_with_many() -> None:
    threads = [
        interpret(_row("ncnn benchncnn", workload=f"CNN inference on CPU {n}")) for n in ("1 thread", "8 threads")
    ]
    assert len({case.setting for case in threads}) == 2  # what is left of either is an effect of its own
    (together,) = jobs_of({case.setting: [case] for case in threads}).values()
    assert together == threads
    assert threads[0].engine.team == threads[0].engine.joining == 1 < threads[1].engine.team


def test_a_boards_compiler_has_one_set_of_parameters_as_a_gpus_has() -> None:
    named = ("ResNet-50", "resnet18")
    boards = [row for row in shipped_rows() if row.device == "NVIDIA Jetson AGX Xavier" and row.model.startswith(named)]
    cases = [interpret(row) for row in boards if "TensorRT" in row.software]
    assert {case.engine.computes_in for case in cases} == {"int8", "fp16"}
    assert {case.setting for case in cases} == {"compiled network on SoC"}


def test_eager_layers_without_convolutions_are_the_librarys_products() -> None:
    picture = interpret(_row("PyTorch 2.3.0 CPU", "ResNet-18"))
    compiled, eager = (
        interpret(_row(software, "BERT-base", seq_or_shape="seq 128"))
        for software in ("PyTorch 2.3.0 CPU torch.compile", "PyTorch 2.3.0 CPU")
    )
    assert picture.setting == "eager network on CPU"
    assert (eager.setting, compiled.setting) == ("eager transformer network on CPU", "torch.compile network on CPU")
    # Measured were those of torch.compile alone, and the parameters say so.
    assert parameters_of(eager.setting) == parameters_of(compiled.setting)
    # Each operator runs by itself, none rides along with a product; the products are the same.
    assert _multiplications(eager.work) == pytest.approx(_multiplications(compiled.work), rel=0.05)
    assert eager.work.launches > 1.5 * compiled.work.launches


@pytest.mark.parametrize(("device", "twice"), [("RTX_3090", 2), ("RTX_4090", 2), ("TITAN_RTX", 1), ("A100_80GB", 1)])
def test_only_geforce_cards_gain_by_sums_of_16_bits(device: str, twice: int) -> None:
    """NVIDIA's GA102 and AD102 papers: GeForce tensor cores add to FP32 at half the rate that they add to FP16."""
    twin = Hardware[device]
    engine = engine_for(twin, "fp16")
    assert summing_in_half(engine, twin).matmul == pytest.approx(twice * engine.matmul, rel=1e-3)
    for other in ("bf16", "tf32", "int8"):
        assert summing_in_half(engine_for(twin, other), twin) == engine_for(twin, other)


def test_what_onediff_does_cannot_be_done_with_sums_of_32_bits() -> None:
    """It draws with SDXL on an RTX 4090 and a 3090 faster than their peaks into FP32; eager PyTorch does not."""
    rows = [row for row in blind_evaluation_rows(3) if row.source == "siliconflow/onediff" and "SDXL" in row.model]
    for row in (row for row in rows if "RTX" in row.device):
        case, twin = interpret(row), Hardware[interpret(row).twin]
        summed = replace(case, engine=engine_for(twin, "fp16"))
        own, into_single = (
            bound(CaseBatch.of([(each.engine, each.work, each.cached)]))[0][0] for each in (case, summed)
        )
        half = "OneDiff" in row.software
        assert (into_single > case.seconds) == half, row.device
        assert own == pytest.approx(into_single / (2 if half else 1), rel=1e-3)


def test_bytes_run_at_the_rate_of_fp32_where_a_program_has_no_dot_product() -> None:
    """A Cortex-A76 does a dot product of four bytes in each lane of FP32; OpenCV's layers widen them instead."""
    pi = "Raspberry Pi 5 (Cortex-A76, 4 cores)"
    opencv, onnx = (
        interpret(_row(software, precision="int8", device=pi)).engine for software in ("OpenCV 4.10", "ONNX Runtime")
    )
    assert opencv.matmul == opencv.vector == pytest.approx(onnx.matmul / 4)
    # On x86 it is compiled for AVX2 and AVX-512, as others are.
    xeon, other = (interpret(_row(software, precision="int8")).engine for software in ("OpenCV 4.10", "MXNet 1.8"))
    assert xeon.matmul == other.matmul


def test_a_request_runs_on_one_core_of_a_neural_processor() -> None:
    """Rockchip's manual has three cores of 2 TOPS each; the runtime's default picks one of them."""
    one_of_three = "Rockchip RK3588 (NPU, 1 of 3 cores)"
    stated = next(row for row in shipped_rows() if row.device == one_of_three and row.precision == "int8")
    unsaid = replace(stated, device="Rockchip RK3588 (NPU)")
    assert interpret(unsaid).engine.matmul == pytest.approx(2e12)
    assert interpret(stated).engine.matmul == pytest.approx(2e12, rel=0.01)
    assert interpret(replace(unsaid, note="3 cores")).engine.matmul == pytest.approx(6e12)
    alone = replace(stated, device="Rockchip RK3568 (NPU)")
    assert interpret(alone).engine.matmul == pytest.approx(1e12)
