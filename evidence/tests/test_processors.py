"""Rows of processors: parts of a machine at work, and cases that travel to the processes of a fit."""

import pickle
import re
from dataclasses import fields, replace
from statistics import median

import numpy as np
import pytest

from mlsys.calibration.case import Inexpressible
from mlsys.calibration.engines import engine_for, on_threads
from mlsys.hardware import Hardware, view
from mlsys.models.analysis.model import analyze
from mlsys.models.estimate import MATMUL, CaseBatch, Kernel, Parameters, Work, bound, calibrated_times, snapshot
from mlsys.models.estimate.default_software import setting_of
from mlsys.models.estimate.effects import levels_of
from mlsys.models.estimate.library import fitted, machines
from mlsys.models.estimate.thread_scaling import waiting
from mlsys.workloads import zoo
from mlsys_evidence.evaluate.blind_evaluation import blind_evaluation_rows
from mlsys_evidence.fit.power import measured_powers
from mlsys_evidence.questions import interpret, typed
from mlsys_evidence.questions.energy import AT_WORK
from mlsys_evidence.questions.language import language_model_of
from mlsys_evidence.questions.threads import at_clock, threads_of
from mlsys_evidence.rows import shipped_rows


def test_a_case_on_some_cores_travels_to_another_process() -> None:
    row = next(row for row in shipped_rows() if "CPU 1 thread" in row.workload)
    case = interpret(row)
    sent = pickle.loads(pickle.dumps(case))
    for entry in fields(case.engine):
        assert getattr(sent.engine, entry.name) == getattr(case.engine, entry.name), entry.name
    assert (sent.row, sent.setting, sent.seconds) == (case.row, case.setting, case.seconds)


def test_one_core_runs_at_its_boost_and_all_of_them_at_their_clock() -> None:
    rome = Hardware["EPYC_7742"]
    engine = engine_for(rome, "fp32")
    cores = engine.units
    assert on_threads(engine, rome, 1).clock == pytest.approx(3.4e9)  # the maker's boost clock
    clocks = [on_threads(engine, rome, threads).clock for threads in (1, 8, 32, int(cores))]
    assert clocks == sorted(clocks, reverse=True)
    assert clocks[-1] == pytest.approx(2.25e9)
    # Twice the threads than cores change nothing: those beyond one for each core are idle.
    assert on_threads(engine, rome, 2 * int(cores)).matmul == on_threads(engine, rome, int(cores)).matmul


@pytest.mark.parametrize("name", ["EPYC_9V45", "Threadripper_3970X", "Kunpeng920_24", "RaspberryPi4"])
def test_a_few_threads_more_are_faster_and_never_more_than_the_machine(name: str) -> None:
    twin = Hardware[name]
    engine = engine_for(twin, "fp32")
    rates = [on_threads(engine, twin, threads).matmul for threads in range(1, int(engine.units) + 1)]
    assert rates[:8] == sorted(rates[:8])
    assert max(rates) <= engine.matmul
    shares = [on_threads(engine, twin, threads).bandwidth for threads in (1, 2, 4)]
    assert shares == sorted(shares) and shares[-1] <= engine.bandwidth


def test_the_boost_is_above_the_clock_of_all_cores() -> None:
    with_boost = [device for device in Hardware if view(device).has("boost")]
    assert with_boost
    for device in with_boost:
        assert view(device).require("boost") > view(device).require("clock"), device.id


# Cores of Arm before the dot product of Armv8.2, which multiply bytes by widening (SMLAL): eight at a time where FP32
# has four lanes. Cores with it have four bytes in each lane of FP32.
WIDENING = {"RaspberryPi4": 2, "JetsonNano_CPU": 2, "FT2000_4": 2, "RaspberryPi5": 4, "RK3588_CPU": 4}


