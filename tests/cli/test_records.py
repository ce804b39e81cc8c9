"""What ``--json`` prints of a model's result has one form: its version, and a unit for each number that has one."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from mlsys.cli.main import main
from mlsys.units import ureg

COMMANDS = {
    "analyze": ["analyze", "lenet5", "--device", "A100"],
    "compare": ["compare", "lenet5", "--devices", "A100,T4"],
    "cost": ["cost", "A100"],
    "tiles": ["tiles", "lenet5", "--device", "A100"],
    "flops": ["flops", "lenet5"],
    "memory": ["memory", "lenet5", "--device", "A100"],
    "systolic": ["systolic", "64", "64", "64"],
    "mapper": ["mapper", "gemm:64x64x64", "--device", "A100"],
}
# What is told in units by hand, and so must be told by the command too.
WORDED = {
    "s": ("seconds", "time"),
    "byte": ("bytes",),
    "cycle": ("cycles",),
    "FLOP": ("flops",),
    "%": ("pct", "percent"),
}


def records(command: str) -> list[dict[str, Any]]:
    answer = CliRunner().invoke(main, [*COMMANDS[command], "--json"])
    assert answer.exit_code == 0, answer.output
    data = json.loads(answer.stdout)
    return data if isinstance(data, list) else [data]


def plain_numbers(value: Any, name: str = "") -> Any:
    """Yield each number that has no unit beside it, with its name."""
    if isinstance(value, dict) and "unit" not in value:
        for key, entry in value.items():
            yield from plain_numbers(entry, key)
    elif isinstance(value, list):
        for entry in value:
            yield from plain_numbers(entry, name)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield name, value


@pytest.mark.parametrize("command", COMMANDS)
def test_every_record_names_its_version_and_its_units(command: str) -> None:
    for record in records(command):
        assert record["record"] == 1
        units = record["units"]
        names = {name for name, _ in plain_numbers(record)}
        for unit, endings in WORDED.items():
            for name in names:
                if name.split("_")[-1] in endings and "_per_" not in name:
                    assert units.get(name) == unit, f"{command}: {name} is a number without its unit"
        for unit in {*units.values(), "s"} - {"%", "param", "word"}:
            assert ureg.Unit(unit) is not None


def test_the_same_name_has_the_same_unit_in_every_command() -> None:
    seen: dict[str, str] = {}
    for command in ("analyze", "compare", "flops", "tiles"):
        for record in records(command):
            for name, unit in record["units"].items():
                assert seen.setdefault(name, unit) == unit
    assert len(seen) > 8


def test_a_mapped_layer_is_the_record_of_its_result_and_one_line() -> None:
    (record,) = records("mapper")
    assert record["time"]["unit"] == "s" and record["figures"]["energy"]["unit"] == "J" and record["facts"]
    answer = CliRunner().invoke(main, [*COMMANDS["mapper"], "--csv"])
    heads, line = answer.stdout.splitlines()
    result = dict(zip(heads.split(","), line.split(","), strict=True))
    assert float(result["seconds"]) == record["time"]["value"]
    assert float(result["joules"]) == record["figures"]["energy"]["value"]
