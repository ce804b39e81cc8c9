"""``mlsys memory``: text, JSON, CSV, a picture, one line for every mistake."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from mlsys.cli import main
from mlsys.planner.memory import plan_memory
from mlsys.workloads import load


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["memory", *map(str, arguments)])
    return result.exit_code, result.output


def test_text_says_peak_bound_sum_and_what_fits() -> None:
    code, text = run("mobilenet-v2", "--in-place", "--device", "nRF52840", "--top", 3, "--lean-order")
    assert code == 0, text
    assert "6.021 MB hold 54 buffers" in text and "no plan for this order is smaller" in text
    assert "Without reuse the sum is 26.72 MB" in text
    assert "mobilenet_v2 does not fit Nordic Semiconductor nRF52840: activations need 6.623 MB of 262.1 kB SRAM" in text
    assert "weights need 14.16 MB of 1.049 MB Flash" in text
    assert "no order needs less" in text
    assert len(text.split("-----\n")[-1].split("\n\n")[0].splitlines()) == 3


def test_json_is_the_plan() -> None:
    code, text = run("small-cnn", "--batch", 2, "--precision", "fp16", "--json", "--device", "A100")
    assert code == 0, text
    report = json.loads(text)
    plan = plan_memory(load("small-cnn", batch=2, precision="fp16"))
    assert report["peak_bytes"] == plan.peak.magnitude
    assert report["lower_bound_bytes"] <= report["peak_bytes"] <= report["sum_bytes"]
    assert max(report["live_bytes"]) == report["lower_bound_bytes"]
    assert len(report["buffers"]) == len(plan.placements)
    assert report["fit"]["fits"] is True and report["fit"]["working_memory"] == "HBM"
    assert "order" not in report


def test_csv_has_a_line_for_each_buffer() -> None:
    code, text = run("lenet5", "--csv", "--fuse", "--strategy", "first-come", "--alignment", 1, "--inputs")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert code == 0 and list(rows[0]) == ["values", "offset", "bytes", "first_step", "last_step", "first", "last"]
    assert any(row["first_step"] == "0" for row in rows)
    assert sum(int(row["bytes"]) for row in rows) > 0


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_picture_is_written(tmp_path: Path, suffix: str) -> None:
    picture = tmp_path / f"plan.{suffix}"
    code, text = run("lenet5", "--figure", picture)
    assert code == 0 and f"written: {picture}" in text
    assert picture.stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("lenet5", "--json", "--csv"), "give either --json or --csv, not both"),
        (("lenet5", "--figure", "plan.gif"), "--figure must end in .png, .svg, .pdf, got 'plan.gif'"),
        (("lenet5", "--device", "A10O"), "Did you mean"),
        (("lenet6",), "unknown network 'lenet6'. Did you mean"),
        (("dlrm",), "was built by hand and has no edges"),
        (("lenet5", "--strategy", "sise"), "is not one of 'size', 'breadth'"),
        (("lenet5", "--batch", 0), "--batch must be a whole number from 1"),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[object, ...], text: str) -> None:
    code, output = run(*arguments)
    assert code in (1, 2) and text in output
    assert "Traceback" not in output
