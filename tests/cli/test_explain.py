"""``mlsys explain`` from the shell: what it prints, what it writes, and how it refuses."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from mlsys.cli.main import main
from mlsys.measure import read_log, stored_logs

EAGER, QUICK = "stored:ds-cnn fp32 eager", "stored:ds-cnn fp32 litert"


def call(*words: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["explain", *map(str, words)])
    assert "Traceback" not in done.output, done.output
    return done.exit_code, done.stdout, done.stderr


def faults(*words: object) -> list[str]:
    code, out, err = call(*words)
    assert code == 1 and not out, (code, out)
    return err.removeprefix("Error: ").strip().splitlines()


# --- run --------------------------------------------------------------------------------


def test_run_writes_a_log_for_each_backend_and_names_what_is_absent(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    code, out, _ = call(
        "run", "tiny-cnn", "--backend", "eager,onnxruntime", "--format", "fp32,int8", "--runs", 2, "--no-rates",
        "--out", tmp_path / "logs", "--json",
    )  # fmt: skip
    assert code == 0
    record = json.loads(out)
    assert [log["name"] for log in record["logs"]] == [
        "tiny-cnn fp32 eager", "tiny-cnn fp32 onnxruntime", "tiny-cnn int8 onnxruntime",
    ]  # fmt: skip
    assert [missing["reason"] for missing in record["absent"]] == ["eager: eager runs fp32 here, not int8"]
    for log in record["logs"]:
        kept = read_log(log["file"])
        assert kept.runs == 2 and len(kept.samples) == 200 and len(kept.colds) == 2
        assert (log["energy_mj"]["mean"] is None and log["energy_mj"]["reason"]) or log["energy_mj"]["mean"] > 0
        assert kept.counters["source"] or kept.counters["reason"]
        assert log["attribution"] is None and "not requested" in log["attribution_reason"]
    (first, other, apart), *_ = record["agreement"]
    assert (first, other) == ("tiny-cnn fp32 eager", "tiny-cnn fp32 onnxruntime") and apart < 1e-5
    assert len(list((tmp_path / "logs").iterdir())) == 3


def test_run_tells_all_faults_in_one_pass_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.tflite").write_bytes(b"x" * 40)
    record = faults(
        "run", tmp_path / "bad.tflite", "--backend", "eager,egaer,eager,serial", "--format", "fp32,int9",
        "--iterations", 99, "--cores", "0,x", "--out", tmp_path / "logs",
    )  # fmt: skip
    text = "\n".join(record)
    for words in (
        "--iterations: must be at least 100, got 99", "unknown 'egaer'. Did you mean 'eager'?", "duplicate 'eager'",
        "--backend serial: needs --port", "`format` must be one of fp32, int8, got 'int9'",
        "'x' is not a core number", "is not a LiteRT model",
    ):  # fmt: skip
        assert words in text, words
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize(
    ("model", "words"),
    [("ds-cnnn", "ds-cnnn"), ("small.onnx", "is not a model, it has 3 bytes")],
)
def test_wrong_models(model: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.onnx").write_bytes(b"abc")
    assert words in faults("run", model, "--out", tmp_path / "logs")[0]


def test_a_broken_model_is_absent_with_the_runtimes_reason(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\x08\x07" + b"\xff" * 200)
    code, out, _ = call("run", path, "--backend", "onnxruntime", "--no-rates", "--out", tmp_path / "logs")
    assert code == 1 and "absent: onnxruntime cannot load broken" in out
    assert not (tmp_path / "logs").exists()


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from mlsys.measure.networks.chains import net_of
    from mlsys.measure.networks.export import as_onnx

    path = tmp_path / "mine.onnx"
    path.write_bytes(as_onnx(net_of("tiny-cnn")))
    code, out, _ = call("run", path, "--backend", "onnxruntime,eager", "--runs", 1, "--no-rates", "--out", tmp_path)
    assert code == 0 and "mine file onnxruntime" in out
    assert "absent: eager: eager runs chain, module, but this is a onnx" in out


# --- report -----------------------------------------------------------------------------


def test_report_in_words_and_as_json() -> None:
    code, out, _ = call("report", EAGER, QUICK)
    assert code == 0
    assert "Most of it: conv" in out and "what if INT8 arithmetic: not applicable" in out and "between runs" in out
    record = json.loads(call("report", EAGER, QUICK, "--json")[1])
    assert abs(sum(record["logs"][0]["attribution"].values()) - 100) < 1e-9
    assert {claim["verdict"] for claim in record["claims"]} <= {"pass", "fail", "undecided"}


def test_one_html_file_that_needs_nothing(tmp_path: Path) -> None:
    page = tmp_path / "deep" / "why.html"
    assert call("report", EAGER, QUICK, "--html", page)[0] == 0
    text = page.read_text()
    assert not re.search(r"(src|href)=['\"]https?:|url\(http|<script", text)
    assert text.count("<svg ") == 7 and text.count('role="img"') == 7
    for words in (
        "Absent: no energy was measured", "Absent: no accesses were counted", "not applicable", "STM32L4R5",
        "STM32H7A3", "STM32U575", "run,iteration,latency_ms,energy_mj", "versions, settings, raw samples",
        "onnxruntime",
    ):  # fmt: skip
        assert words in text, words
    first = stored_logs()["ds-cnn fp32 eager"].samples[0]
    assert f"0,0,{first.latency_ms:.6g}," in text
    assert [path.name for path in page.parent.iterdir()] == ["why.html"]


def test_pictures_by_their_customary_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn once at full size elsewhere; here only which files there are."""
    import matplotlib.figure

    def drawn(self: object, path: Path, *, dpi: int, **_: object) -> None:
        Path(path).write_bytes(b"png%d" % dpi)

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", drawn)
    code, _, err = call("report", EAGER, QUICK, "--pictures", tmp_path)
    assert code == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "waterfall.png", "attribution_sunburst.png", "roofline.png", "latency_timeline.png", "operators.csv",
        "optimization_timeline.png", "hardware_comparison_radar.png", "comparison_dashboard.png",
        "attribution_sunburst.html",
    }  # fmt: skip
    assert (tmp_path / "waterfall.png").read_bytes() == b"png300"
    assert "absent: energy_pie.png" in err and "absent: memory_access_patterns.png" in err
    rows = (tmp_path / "operators.csv").read_text().splitlines()
    assert rows[0].startswith("layer,kind,time_ms,share_percent") and len(rows) == 12


