"""``mlsys serve-sim`` and ``mlsys.serve_sim``: the same numbers, a table that is a trace, one line for bad input."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import mlsys
from mlsys.cli import main
from mlsys.models.serving.decoder_steps import SERVER_EFFICIENCY
from mlsys.units import Q_

COMMAND = ["serve-sim", "llama-3-8b", "--on", "H100"]
LOAD = ["--requests", "8/s", "--prompt", "300", "--output", "40", "--seconds", "10 s"]


def ran(*words: str) -> Result:
    return CliRunner().invoke(main, [*COMMAND, *words])


def test_json_is_the_record_and_csv_the_rows() -> None:
    options = {"rate": Q_(8, "1/s"), "prompt": 300, "output": 40, "seconds": Q_(10, "s"), "slo": "TTFT<1 s, TPOT<50 ms"}
    service = mlsys.serve_sim("llama-3-8b", "H100", **options)  # type: ignore[arg-type]
    assert json.loads(ran(*LOAD, "--slo", "TTFT<1 s, TPOT<50 ms", "--json").stdout) == json.loads(
        json.dumps(service.record())
    )
    rows = list(csv.DictReader(io.StringIO(ran(*LOAD, "--csv").stdout)))
    assert len(rows) == len(service.run.end)
    assert [float(row["latency_seconds"]) for row in rows] == service.run.latency.tolist()
    assert service.facts
    assert service.good == 1.0
    assert sum(part.magnitude for part in service.parts.values()) == pytest.approx(service.time.magnitude)
    low, high = service.range
    assert low < service.time < high


def test_the_table_of_requests_is_a_trace_that_gives_the_same_latencies(tmp_path: Path) -> None:
    table = ran(*LOAD, "--csv").stdout
    file = tmp_path / "again.csv"
    file.write_text(table, "utf-8")
    again = list(csv.DictReader(io.StringIO(ran("--trace", str(file), "--csv").stdout)))
    first = list(csv.DictReader(io.StringIO(table)))
    for name in ("ttft_seconds", "latency_seconds"):
        # A trace begins at its first arrival.
        assert np.allclose([float(row[name]) for row in again], [float(row[name]) for row in first], atol=1e-12)


def test_a_page_and_static_batching_beside(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    message = ran(*LOAD, "--buckets", "256,512", "--html", str(page)).stdout
    assert "padding is 41.4% of prompt tokens" in message
    assert "<svg" in page.read_text("utf-8")


def test_the_default_efficiency_is_the_fitted_constant() -> None:
    option = next(each for each in main.get_command(None, "serve-sim").params if each.name == "efficiency")
    assert option.default == SERVER_EFFICIENCY
    slow, fast = (
        mlsys.serve_sim("llama-3-8b", "H100", rate=Q_(1, "1/s"), count=20, output=16, efficiency=share).time
        for share in (0.5, 1.0)
    )
    assert slow.magnitude == pytest.approx(2 * fast.magnitude, rel=0.05)


def test_more_load_never_shortens_the_tail_and_goodput_falls() -> None:
    tails, goods = [], []
    for rate in (2, 20, 60):
        service = mlsys.serve_sim(
            "llama-3-8b", "H100", rate=Q_(rate, "1/s"), seconds=Q_(20, "s"), slo="E2E<5 s", max_batch=32
        )
        tails.append(service.percentile("latency", 99).m_as("s"))
        goods.append(service.good)
    assert tails == sorted(tails)
    assert goods[0] == 1.0 > goods[-1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "rate"),
        (["--requests", "0/s"], "rate"),
        (["--requests", "5"], "5/s"),
        ([*LOAD[:-1], "0 s"], "seconds"),
        (["--requests", "5/s", "--prompt", "-3"], "--prompt"),
        ([*LOAD, "--slo", "TTFT>1 s"], "slo"),
        ([*LOAD, "--slo", "TTTF<1 s"], "TTFT"),
        ([*LOAD, "--count", "3"], "one of the two"),
        ([*LOAD, "--tp", "2"], "chips"),
        ([*LOAD, "--replicas", "2"], "replicas"),
        ([*LOAD, "--blocks", "10"], "never fits"),
        ([*LOAD, "--columns", "a,b,c"], "columns"),
        ([*LOAD, "--buckets", "128"], "bucket"),
        ([*LOAD, "--token-budget", "8"], "token_budget"),
        ([*LOAD, "--json", "--csv"], "not both"),
        (["--requests", "1e9/s", "--seconds", "1 hour"], "at most"),
    ],
)
def test_bad_questions_get_one_line(words: list[str], says: str) -> None:
    result = ran(*words)
    assert result.exit_code in (1, 2)
    assert not result.stdout
    assert says in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