@pytest.mark.parametrize("name", WIDENING)
def test_what_bytes_gain_over_fp32_is_told_by_the_dot_product(name: str) -> None:
    machine = view(Hardware[name])
    fp32, int8 = (machine.rate_of(wanted) or 0.0 for wanted in ("fp32", "int8"))
    assert int8 / fp32 == pytest.approx(WIDENING[name], rel=1e-3)


def test_onnx_runtime_on_a_hub_is_a_setting_of_its_own_for_integers_only() -> None:
    hub = [row for row in shipped_rows() if row.software == "Qualcomm AI Hub onnx"]
    settings = {interpret(row).setting for row in hub}
    assert settings == {"AI Hub network on NPU", "AI Hub int8 onnx network on NPU", "AI Hub int16 network on NPU"}


def test_integers_on_a_gpu_take_ncnn_as_long_as_the_threads_beside_it() -> None:
    """Rows of two sections of one publication, run apart: on the processor, and on the GPU with as many threads."""
    rows = [row for row in shipped_rows() if "ncnn" in row.software and "int8" in row.precision]
    on_cpu = [row for row in rows if "Vulkan" not in row.workload]
    measured = {(row.device, row.model, typed(row).get("threads")): row.value for row in on_cpu}
    beside_gpu = {(row.device, row.model, typed(row).get("threads")): row.value for row in rows if row not in on_cpu}
    pairs = [(value, measured[key]) for key, value in beside_gpu.items() if key in measured]
    assert len(pairs) >= 5
    for beside, alone in pairs:
        assert beside == pytest.approx(alone, rel=0.1)


def test_a_rented_machine_has_its_cores_and_no_more() -> None:
    row = next(row for row in shipped_rows() if "aws-g4dn.4xlarge" in row.note and row.device_class == "CPU")
    whole = engine_for(Hardware["Xeon_8259CL"], "int8")
    assert interpret(row).engine.units == 8 and whole.units == 24  # 16 threads


def test_a_submitters_own_network_is_not_taken_for_the_one_it_stands_for() -> None:
    rows = [row for row in shipped_rows() if "open/Deci/" in row.source_path]
    assert rows
    for row in rows:
        with pytest.raises(Inexpressible, match="own network"):
            interpret(row)


def test_quantised_experts_of_optimum_habana_are_all_visited() -> None:
    rows = [row for row in shipped_rows() if "habana" in row.software and row.model == "Mixtral-8x7B-v0.1"]
    row = next(row for row in rows if "fp8" in row.precision)
    fixed = language_model_of(typed(row))
    dynamic = language_model_of(typed(replace(row, precision="bf16")))
    assert (fixed.active_experts, dynamic.active_experts) == (8, 2)  # Mixtral: two of eight


def test_rockchips_first_neural_processors_are_told_from_the_second() -> None:
    rows = [row for row in shipped_rows() if row.software.startswith("RKNN")]
    settings: dict[str, set[str]] = {}
    for row in rows:
        try:
            settings.setdefault(interpret(row).setting, set()).add(interpret(row).twin)
        except Inexpressible:
            continue
    assert settings == {
        "RKNN int8 first network on NPU": {"RK1808_NPU", "RV1109_NPU"},
        "RKNN int8 network on NPU": {"RK3568_NPU", "RK3588_NPU"},
        "RKNN network on NPU": {"RK3568_NPU", "RK3588_NPU"},
    }


def test_winograd_in_bytes_is_for_cores_without_their_dot_product() -> None:
    """VGG-16, all 3 x 3, gains by it over MobileNet, which has none: ncnn's own times of bytes, one thread."""
    rows = [row for row in shipped_rows() if row.precision == "int8" and "CPU 1 thread" in row.workload]
    measured = {(row.device, row.model): row.value for row in rows if "ncnn" in row.software}
    ratio = {
        device: measured[device, "VGG-16"] / measured[device, "SqueezeNet 1.1"]
        for device, model in measured
        if model == "VGG-16" and (device, "SqueezeNet 1.1") in measured
    }
    counted = {}
    for row in rows:
        if "ncnn" in row.software and row.model == "VGG-16":
            work = interpret(row).work
            counted[row.device] = (work["m"] * work["n"] * work["k"] * work["count"]).sum()
    fewest = min(counted.values())
    without = [device for device in ratio if counted[device] == fewest]
    direct = [device for device in ratio if counted[device] > 1.5 * fewest]
    assert len(direct) >= 3 and without, (ratio, counted)
    assert median(ratio[device] for device in without) < median(ratio[device] for device in direct)


