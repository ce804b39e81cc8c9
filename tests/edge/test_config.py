"""Configurations: every fault in one pass, and 500 broken files that end in one clean error."""

import copy
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from mlsys.cli import main
from mlsys.edge import Config, example_config
from mlsys.edge.schema import SCHEMA, faults
from mlsys.errors import EdgeFileError
from mlsys.hardware import Hardware


def test_example_is_without_fault_and_says_every_key() -> None:
    config = Config(example_config())
    assert config.variants[0] == ("none", 0.0, "fp32")
    assert len(config.variants) == len(set(config.variants)) == 6 * 5
    assert set(example_config()) == set(SCHEMA["properties"])


def test_usual_budgets_are_those_of_the_source() -> None:
    config = Config({"network": "small-cnn"})
    assert [budget.m_as("MB") for budget in config.budgets] == [0.5, 1, 2, 5]
    assert config.active_budget.m_as("MB") == 1
    assert config.repeats == 5
    assert config.samples * config.repeats == 1000


def test_every_fault_in_one_pass_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        "network: small-cn\n"
        "batch: 0\n"
        "precisions: [fp32, fp32, int7]\n"
        "clocks: [1.5]\n"
        "pruning: {structured: [1.0]}\n"
        "active_memory_budget_mb: 0\n"
        "memory_bandwidth_gb_s: .nan\n"
        "power: {static_w: -1}\n"
        "budget: 3\n"
        "latency: {source: modelled, device: A10O}\n"
        "network: lenet5\n"
    )
    with pytest.raises(EdgeFileError) as error:
        Config.load(path)
    result = str(error.value).splitlines()
    wanted = {
        (1, "network"), (2, "batch"), (3, "precisions.1"), (3, "precisions.2"), (4, "clocks.0"),
        (5, "pruning.structured.0"), (6, "active_memory_budget_mb"), (7, "memory_bandwidth_gb_s"),
        (8, "power.static_w"), (9, "budget"), (10, "latency.device"), (11, "network"),
    }  # fmt: skip
    lines = {(int(line.split(":")[1]), line.split(":")[2].strip()) for line in result}
    assert wanted == lines
    assert all(line.startswith(str(path)) for line in result)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"latency": {"source": "modelled"}}, "`device` is missing"),
        ({"latency": {"device": "RaspberryPi4"}}, "applies to `source: modelled`"),
        ({"power": {"measured": [{"clock_mhz": 1, "time_ms": 1, "energy_mj": 1}]}}, "two clocks"),
        ({"power": {"dynamic_w": {"fp32": 1}}}, "no power for fp16"),
        ({"network": "gpt3"}, "has counts but no graph"),
        ({"clocks": []}, "must not be empty"),
        ({"seed": -1}, "whole number from 0"),
        ({"seed": True}, "whole number"),
        ({"limits": {"accuracy": 95}}, "limits.accuracy"),
        ({"memory_budgets_mb": [1, 1.0]}, "is a duplicate of"),
    ],
)
def test_what_does_not_go_together(change: dict[str, Any], message: str) -> None:
    with pytest.raises(EdgeFileError, match=message):
        Config({"network": "small-cnn", **change})


def test_power_from_measurements() -> None:
    points = [
        {"clock_mhz": 168, "time_ms": 145, "energy_mj": 18},
        {"clock_mhz": 80, "time_ms": 305, "energy_mj": 24},
    ]
    config = Config({"network": "small-cnn", "power": {"measured": points}})
    assert config.static_power.m_as("mW") == pytest.approx(37.5)
    assert (config.dynamic_power("fp32") * 145e-3).m_as("W") == pytest.approx(12.5625e-3)


STRANGE = (None, 0, -1, 1.5, float("nan"), float("inf"), 10**30, "", "x", "a:b", [], [None], {}, {"x": 1}, True, [[1]])


def mutated(chance: random.Random) -> Any:
    """Return the example with something replaced, removed, added or renamed, at any depth."""
    data: Any = copy.deepcopy(example_config())
    for _ in range(chance.randint(1, 3)):
        node: Any = data
        while isinstance(node, (dict, list)) and node:
            key = chance.choice(list(node)) if isinstance(node, dict) else chance.randrange(len(node))
            if isinstance(node[key], (dict, list)) and node[key] and chance.random() < 0.6:
                node = node[key]
                continue
            action = chance.randrange(4)
            if action == 0:
                node[key] = copy.deepcopy(chance.choice(STRANGE))
            elif action == 1:
                del node[key]
            elif isinstance(node, dict):
                node[chance.choice(("", "x", "batch", "clock"))] = copy.deepcopy(chance.choice(STRANGE))
            else:
                node.append(copy.deepcopy(chance.choice(STRANGE)))
            break
    return chance.choice(STRANGE) if chance.random() < 0.02 else data


