"""``mlsys tiles``: text, rows and JSON of a tiled network, and errors in one line."""

import csv
import json

import pytest
from click.testing import CliRunner

from mlsys import Hardware
from mlsys.cli import main
from mlsys.models.architecture import architecture as run_model
from mlsys.workloads import load


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["tiles", *map(str, arguments)])
    return result.exit_code, result.output


def test_text_says_time_energy_bytes_and_tiles() -> None:
    code, text = run("resnet50", "--device", "GenericTPU")
    assert code == 0
    for part in ("ResNet-50 on Generic TPU", "Energy:", "UnifiedBuffer", "Longest operators", "×128×"):
        assert part in text


def test_rows_and_json_are_those_of_the_model() -> None:
    result = run_model(Hardware.Generic.KPU, load("mobilenet_v2", batch=2, precision="fp32"))
    code, text = run("mobilenet_v2", "--device", "GenericKPU", "--batch", 2, "--unfused", "--csv")
    rows = list(csv.DictReader(text.splitlines()))
    assert code == 0 and len(rows) == len(result.children)
    assert sum(float(row["seconds"]) for row in rows) == pytest.approx(result.time.m_as("s"))
    code, text = run("mobilenet_v2", "--device", "GenericKPU", "--batch", 2, "--unfused", "--json")
    report = json.loads(text)
    assert code == 0 and report["figures"]["energy"]["value"] == pytest.approx(result.spent.m_as("J"))
    assert sum(part["value"] for part in report["energy"].values()) == pytest.approx(result.spent.m_as("J"))


def test_a_larger_memory_and_a_launch() -> None:
    small, large = (
        json.loads(run("gpt2", "--device", "GenericKPU", "--onchip", size, "--json")[1]) for size in ("1 MiB", "16 MiB")
    )
    assert large["moved"]["DRAM"]["value"] < small["moved"]["DRAM"]["value"]
    paid = json.loads(run("gpt2", "--device", "GenericKPU", "--onchip", "16 MiB", "--launch", "5 us", "--json")[1])
    assert paid["parts"]["launch"]["value"] == pytest.approx(5e-6 * len(paid["children"]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("resnet50", "--device", "A100", "--strategy", "tpu"), "has no recorded array of multipliers"),
        (("resnet50", "--device", "A100", "--onchip", "1 MiB"), "is a real device, whose capacities are facts"),
        (("resnet5000", "--device", "A100"), "unknown network 'resnet5000'"),
        (("resnet50", "--device", "A100", "--json", "--csv"), "give either --json or --csv, not both"),
    ],
)
def test_errors_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    code, text = run(*arguments)
    assert (
        code == (2 if "either" in message else 1)
        and text.startswith("Error: ")
        and message in text
        and len(text.splitlines()) == 1
    )