def test_cores_are_related_by_their_kind_whoever_makes_the_chip() -> None:
    related: dict[str, set[str]] = {}
    for twin in ("RaspberryPi3", "RK3568_CPU", "RK3588_CPU", "Snapdragon765G_CPU", "Kirin970_CPU", "RaspberryPi4"):
        related.setdefault(levels_of("ncnn network on CPU", twin)["family"], set()).add(twin)
    assert sorted(map(sorted, related.values())) == [
        ["Kirin970_CPU", "RaspberryPi4"],  # A73 and A72
        ["RK3568_CPU", "RaspberryPi3"],  # A55 and A53
        ["RK3588_CPU", "Snapdragon765G_CPU"],  # A76, beside A55 that do not count
    ]


def test_a_board_is_estimated_by_what_was_measured_on_such_boards() -> None:
    """Where all published networks of a system ran on its processor, or all on its GPU, so does the estimate."""
    measured: dict[str, set[str]] = {}
    for setting, twins in machines().items():
        if " network on " in setting and not setting.startswith("energy"):
            for twin in twins:
                measured.setdefault(twin, set()).add(setting.rpartition(" on ")[2])
    systems = {twin: kinds for twin, kinds in measured.items() if Hardware[twin].kind == "SoC" and len(kinds) == 1}
    assert {"RaspberryPi4", "JetsonNano"} <= set(systems)
    for twin, kinds in systems.items():
        assert setting_of(Hardware[twin], None).rpartition(" on ")[2] in kinds, twin


def test_x86_does_two_products_of_integers_a_lane_whatever_its_peak_says() -> None:
    """Ncnn's convolutions multiply in 16 bits there: 4.5 GHz, two pipes of 16 lanes, two products of two operations."""
    cases = {
        row.device: interpret(row).engine
        for row in shipped_rows()
        if "ncnn" in row.software and row.precision == "int8" and "CPU 1 thread" in row.workload
    }
    assert cases["AMD EPYC 9V45"].matmul == pytest.approx(4.5e9 * 2 * 16 * 2 * 2, rel=1e-3)
    # Without VNNI a second instruction adds.
    assert cases["AMD EPYC 7742"].matmul == pytest.approx(3.4e9 * 2 * 8 * 2, rel=1e-3)
    cobalt = view(Hardware["Cobalt100"], "int8")
    arm = next(engine for device, engine in cases.items() if "Cobalt" in device)
    assert arm.matmul == pytest.approx(cobalt.require("rate") / cobalt.require("units"), rel=1e-3)


def test_highest_accuracy_of_bert_is_eight_bits_wide_on_hopper_and_sixteen_on_ampere() -> None:
    """Hopper answers 0.8 times as many questions at 99.9 % as in INT8, Ampere half as many, as their runs say."""
    formats: dict[str, set[str]] = {}
    for row in shipped_rows():
        if "H200" in row.device:  # some of its runs are held below its design power, and not expressible
            continue
        if "/NVIDIA/results/" in row.source_path and "/bert-99.9/" in row.source_path and "throughput" in row.metric:
            formats.setdefault(row.device, set()).add(interpret(row).engine.computes_in)
    assert formats["NVIDIA H100 SXM5"] == formats["NVIDIA L4"] == {"fp8"}
    assert formats["NVIDIA A100 80GB SXM"] == {"fp16"}