def test_the_interactive_sunburst_says_what_the_attribution_does() -> None:
    from mlsys.cli.sunburst_page import sunburst_page, sunburst_parts
    from mlsys.measure import attribute

    log = stored_logs()["ds-cnn fp32 eager"]
    attribution = attribute(log)
    causes = sunburst_parts(attribution)
    assert sum(cause["ms"] for cause in causes) == pytest.approx(attribution.total)
    for cause in causes:
        assert sum(layer["ms"] for layer in cause["layers"]) == pytest.approx(cause["ms"])
    page = sunburst_page(attribution, log)
    record = json.loads(re.search(r"id='parts'>(.*?)</script>", page).group(1))
    assert record == causes
    assert not re.search(r"(src|href)=|url\(|https?://(?!www\.w3\.org/2000/svg)", page)
    assert page.count("<td") >= 4 * sum(len(cause["layers"]) for cause in causes)


def test_reports_refuse_wrong_logs_all_at_once(tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl").write_text("\n".join(stored_logs()["ds-cnn fp32 eager"].lines()[:20]) + "\n")
    (tmp_path / "junk.jsonl").write_text("?\n")
    record = faults(
        "report", tmp_path / "cut.jsonl", tmp_path / "junk.jsonl", "stored:ds-cnn", "--html", tmp_path / "x.html"
    )
    text = "\n".join(record)
    assert "cut.jsonl, line 20: the log is truncated" in text
    assert "junk.jsonl, line 1: is not JSON" in text
    assert "stored:ds-cnn: unknown log" in text
    assert not (tmp_path / "x.html").exists()
    assert "duplicate" in faults("report", EAGER, EAGER)[0]


# --- import, compare, guide -------------------------------------------------------------

UART = """m-clock-[1000]
i,layer,start,end,misses,accesses,ms,mJ
0,total,4294967290,4,,,10.000,
0,conv,4294967290,4,20,100,10.000,
1,total,100,112,,,12.000,
1,conv,100,112,10,100,12.000,
m-trace-done-4
m-ready
"""


def test_import_of_a_capture_with_its_power(tmp_path: Path) -> None:
    (tmp_path / "uart.csv").write_text(UART)
    (tmp_path / "power.csv").write_text("time_s,power_w\n0,0.5\n0.01,0.5\n0.02,0.5\n")
    out = tmp_path / "board.jsonl"
    code, _, _ = call(
        "import", tmp_path / "uart.csv", "--model", "tiny-cnn", "--platform", "my board", "--power",
        tmp_path / "power.csv", "--idle", 0.1, "--out", out,
    )  # fmt: skip
    assert code == 0
    log = read_log(out)
    assert [sample.latency_ms for sample in log.samples] == [10.0, 12.0]
    assert log.energies == pytest.approx((4.0, 4.0))  # (0.5 − 0.1) W over 20 ms, over two inferences
    assert log.works[0].macs == 18432 // 8
    page = tmp_path / "board.html"
    assert call("report", out, "--html", page)[0] == 0
    assert "Share of accesses that missed" in page.read_text()  # this board counts them


def test_import_lists_every_bad_line_of_every_file(tmp_path: Path) -> None:
    (tmp_path / "uart.csv").write_text(UART.replace("12.000", "13.000"))
    (tmp_path / "power.csv").write_text("time_s,power_w\n0,0.5\n0,0.5\n1,-2\nx,1\n")
    out = tmp_path / "board.jsonl"
    words = ("import", tmp_path / "uart.csv", "--model", "net", "--platform", "b", "--out", out)
    record = faults(*words, "--power", tmp_path / "power.csv", "--clock", -1)
    assert [re.sub(r".*/", "", line).partition(":")[0] for line in record] == [
        "--clock", "uart.csv, line 5", "uart.csv, line 6", "power.csv, line 3", "power.csv, line 4",
        "power.csv, line 5",
    ]  # fmt: skip
    assert not out.exists()
    code, _, err = call(*words, "--skip-malformed")
    assert code == 0 and "skipped: line 5: ms: 13" in err
    assert len(read_log(out).malformed) == 2 and len(read_log(out).samples) == 1


def test_compare_in_three_forms(tmp_path: Path) -> None:
    code, out, _ = call("compare", EAGER, QUICK)
    assert code == 0 and "STM32L4R5" in out and "best latency_ms: litert fp32" in out and "—" in out
    record = json.loads(call("compare", EAGER, "--json")[1])
    assert record["platforms"][0]["energy_mj"] is None and record["best"]["energy_mj"] == "Syntiant NDP9120"
    rows = call("compare", EAGER, "--csv")[1].splitlines()
    assert rows[0] == "platform,latency_ms,energy_mj,memory_kb,accuracy,cost_usd,source"
    assert "nothing to compare" in faults("compare", "--no-published")[0]
    assert "refused" in call("compare", "--portability")[1]


def test_guide_ends_with_three_where_nothing_is_feasible(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text(
        "platform,latency_ms,energy_mj,memory_kb,accuracy,cost_usd\ncpu,52,150,1000,92,50\nm7,145,18,512,90,5\n"
    )
    words = ("guide", "--no-published", "--rows", rows)
    code, out, _ = call(*words, "--within", 50)
    assert code == 3 and out.startswith("INFEASIBLE") and "cpu: latency_ms 52 is above 50" in out
    code, out, _ = call(*words, "--within", 52, "--json", "--markdown", tmp_path / "guide.md")
    assert code == 0 and json.loads(out)["answer"] == "cpu"
    table = (tmp_path / "guide.md").read_text()
    assert "**cpu**" in table and "if latency_ms allows 52:" in table and "| latency_ms 145 is above 52 |" in table
    assert call(*words, "--within", 150, "--memory", 600)[1].startswith("m7")
    rows.write_text("platform\n")
    record = faults("guide", "--within", -5, "--energy", 0, "--rows", rows)
    assert "--within" in record[0] and "--energy" in record[1] and all("rows.csv" in fault for fault in record[2:])
