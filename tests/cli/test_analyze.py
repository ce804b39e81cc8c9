"""``mlsys analyze`` and ``mlsys compare``: text, JSON, CSV, one HTML file, one line for every mistake."""

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

from mlsys.cli import main

ENERGY = {
    "energy_joules",
    "static_joules",
    "dynamic_joules",
    "low_joules",
    "high_joules",
    "power_watts",
    "power_rests_on",
}
SUMMARY = {
    *("model", "device", "precision", "batch", "setting", "calibration", "bound_seconds", "bound_by"),
    *("estimate_seconds", "limited_by", "samples_per_second", "speed_over_first", "flops", "bytes", "weight_bytes"),
    *("flop_per_byte", "ridge_flop_per_byte", "utilisation", "product_flops", "sequence", "image", "recipe"),
    *("low_seconds", "high_seconds", "range_rests_on", "differs_from_first", "needed_bytes", "fits"),
    *("low_speed_over_first", "high_speed_over_first", "kernels", "notes"),
} | ENERGY
ROW = {
    *("name", "kind", "share", "estimate_seconds", "bound_seconds", "flops", "bytes", "weight_bytes"),
    *("flop_per_byte", "utilisation", "bound_by", "limited_by"),
}


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(map(str, arguments)))
    return result.exit_code, result.output


def analysed(*arguments: object) -> dict[str, object]:
    code, output = run("analyze", *arguments, "--json")
    assert code == 0, output
    return json.loads(output)