def test_where_a_table_gives_one_time_for_two_formats_the_wider_one_ran() -> None:
    """BERT-Large under TensorFlow 1.15 on an A100: the sixteen bits of its table are as slow as TF32, within 3 %."""
    rows = [row for row in shipped_rows() if "TensorFlow 1.15" in row.software and row.model == "BERT-Large"]
    times: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        if "A100" in row.device and row.metric.startswith("latency"):
            times.setdefault((row.batch, row.seq_or_shape), {})[row.precision] = row.value
            assert interpret(row).engine.computes_in == {"fp32": "fp32"}.get(row.precision, "tf32")
    assert len(times) == 8
    assert all(result["amp fp16"] == pytest.approx(result["tf32"], rel=0.03) for result in times.values())
    halves = [row for row in shipped_rows() if "TensorFlow 2" in row.software and row.precision == "amp fp16"]
    assert {interpret(row).engine.computes_in for row in halves if row.model == "BERT-Large"} == {"fp16"}


@pytest.mark.parametrize("network", ["IC ResNet-8", "VWW MobileNetV1-0.25"])
def test_a_core_that_issues_two_instructions_needs_about_half_the_cycles(network: str) -> None:
    """One submitter's runs of MLPerf Tiny on a Cortex-M4 and an M7, whose rate of SMLAD is the same each cycle."""
    cycles, result = [], []
    for device, clock in (("STM32L4R5 (Cortex-M4F 120 MHz)", 120e6), ("STM32H7A3 (Cortex-M7 280 MHz)", 280e6)):
        metered = (row for row in shipped_rows() if row.device == device and row.model == network)
        row = next(row for row in metered if "submitter Krai" in row.note and "energy-mode run throughput" in row.note)
        rate = re.search(r"throughput ([\d.]+) inf/s", row.note)
        assert rate
        cycles.append(clock / float(rate.group(1)))
        case = interpret(row)
        plain = fitted()["microcontroller runtime on MCU"].vectorised()
        result.append(clock * float(calibrated_times(CaseBatch.of([(case.engine, case.work, True)]), plain)[0]))
    assert result[0] / result[1] == pytest.approx(cycles[0] / cycles[1], rel=0.25)


# Cycles of a multiply-accumulate, counted by hand from loops in the instructions of each core: of CMSIS-NN's blocks of
# 2 × 2, 8 SMLAD and 17 others for 16; of its rows 6 SMLAD and 23 others for 12; of plain loops, two loads, the end of
# the loop and, one after the other, multiply and add. A Cortex-M7 issues two at once, beside one SMLAD a cycle; a
# Cortex-M0+ loads in two cycles.
COUNTED = {
    ("STM32L4R5", "int8", 64): 8 / 16 + 17 / 16,
    ("STM32L4R5", "int8", 1): 6 / 12 + 23 / 12,
    ("STM32L4R5", "fp32", 64): 2 + 3,
    ("STM32H7A3", "int8", 64): 8 / 16 + 17 / 16 / 2,
    ("STM32U575", "int8", 64): 8 / 16 + 17 / 16 / 1.18,
    ("STM32G0B1", "int8", 64): 2 + 2 * 2 + 1,
    ("RX65N", "int8", 64): 1 + 3,
}


@pytest.mark.parametrize(("device", "precision", "pixels"), COUNTED)
def test_a_core_issues_what_its_loops_are_written_in(device: str, precision: str, pixels: int) -> None:
    """Of a deep product at full efficiency, whose results are too few to count."""
    machine = Hardware[device]
    deep = 2**16
    product = Kernel(MATMUL, 2.0 * pixels * 64 * deep, 1.0, m=pixels, n=64, k=deep)
    best = Parameters(compute=1.0, reuse=30.0, launch=1e-12, ramp=1.0)
    seconds = calibrated_times(CaseBatch.of([(view(machine, precision), Work.of([product]), True)]), best.vectorised())[
        0
    ]
    cycles = seconds * machine.chip("clock").m_as("Hz") / (pixels * 64 * deep)
    assert cycles == pytest.approx(COUNTED[device, precision, pixels], rel=0.02)


