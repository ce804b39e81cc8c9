"""`mlsys plan` and `mlsys memory --buffers` from the shell."""

import json
import random
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from mlsys.cli.main import main
from mlsys.cli.plan import edge_planner
from mlsys.errors import ScenarioFileError
from mlsys.planner.placement import Scenario, example, plan
from mlsys.planner.placement.report import COLUMNS


def call(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, words)
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    path = tmp_path / "pipeline.json"
    assert call("plan", "--example", "--output", str(path))[0] == 0
    return path


def test_example_in_every_format(pipeline: Path, tmp_path: Path) -> None:
    code, text, _ = call("plan", str(pipeline))
    assert code == 0
    assert "latency 27.97 ms   energy 32.18 mJ   switches 2" in text
    assert "gpu 1,030 of 4,096 MB, npu 2,576 of 3,072 MB" in text
    record = json.loads(call("plan", str(pipeline), "--format", "json", "--top-k", "3")[1])
    assert record["optimal"] is True and record["strategy"] == "exact" and len(record["placements"]) == 3
    best = record["placements"][0]
    assert {key: best[key] for key in ("score", "latency_ms", "energy_mj", "switches")} == {
        "score": 27.97,
        "latency_ms": 27.97,
        "energy_mj": 32.18,
        "switches": 2,
    }
    assert [(stage["stage"], stage["device"]) for stage in best["stages"]][2] == ("backbone", "npu")
    table = call("plan", str(pipeline), "--format", "csv")[1].splitlines()
    assert table[0].split(",") == list(COLUMNS) and len(table) == 8
    page = tmp_path / "deep" / "er" / "plan.html"
    assert call("plan", str(pipeline), "--format", "html", "--output", str(page))[0] == 0
    html = page.read_text(encoding="utf-8")
    assert "<svg" in html and "27.97" in html
    assert "http://" not in html.replace("http://www.w3.org", "").replace("http://purl.org", "") or "src=" not in html
    assert not list(page.parent.glob(".plan*"))


def test_yaml_says_the_same(pipeline: Path, tmp_path: Path) -> None:
    other = tmp_path / "pipeline.yaml"
    other.write_text(yaml.safe_dump(example()), encoding="utf-8")
    assert call("plan", str(other), "--format", "json")[1] == call("plan", str(pipeline), "--format", "json")[1]


def test_the_planner_is_a_command_of_its_own(pipeline: Path) -> None:
    done = CliRunner().invoke(edge_planner, ["plan", str(pipeline), "--goal", "balanced"])
    assert done.exit_code == 0 and "goal      balanced" in done.stdout


def test_what_no_placement_meets_exits_with_3(tmp_path: Path) -> None:
    data = example()
    data["constraints"] = {"latency_ms": 27.96}
    path = tmp_path / "tight.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    code, text, record = call("plan", str(path))
    assert code == 3
    assert (
        "infeasible: constraints.latency_ms: at most 27.96 ms, and the least under the other caps is 27.97 ms" in record
    )
    assert "no feasible placement (proven)" in text


def test_faults_are_one_line_each_and_nothing_is_written(tmp_path: Path) -> None:
    data = example()
    data["devices"][0]["memory_mb"] = -1
    data["stages"][1]["profiles"]["tpu"] = {"latency_ms": 1, "energy_mj": 1, "memory_mb": 1}
    path, out = tmp_path / "bad.json", tmp_path / "out.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    code, text, record = call("plan", str(path), "--format", "json", "--output", str(out))
    assert (code, text, out.exists()) == (1, "", False)
    assert record.count("\n") == 2
    assert "devices.0.memory_mb: must be a number above 0 to 1e+12, got -1" in record
    assert "stages.1.profiles.tpu: unknown device 'tpu'." in record


def test_profiles_from_our_models_are_those_of_analyze(tmp_path: Path) -> None:
    saved = tmp_path / "made.json"
    code, _, record = call(
        "plan", "--profiles-from", "resnet50", "--devices", "A100,T4", "--save-scenario", str(saved), "--format", "csv"
    )
    assert code == 0, record
    made = json.loads(saved.read_text(encoding="utf-8"))
    for device in ("A100", "T4"):
        code, text, _ = call("analyze", "resnet50", "--device", device, "--json")
        operators = json.loads(text)["operators"]
        times = [stage["profiles"][device]["latency_ms"] for stage in made["stages"]]
        assert len(times) == len(operators)
        assert sum(times) == pytest.approx(1e3 * json.loads(text)["estimate_seconds"], rel=1e-9)