class Page(HTMLParser):
    """What a page refers to, and what its pictures say."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.labels: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.links += [given[name] or "" for name in ("src", "href", "xlink:href") if name in given]
        if tag == "svg":
            self.labels.append(given.get("aria-label") or "")
            assert given["role"] == "img"


def test_the_text_names_the_bound_the_estimate_and_what_to_fix() -> None:
    code, output = run("analyze", "resnet50", "--device", "A100", "--batch", 32, "--top", 3)
    assert code == 0
    assert output.startswith("ResNet-50 on NVIDIA A100 80 GB SXM4, fp16, batch 32\n  at least      ")
    assert "Fix first: " in output
    assert "and 51 more" in output
    assert output.splitlines()[-2].startswith("batch 32, image 224, fp16; from He et al. 2016")
    assert output.splitlines()[-1].startswith("54 kernels for 174 operators: fused")


def test_energy_of_a_pass_is_told_where_a_power_is_known() -> None:
    """1,376 to 3,713 uJ are published for keyword spotting on this board; none for a TPU; an A100 has 400 W at most."""
    code, output = run("analyze", "ds-cnn", "--device", "STM32H7A3", "--precision", "int8")
    assert code == 0
    assert re.search(r"\n  energy        \d\.\d+ mJ per pass, 30% of it idle power; 122 mW under load\n", output)
    reported = analysed("ds-cnn", "--device", "STM32H7A3", "--precision", "int8")
    assert 1376e-6 < reported["energy_joules"] < 3713e-6
    assert reported["energy_joules"] == pytest.approx(reported["static_joules"] + reported["dynamic_joules"])
    assert reported["energy_joules"] == pytest.approx(reported["power_watts"] * reported["estimate_seconds"])
    assert reported["low_joules"] < reported["energy_joules"] < reported["high_joules"]
    other = analysed("resnet50", "--device", "TPUv4", "--precision", "bf16")
    assert {other[name] for name in ENERGY} == {None}
    card = analysed("resnet50", "--device", "A100")
    assert card["energy_joules"] == pytest.approx(card["power_watts"] * card["estimate_seconds"])
    assert 40 < card["power_watts"] <= 400


def test_json_has_the_whole_and_every_operator_and_they_agree() -> None:
    report = analysed("resnet50", "--device", "A100", "--batch", 4)
    assert set(report) == SUMMARY | {
        "kernels",
        "notes",
        "operators",
        "groups",
        "first",
        "changes",
        "assumptions",
        "record",
        "facts",
        "units",
    }
    assert report["record"] == 1 and report["units"]["bound_seconds"] == "s"
    assert "A100_80GB/memory/HBM/bandwidth" in report["facts"]
    rows = report["operators"]
    assert all(set(row) == ROW for row in rows)
    for part, whole in (("estimate_seconds",) * 2, ("bound_seconds",) * 2, ("flops",) * 2, ("bytes",) * 2):
        assert sum(row[part] for row in rows) == pytest.approx(report[whole])
    assert report["samples_per_second"] == pytest.approx(4 / report["estimate_seconds"])
    assert all(
        set(change) == {"operators", "if", "share", "seconds", "speedup", "limit"} for change in report["changes"]
    )


def test_csv_has_one_line_for_each_operator() -> None:
    code, output = run("analyze", "resnet50", "--device", "A100", "--csv")
    rows = list(csv.DictReader(io.StringIO(output)))
    assert (code, len(rows), set(rows[0])) == (0, 54, ROW)


def test_options_reach_the_network() -> None:
    usual = analysed("bert-base", "--device", "A100", "--sequence", 128)
    assert analysed("bert-base", "--device", "A100", "--sequence", 256)["flops"] > 2 * usual["flops"]
    assert analysed("resnet50", "--device", "A100", "--image", 112)["product_flops"] < 3e9
    narrow = analysed("bert-base", "--device", "A100", "--precision", "int8")
    positions = 2 * 128 * 8  # of places and of token types: whole numbers in every format
    assert narrow["weight_bytes"] - positions == (usual["weight_bytes"] - positions) / 2
    step = analysed("llama3-8b", "--device", "H100", "--phase", "decode", "--sequence", 64)
    assert step["limited_by"] == "memory"
    eager = analysed("resnet50", "--device", "A100", "--setting", "eager network on GPU")
    assert eager["calibration"] == "eager network on GPU"


def test_an_onnx_file_is_counted_in_the_requested_precision(tmp_path: Path) -> None:
    weights = helper.make_tensor("w", TensorProto.FLOAT, [64, 32], [0.0] * 2048)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 32])],
        [weights],
    )
    path = tmp_path / "product.onnx"
    onnx.save(helper.make_model(graph), path)
    for precision, size in (("fp16", 2), ("fp32", 4), ("int8", 1)):
        report = analysed(path, "--device", "A100", "--batch", 16, "--precision", precision)
        assert report["flops"] == 2 * 16 * 64 * 32
        assert report["bytes"] == size * (16 * 64 + 64 * 32 + 16 * 32)


def test_the_page_needs_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    code, output = run("analyze", "mobilenet-v2", "--device", "T4", "--html", target)
    assert code == 0, output
    text = target.read_text(encoding="utf-8")
    page = Page(text)
    assert page.links
    assert all(link.startswith("#") for link in page.links)
    assert not re.search(r"url\((?!['\"]?#)|@import", text)
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert (page.tags.count("svg"), page.tags.count("table")) == (1, 2)
    assert "Roofline of NVIDIA T4 in fp16 with the 53 operators of MobileNet v2 1.0" in page.labels[0]
    assert "Fix first: " in text
    assert text.count("<tr>") >= 53


def test_names_in_a_page_are_text_and_never_markup(tmp_path: Path) -> None:
    from mlsys import Hardware
    from mlsys.cli.analysis_page import analysis_page
    from mlsys.models.analysis import analyze
    from mlsys.workloads import Network, gemm

    network = Network("<script>alert(1)</script>", (replace(gemm(8, 8, 8, name="<b onclick='x'>"), kind="<i>"),))
    text = analysis_page(analyze(Hardware.Cloud.A100, network), Hardware.Cloud.A100)
    assert not {"script", "b", "i"} & set(Page(text).tags)


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_the_figure_is_written(tmp_path: Path, suffix: str, start: bytes) -> None:
    target = tmp_path / f"roofline{suffix}"
    code, output = run("analyze", "resnet18", "--device", "A100", "--figure", target)
    assert code == 0, output
    assert target.read_bytes().startswith(start)


def test_compare_sets_devices_side_by_side() -> None:
    code, output = run("compare", "resnet50", "--devices", "A100, H100,T4,A100", "--batch", 32)
    assert code == 0
    assert [line.split()[1] for line in output.splitlines()[-7:-4]] == ["A100", "H100", "T4"]
    code, output = run("compare", "resnet50", "--devices", "A100,H100", "--batch", 32, "--json")
    rows = json.loads(output)
    assert all(set(row) == SUMMARY | {"record", "units", "kernels", "notes"} for row in rows)
    assert rows[0]["speed_over_first"] == 1
    assert rows[1]["speed_over_first"] == pytest.approx(rows[0]["estimate_seconds"] / rows[1]["estimate_seconds"])
    alone = analysed("resnet50", "--device", "H100", "--batch", 32)
    assert alone["estimate_seconds"] == rows[1]["estimate_seconds"]
    # Who measures both brings the same habits to each; the one range lies inside the other.
    assert alone["low_seconds"] < rows[1]["low_seconds"] < 1.1 * rows[1]["high_seconds"] < alone["high_seconds"]
    code, output = run("compare", "resnet50", "--devices", "A100,T4", "--csv")
    assert len(list(csv.DictReader(io.StringIO(output)))) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("analyze", "resnet5O", "--device", "A100"), 1, "unknown network 'resnet5O'. Did you mean 'resnet50'?"),
        (
            ("analyze", "resnet50", "--device", "H10"),
            1,
            "unknown device 'H10'. Did you mean 'H100'? `mlsys devices`",
        ),
        (("analyze", "resnet50", "--device", "T4", "--precision", "bf16"), 1, "NVIDIA T4 has no bf16 peak. It has: "),
        (("analyze", "resnet50", "--device", "T4", "--precision", "fp61"), 1, "unknown precision 'fp61'"),
        (("analyze", "resnet50", "--device", "T4", "--setting", "magic"), 1, "setting 'magic' was never fitted"),
        (("analyze", "resnet50", "--device", "T4", "--json", "--csv"), 2, "give either --json or --csv, not both"),
        (("analyze", "resnet50", "--device", "T4", "--figure", "a.gif"), 2, "--figure must end in .png, .svg, .pdf"),
        (("analyze", "nowhere.onnx", "--device", "T4"), 2, "nowhere.onnx"),
        (("analyze", "no_such_module:net", "--device", "T4"), 1, "cannot import 'no_such_module'"),
        (
            ("analyze", "no_such_module:net", "--device", "T4", "--phase", "decode"),
            1,
            "--phase does not apply to a factory",
        ),
        (("analyze", "resnet50"), 2, "Missing option '--device'"),
        (("analyze", "resnet50", "--device", "T4", "--batch", "0"), 1, "--batch must be a whole number from 1"),
        (("compare", "resnet50", "--devices", ","), 2, "--devices must be names separated by commas"),
        (("compare", "resnet50", "--devices", "A100,T5"), 1, "unknown device 'T5'"),
        (("compare", "resnet50", "--devices", "A100,T4", "--precision", "bf16"), 1, "NVIDIA T4 has no bf16 peak"),
    ],
)
def test_mistakes_are_answered_in_one_line(arguments: tuple[str, ...], code: int, text: str) -> None:
    status, output = run(*arguments)
    assert status == code
    assert text in output
    if "Missing option" not in text:
        assert len(output.splitlines()) == 1


def test_fusion_changes_bytes_and_kernels_and_no_work() -> None:
    for model in ("inception_v3", "small-cnn"):  # one is written down, one has code
        fused, single = analysed(model, "--device", "A100"), analysed(model, "--device", "A100", "--no-fusion")
        assert len(fused["operators"]) < len(single["operators"])
        assert fused["bytes"] < single["bytes"]
        assert fused["bound_seconds"] < single["bound_seconds"]
    assert (
        analysed("small-cnn", "--device", "A100")["flops"]
        == analysed("small-cnn", "--device", "A100", "--no-fusion")["flops"]
    )