def test_500_mutated_configurations_end_in_faults_or_in_a_configuration() -> None:
    chance = random.Random(13)
    refused = 0
    for _ in range(500):
        data = mutated(chance)
        faults_told = faults(data)
        assert all(isinstance(text, str) and "\n" not in text for _, text in faults_told)
        refused += bool(faults_told)
        if not faults_told:
            config = Config(data)
            assert config.variants
            assert config.clocks
            assert config.static_power.m_as("W") >= 0
            assert all(config.dynamic_power(precision).m_as("W") >= 0 for precision in config.precisions)
    assert 200 < refused < 500


def test_mutated_texts_end_in_one_clean_error(tmp_path: Path) -> None:
    text = yaml.safe_dump(example_config())
    chance = random.Random(5)
    path = tmp_path / "mutant.yaml"
    for _ in range(120):
        position = chance.randrange(len(text))
        mark = chance.choice(["\t", "{", "]", "&a ", "*a", "!x ", "\x00", ":", "- ", "'", ""])
        path.write_text(text[:position] + mark + text[position + chance.randrange(3) :])
        try:
            Config.load(path)
        except EdgeFileError as error:
            assert str(path) in str(error)


def test_command_refuses_on_one_line_a_fault_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("network: small-cnn\nbatch: 0\nclocks: [2]\n")
    done = CliRunner().invoke(main, ["edge", "run", str(path)])
    assert done.exit_code == 1
    assert "bad.yaml:2: batch" in done.output
    assert "bad.yaml:3: clocks.0" in done.output
    assert list(tmp_path.iterdir()) == [path]


def test_example_of_the_command_can_be_run_as_it_is(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["edge", "run", "--example"])
    path = tmp_path / "example.yaml"
    path.write_text(done.output)
    assert Config.load(path).data == example_config()
    assert CliRunner().invoke(main, ["edge", "run"]).exit_code == 1


def test_advice_begins_where_the_configuration_says() -> None:
    """The stored run accepts 40 of 60 points: fewer than three in four, more than one in two."""
    from mlsys.edge.layers import summarize_hardware
    from mlsys.edge.stored import stored_run
    from mlsys.edge.tables import edge_advice
    from mlsys.units import Q_
    from mlsys.workloads import load

    run = stored_run()
    summary = summarize_hardware(load("small-cnn"), Q_(1, "ms"), Q_(12.8, "GB/s"))
    usual = " ".join(edge_advice(run.config, run.points(), summary))
    strict = Config({**run.config.data, "advice": {"least_accepted": 0.75}})
    assert "40 of 60" in usual
    assert "stricter" not in usual
    assert "less than 75%" in " ".join(edge_advice(strict, run.points(), summary))


MODELLED = {"network": "small-cnn", "latency": {"source": "modelled", "device": "STM32H7A3"}}


def test_power_left_out_is_that_of_the_device() -> None:
    """Two watts of some processor were once taken for a microcontroller that draws an eighth of one."""
    config = Config(MODELLED)
    drawn = Hardware.Tiny.STM32H7A3
    static, dynamic = config.static_power, config.dynamic_power("int8-static")
    assert static.m_as("W") == pytest.approx(drawn.idle_power.m_as("W"))
    assert (static + dynamic).m_as("W") == pytest.approx(drawn.active_power.m_as("W"))
    assert config.bandwidth.m_as("GB/s") == pytest.approx(drawn.memory_bw.m_as("GB/s"))
    assert "STM32H7A3: active power as recorded" in config.power_rests_on
    given = Config({**MODELLED, "power": {"static_w": 0.1, "dynamic_w": 0.2}, "memory_bandwidth_gb_s": 1.0})
    assert given.static_power.m_as("W") == 0.1
    assert given.bandwidth.m_as("GB/s") == 1.0
    assert given.power_rests_on == "as given"


def test_a_device_whose_power_nobody_knows_needs_one() -> None:
    result = dict(faults({**MODELLED, "latency": {"source": "modelled", "device": "A100"}}))
    assert "no power under load is known for A100 or its class. Give static_w and dynamic_w" in result[("power",)]