def test_measured_profiles_replace_those_of_the_file(pipeline: Path, tmp_path: Path) -> None:
    table = tmp_path / "measured.csv"
    table.write_text("stage,device,latency_ms,energy_mj,memory_mb\nneck,npu,3.7,4.9,700\n", encoding="utf-8")
    record = json.loads(call("plan", str(pipeline), "--profiles", str(table), "--format", "json")[1])
    assert record["placements"][0]["latency_ms"] == 26.97
    table.write_text(
        "stage,device,latency_ms,energy_mj,memory_mb\nneck,npu,x,4.9,700\nhead,npu,1,1,1\n", encoding="utf-8"
    )
    code, _, record = call("plan", str(pipeline), "--profiles", str(table))
    assert code == 1 and "measured.csv:2: latency_ms: must be a number, got 'x'" in record
    assert "measured.csv:3: stage: the scenario has no stage 'head'" in record


def test_mutated_scenarios_are_planned_or_refused(tmp_path: Path) -> None:
    rng = random.Random(13)
    text = json.dumps(example())
    path = tmp_path / "mutated.json"
    for number in range(500):
        if number % 2:
            start = rng.randrange(len(text))
            path.write_text(
                text[:start]
                + rng.choice(["", "}", "[", '"', "-", "e9", "null", "\x00"])
                + text[start + rng.randrange(9) :],
                encoding="utf-8",
            )
        else:
            data = json.loads(text)
            target: object = data
            while isinstance(target, (dict, list)) and target:
                key = rng.choice(list(target) if isinstance(target, dict) else range(len(target)))
                inner = target[key]  # type: ignore[call-overload,index]
                if not isinstance(inner, (dict, list)) or rng.random() < 0.2:
                    target[key] = rng.choice(
                        [None, -1, 0, "x", "gpu", [], {}, True, 1e-9, 1e300, 10**400, float("nan")]
                    )  # type: ignore[call-overload,index]
                    break
                target = inner
            path.write_text(json.dumps(data), encoding="utf-8")
        try:
            scenario = Scenario.load(path)
        except ScenarioFileError as error:
            assert all(line.startswith(str(path)) for line in str(error).splitlines())
        else:
            plan(scenario)


def test_buffers_from_the_shell(tmp_path: Path) -> None:
    table = tmp_path / "three.csv"
    table.write_text("id,lower,upper,size\na,0,2,4\nb,1,3,2\nc,2,4,4\n", encoding="utf-8")
    assert call("memory", "--buffers", str(table), "--capacity", "6", "--csv") == (0, "id,offset\na,0\nb,4\nc,0\n", "")
    code, text, message = call("memory", "--buffers", str(table), "--capacity", "5", "--csv")
    assert (code, text) == (3, "") and "proved" in message
    table.write_text("id,lower,upper,size\na,2,2,4\na,1,3,-2\n", encoding="utf-8")
    code, _, message = call("memory", "--buffers", str(table), "--capacity", "5")
    assert code == 1 and "three.csv:2: upper" in message and "three.csv:3: size" in message


def test_made_scenarios_join_devices_by_what_both_have_and_draw_what_was_metered(tmp_path: Path) -> None:
    """PCIe 2.0 x1 of a Raspberry Pi 5 carries 0.5 GB/s whatever is plugged in; a microcontroller has no TDP."""
    saved = tmp_path / "made.json"
    for devices in ("RaspberryPi5,P4", "STM32H7A3,STM32L4R5"):
        made = ("plan", "--profiles-from", "ds-cnn", "--devices", devices, "--precision", "int8")
        code, _, record = call(*made, "--save-scenario", str(saved), "--format", "csv")
        assert code == 0, record
        data = json.loads(saved.read_text(encoding="utf-8"))
        there, back = data["links"]
        for link in (there, back):
            assert link["bandwidth_gb_s"] == pytest.approx(0.5 if "Pi5" in devices else 1.5e-3)
        if "STM32" in devices:
            profile = data["stages"][0]["profiles"]["STM32L4R5"]
            assert profile["energy_mj"] == pytest.approx(47.5e-3 * profile["latency_ms"])  # MLPerf Tiny v0.7, its board