def test_plain_c_uses_no_vectors_and_one_core() -> None:
    """Espressif's own loops for the ESP32-S3 multiply 16 numbers at once, and its compiler one."""
    row = next(row for row in shipped_rows() if row.device == "ESP32-S3" and "ANSI C" in row.software)
    plain, own = interpret(row).engine, interpret(replace(row, software="ESP-NN optimised")).engine
    assert (plain.matmul, plain.units, own.units) == (pytest.approx(2 * 240e6), 1, 1)
    assert own.matmul == pytest.approx(16 * plain.matmul)


@pytest.mark.parametrize(
    ("model", "setting"),
    [("IC ResNet-8", "reference kernels on MCU"), ("AD FC autoencoder", "fully connected interpreter on MCU")],
)
def test_an_interpreter_without_kernels_in_floating_point_runs_its_reference(model: str, setting: str) -> None:
    """No measurement of ours is such a one: of an integer network, what it would be in FP32."""
    rows = (row for row in shipped_rows() if row.model == model and row.metric == "latency" and "L4R5" in row.device)
    row = replace(next(rows), software="TFLite Micro", precision="fp32")
    assert interpret(row).setting == setting
    assert interpret(replace(row, precision="int8")).setting == "microcontroller runtime on MCU"
    assert interpret(replace(row, precision="int8", device="Renesas RX65N")).setting == setting
    assert interpret(replace(row, software="X-CUBE-AI v9.0")).setting == "tuned microcontroller runtime on MCU"


@pytest.mark.parametrize(
    ("software", "device", "precision", "setting"),
    [
        ("TinyMaix", "STM32L4R5 (Cortex-M4F 120 MHz)", "int8", "microcontroller runtime on MCU"),
        ("TinyMaix", "ESP32-S3", "int8", "plain kernels on MCU"),
        ("Renesas e-AI Translator", "Renesas RX65N", "int8", "microcontroller runtime on MCU"),
        ("Renesas e-AI Translator", "Renesas RX65N", "fp32", "plain kernels on MCU"),
        ("X-CUBE-AI v9.0", "STM32L4R5 (Cortex-M4F 120 MHz)", "fp32", "tuned microcontroller runtime on MCU"),
    ],
)
def test_loops_are_written_for_integers_and_for_cores_with_pairs(
    software: str, device: str, precision: str, setting: str
) -> None:
    """TinyMaix times 132 ms with pairs and 204 without on a Cortex-M7, CMSIS-NN 136 (its benchmark.md)."""
    row = next(row for row in shipped_rows() if "MLPerf Tiny IC" in row.workload and row.unit == "ms")
    unseen = replace(row, device=device, software=software, precision=precision, note="", source="somebody/else")
    assert interpret(unseen).setting == setting


def test_who_built_unnamed_software_is_its_version() -> None:
    rows = [row for row in shipped_rows() if "MLPerf Tiny" in row.workload and not row.software]
    found = {row.workload: interpret(row).version for row in rows if "NUCLEO" in row.workload.upper()}
    assert found["MLPerf Tiny IC energy (NUCLEO-H7A3ZI-Q_X-CUBE-AI-7.3)"] == "X-CUBE-AI v7.3"
    assert found["MLPerf Tiny AD (NUCLEO_L4R5ZI)"].startswith("STMicroelectronics, mlcommons/tiny_results_v")
    named = next(row for row in shipped_rows() if row.software == "X-CUBE-AI v9.0")
    assert interpret(named).version == interpret(replace(named, software="X-CUBE-AI v9.0.0")).version == "X-CUBE-AI v9"
    assert interpret(replace(named, software="TensorRT 10.0.1, CUDA 12.0")).version == "TensorRT 10.0.1, CUDA 12"


@pytest.mark.parametrize("name", ["STM32U575", "STM32L4R5", "RA6M4", "RX65N"])
def test_a_running_core_draws_what_its_data_sheet_says_and_a_little_for_the_rest(name: str) -> None:
    """Power from data sheets beside what MLPerf Tiny metered, which is no part of it."""
    metered = [power for power in measured_powers() if power.twin.id == name]
    nominal = interpret(metered[0].row).power / AT_WORK
    assert 0.95 < median(power.watts for power in metered) / nominal < 1.5


def test_layers_left_to_the_processor_take_the_time_that_they_take() -> None:
    """No fit sees these rows: their source calls them suspect, and says how many layers fell back."""
    left = [row for row in shipped_rows() if row.software.endswith("AI Hub onnx") and " cpu;" in row.note]
    ratios = [case.at_least / case.seconds for case in map(interpret, left)]
    assert len(ratios) >= 15
    assert 0.5 < min(ratios) <= max(ratios) < 2
    assert len({row.device for row in left}) >= 4


def test_neural_processors_of_phones_are_a_family_of_their_own() -> None:
    setting = "AI Hub int8 network on NPU"
    of = {name: levels_of(setting, name)["family"] for name in ("Snapdragon8Gen2", "Snapdragon8Elite", "QCS9075")}
    assert of["Snapdragon8Gen2"] == of["Snapdragon8Elite"] != of["QCS9075"]
    # Apart from their neural processors, phones and boards have the same cores.
    assert "phone" not in levels_of("ncnn network on CPU", "Snapdragon8Gen2_CPU")["family"]


def test_tensorflow_lite_takes_one_thread_where_no_program_asks_for_more() -> None:
    """The fastest of its FP32 runs comes close to what one core of the chip can, and none beyond."""
    rows = [row for row in shipped_rows() if row.software.startswith("TFLite CPU (main") and row.precision == "fp32"]
    cases = [interpret(row) for row in rows]
    core = 5.8e9 * 2 * 2 * 8  # two fused multiply-adds of eight lanes each cycle, at the highest clock of Intel's page
    assert 0.8 < max(case.work.flops / case.seconds for case in cases) / core <= 1
    assert all(case.engine.matmul == pytest.approx(core) for case in cases)


def test_threads_that_share_a_picture_gain_what_published_runs_gain() -> None:
    """VGG-16 under ncnn with 1 and with 64 threads on three chips: between the least and the most that was measured."""
    times: dict[str, dict[int, float]] = {}
    for row in shipped_rows():
        if "ncnn" in row.software and row.model == "VGG-16" and row.precision != "int8" and row.device_class == "CPU":
            times.setdefault(row.device, {})[threads_of(typed(row))] = row.value
    gains = [each[1] / each[64] for each in times.values() if {1, 64} <= set(each)]
    assert len(gains) >= 3
    twin = Hardware["Cobalt100"]
    engine = engine_for(twin, "fp32")
    one, many = on_threads(engine, twin, 1), on_threads(engine, twin, 64)
    gain = many.matmul / one.matmul * float(waiting(np.array(one.team)) / waiting(np.array(many.team)))
    assert min(gains) < gain < 1.2 * max(gains)
    # A picture each: nobody waits.
    assert on_threads(engine, twin, 64, samples=64).team == 1


def test_what_threads_wait_for_is_no_part_of_a_bound() -> None:
    rows = [row for row in shipped_rows() if "ncnn" in row.software and "CPU 64 threads" in row.workload]
    for row in rows[:3]:
        case = interpret(row)
        alone = replace(case.engine, team=1.0, joining=1.0)
        stacks = [CaseBatch.of([(engine, case.work, case.cached)]) for engine in (case.engine, alone)]
        assert case.engine.team == 64
        for with_threads, without in zip(bound(stacks[0]), bound(stacks[1]), strict=True):
            assert with_threads == without


def test_threads_are_read_where_a_note_states_them() -> None:
    rows = [row for row in shipped_rows() if "XNNPACK" in row.software and "Pixel 2" in row.device]
    assert {threads_of(typed(row)) for row in rows} == {0, 1}  # "1 thread", and "big cores"
    for row in rows:
        assert (" 1 thread " in interpret(row).setting) == (threads_of(typed(row)) == 1)


def test_a_batch_fills_a_processor_that_one_picture_does_not() -> None:
    """MLPerf's ResNet-50 on one machine: side by side its pictures take a part of what they take one by one."""
    rows = [row for row in shipped_rows() if row.device == "Intel Core i9-13900K" and row.model.startswith("ResNet-50")]
    single = min(row.value * 1e-3 for row in rows if row.metric.startswith("latency") and "onnx" in row.software)
    many = min(1 / row.value for row in rows if row.unit == "samples/s" and "onnx" in row.software)
    twin = Hardware["Core_i9_13900K"]
    one, batch = (
        analyze(twin, zoo.network("resnet50", batch=size, precision="fp32"), samples=size) for size in (1, 32)
    )
    result = (batch.estimate / 32 / one.estimate).m_as("")
    assert many / single < 0.7
    assert result < 0.7
    waits = [next((words for words in each.assumptions if "one thread per core" in words), "") for each in (one, batch)]
    assert "24 share a sample" in waits[0] and not waits[1], waits


def test_microcontrollers_alone_issue_one_instruction_after_the_other() -> None:
    """A slow GPU of a phone with two units was once taken for one: its networks came out hundreds of times too slow."""
    machines = [device for device in Hardware if device.memory[device.main_memory]._bandwidth is not None]
    result = {
        device.kind
        for device in machines
        for precision in device.precisions
        if snapshot(view(device, precision)).controller
    }
    assert result == {"MCU"}


def test_every_core_of_a_microcontroller_multiplies_by_itself_whatever_its_clock() -> None:
    """At 800 MHz a Cortex-M55 was once taken for a phone's processor; a K210's array is no core."""
    result = {device.id: snapshot(view(device, "int8")).controller for device in Hardware.find(kind="MCU")}
    assert result["STM32N657"] == result["Apollo510"] > 0
    assert [name for name, issued in result.items() if not issued] == ["K210"]


def test_what_an_interpreter_takes_is_cycles_of_its_core() -> None:
    """Small layers, of which the interpreter is most: at half the clock they take twice as long."""
    row = next(row for row in blind_evaluation_rows(5) if row.device.startswith("Ambiq Apollo510 (HP"))
    case = interpret(replace(row, model="AD FC autoencoder"))
    slow = at_clock(case.engine, case.engine.clock / 2, memory=True)
    mostly = replace(fitted()[case.setting], launch=1e-2).vectorised()
    times = calibrated_times(CaseBatch.of([(engine, case.work, True) for engine in (case.engine, slow)]), mostly)
    assert times[1] / times[0] == pytest.approx(2, rel=1e-6)


def test_helium_requantises_four_results_in_two_cycles() -> None:
    """Of a product as shallow as can be, on a core with Helium and on one without: bytes alone come by vectors."""
    product = Work.of([Kernel(MATMUL, 2.0 * 64 * 64, 1.0, m=64, n=64, k=1)])
    results = Parameters(compute=1.0, reuse=30.0, launch=1e-12, ramp=1000.0).vectorised()

    def each(device: str, precision: str) -> float:
        machine = Hardware[device]
        seconds = float(calibrated_times(CaseBatch.of([(view(machine, precision), product, True)]), results)[0])
        return seconds * machine.chip("clock").m_as("Hz") / (64 * 64)

    assert each("STM32L4R5", "int8") == pytest.approx(1000, rel=0.01)
    assert each("Apollo510", "int8") == pytest.approx(4 / 2 * 1000 / 4, rel=0.01)
    assert each("Apollo510", "fp32") == pytest.approx(1000, rel=0.01)


@pytest.mark.parametrize("device", ["Apple_M1Max_CPU", "Snapdragon8Gen3_CPU", "Graviton3", "Xeon_8380"])
def test_a_token_from_weights_of_8_bits_takes_no_longer_than_from_those_of_32(device: str) -> None:
    """Cores do bytes and halves in the vectors of FP32: their sums were once chained as in a matrix unit.

    A product by a vector, whose weights come from a memory so fast that arithmetic alone is left.
    """
    times = []
    for precision in ("int8", "fp32"):
        engine = snapshot(view(Hardware[device], precision)).changed(bandwidth=1e15)
        product = Work.of([Kernel(MATMUL, 2.0 * 4096 * 4096, 1.0, m=1, n=4096, k=4096)])
        alone = replace(Parameters(), launch=1e-12, ramp=1.0).vectorised()
        times.append(float(calibrated_times(CaseBatch.of([(engine, product, True)]), alone)[0]))
    assert times[0] <= times[1]


def test_cores_unpack_a_weight_of_4_bits_in_a_few_slots_of_their_vectors() -> None:
    """Two operations at 0.4 of a vector unit of 32 FLOP a cycle, six weights a cycle; halves need none."""
    machine = Hardware["Apple_M1Max_CPU"]
    engine = snapshot(view(machine, "fp16")).changed(bandwidth=1e15)
    cycles = []
    for stored in (0.5, 2.0):
        values = 4096.0 * 4096
        product = Work.of([Kernel(MATMUL, 2 * values, 1.0, weights=stored * values, m=1, n=4096, k=4096)])
        stack = CaseBatch.of([(engine, product, True)])
        seconds = float(calibrated_times(stack, replace(Parameters(), vector=0.4, launch=1e-12).vectorised())[0])
        cycles.append(seconds * engine.clock * engine.units / values)
    assert 1 / cycles[0] == pytest.approx(32 * 0.4 / 2, rel=0.05)
    assert cycles[1] < cycles[0]


def test_no_run_of_paddle_lite_beats_a_bound_that_knows_winograd() -> None:
    """Without the algorithm, ResNet-50 on three phones took less than its multiplications do at the dense peak."""
    rows = [row for row in shipped_rows() if "Paddle-Lite" in row.software and row.precision != "int8"]
    cases = [interpret(row) for row in rows if row.model == "ResNet-50"]
    arithmetic, traffic = bound(CaseBatch.of([(case.engine, case.work, case.cached) for case in cases]))
    assert len(cases) >= 5
    for case, least in zip(cases, np.maximum(arithmetic, traffic), strict=True):
        assert least < case.seconds, case.row


def test_what_twice_the_batch_would_gain_on_a_processor_is_what_it_gains() -> None:
    twin = Hardware["Core_i9_10900X"]
    one, two = (analyze(twin, zoo.network("resnet18", batch=size, precision="fp32"), samples=size) for size in (1, 2))
    result = next(change for change in one.changes if "twice the batch" in change.change)
    assert result.time.m_as("s") == pytest.approx(two.estimate.m_as("s") / 2)
    assert result.speedup > 1.2


def test_cards_held_below_their_power_by_an_unseen_limit_say_nothing_of_their_rates() -> None:
    capped = [row for row in shipped_rows() if "power-capped" in row.workload]
    assert capped
    for row in capped:
        with pytest.raises(Inexpressible, match="by a limit that was not seen"):
            interpret(row)
    full = [row for row in shipped_rows() if row.source in {each.source for each in capped} and row not in capped]
    assert "H200_SXM" in {interpret(row).twin for row in full if "H200" in row.device and "BERT" in row.model}
