"""Elasticities that are known beforehand, on pages made up for the test."""

import contextlib
import json
import math
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from mlsys.claims import current_page, start_chapter
from mlsys.claims.render import ClaimsTable
from mlsys.claims.sensitivity import run_page, sensitivity
from mlsys.cli import main
from mlsys.deadline import Deadline, TimeIsUpError
from mlsys.provenance import perturbed, recording

PEAK, BANDWIDTH, TDP = "A100_80GB/peaks/fp16/matrix/dense", "A100_80GB/memory/HBM/bandwidth", "A100_80GB/power/tdp"
START = """
from mlsys import Hardware, Q_, check, claim, claims_table
from mlsys.registry import end_chapter, start_chapter
start_chapter("made up")
a100 = Hardware.Cloud.A100
"""
END = 'end_chapter("made up")\nclaims_table()'


def page(folder: Path, *cells: str, tags: tuple[str, ...] = ()) -> Path:
    path = folder / "page.ipynb"
    sources = [START, *cells, END]
    marked = [
        {"cell_type": "code", "source": text, "metadata": {"tags": list(tags)}, "outputs": []} for text in sources
    ]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "# Prose", "metadata": {}}, *marked]}))
    return path


def test_elasticities_of_products_and_powers_are_their_exponents(tmp_path: Path) -> None:
    """d log(claim) / d log(fact): +1 for a factor, -1 for a divisor, +2 for a square, 0 for what is absent."""
    made = page(
        tmp_path,
        "claim(ridge=a100.peak('fp16') / a100.memory_bw)",
        "claim(square=a100.memory_bw**2, half=a100.memory_bw / 2, constant=7)",
        "claim(mixed=a100.memory_bw + Q_(2039, 'GB/s'))",
    )
    moved = sensitivity(made, step=1e-4)
    assert set(moved) == {PEAK, BANDWIDTH}
    assert moved[PEAK] == {"ridge": pytest.approx(1, rel=2e-2)}
    assert moved[BANDWIDTH] == {
        "ridge": pytest.approx(-1, rel=2e-2),
        "square": pytest.approx(2, rel=2e-2),
        "half": pytest.approx(1, rel=2e-2),
        "mixed": pytest.approx(0.5, rel=2e-2),  # half of the sum is a literal
    }
    wide = sensitivity(made, step=1.0)
    assert wide[BANDWIDTH]["ridge"] == pytest.approx(-0.5, rel=1e-12), "double the bandwidth, half the ridge"


def test_a_fact_that_no_claim_leans_on_shows_up_empty(tmp_path: Path) -> None:
    made = page(tmp_path, "unused = a100.tdp", "claim(peak=a100.peak('fp16'))")
    assert sensitivity(made) == {PEAK: {"peak": pytest.approx(1)}, TDP: {}}


def test_words_and_assertions_count_as_infinitely_sensitive(tmp_path: Path) -> None:
    made = page(
        tmp_path,
        "claim(bound='compute' if a100.memory_bw > Q_(2040, 'GB/s') else 'memory')",
        "check(a100.peak('fp16') < Q_(313, 'TFLOP/s'), 'it moved')",
        "assert a100.tdp == Q_(400, 'W')",
    )
    assert sensitivity(made) == {
        BANDWIDTH: {"bound": math.inf},
        PEAK: {"assertion": math.inf},
        TDP: {"assertion": math.inf},
    }


def test_a_claim_that_vanishes_is_noticed(tmp_path: Path) -> None:
    made = page(tmp_path, "if a100.tdp < Q_(401, 'W'):\n    claim(cool=1)")
    assert sensitivity(made) == {TDP: {"cool": math.inf}}


def test_a_page_that_fails_by_itself_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        sensitivity(page(tmp_path, "1 / 0"))
    with recording() as seen:
        start_chapter("next")
    assert seen == {}


def test_cells_may_raise_where_they_say_so(tmp_path: Path) -> None:
    done = run_page(page(tmp_path, "claim(before=1)\nQ_(1, 'USD') + Q_(1, 'byte')", tags=("raises-exception",)))
    assert set(done.claims) == {"before"}


def test_a_page_without_claims_does_not_inherit_the_last_ones(tmp_path: Path) -> None:
    run_page(page(tmp_path, "claim(one=1)"))
    silent = tmp_path / "silent.ipynb"
    silent.write_text(json.dumps({"cells": [{"cell_type": "code", "source": ["x = 1\n", "x"], "metadata": {}}]}))
    assert run_page(silent).claims == {}
    assert current_page().claims == {}


def test_running_a_page_leaves_the_process_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MPLBACKEND", raising=False)
    before = dict(os.environ), Path.cwd()
    run_page(page(tmp_path, "import os\nassert os.environ['MPLBACKEND']"))
    with pytest.raises(ZeroDivisionError):
        run_page(page(tmp_path, "1 / 0"))
    assert (dict(os.environ), Path.cwd()) == before


LATENCY = "A100_80GB/memory/HBM/latency"
SHOWING = "from mlsys import viz\nfrom mlsys.tables import Table"


def test_a_fact_shown_only_in_a_table_or_a_picture_moves_what_the_page_pins(tmp_path: Path) -> None:
    rows = "rows = [[a100.name, f'{a100.tdp.magnitude:.1f}']]"  # a text, made in another cell: it knows no origin
    figure = "figure, ax, _, plt = viz.setup_plot()\nviz.bandwidth_by_bytes_in_flight(ax, [a100])"
    show = 'Table("Power", ("chip", "W"), rows)'
    made = page(tmp_path, SHOWING, rows, show, figure)
    output = run_page(made)
    table, picture = output.exhibits.values()
    assert (table.name, picture.name) == ("table Power", "picture bandwidth_by_bytes_in_flight")
    assert table.facts == (TDP,) and set(picture.facts) == {BANDWIDTH, LATENCY}
    pinned = repr(ClaimsTable(output.record()))
    assert f"table Power = {table.digest()}\n      on {TDP}" in pinned
    assert sensitivity(made) == {
        TDP: {"table Power": math.inf},
        BANDWIDTH: {"picture bandwidth_by_bytes_in_flight": math.inf},
        LATENCY: {"picture bandwidth_by_bytes_in_flight": math.inf},
    }
    with perturbed(BANDWIDTH, 1.01):
        assert repr(ClaimsTable(run_page(made).record())) != pinned


def test_two_tables_of_one_name_are_told_apart(tmp_path: Path) -> None:
    show = 'Table("Twice", ("a",), [("1",)])\nTable("Twice", ("a",), [("2",)])'
    looks = run_page(page(tmp_path, SHOWING, show)).looks()
    assert looks.keys() == {"table Twice", "table Twice (2)"} and len(set(looks.values())) == 2


def test_a_cell_that_never_ends_is_given_up(tmp_path: Path) -> None:
    endless = page(tmp_path, "while True:\n    try:\n        pass\n    except Exception:\n        pass")
    with pytest.raises(ValueError, match=r"did not finish within 0\.5 s\. Allow more seconds"):
        sensitivity(endless, seconds=0.5)
    waits = page(tmp_path, "import time\ntime.sleep(10_000)")
    with pytest.raises(ValueError, match="did not finish"):
        sensitivity(waits, seconds=0.5)


def test_elsewhere_than_in_the_main_thread_a_page_is_interrupted_too(tmp_path: Path) -> None:
    endless, message = page(tmp_path, "while True:\n    pass"), []

    def ask() -> None:
        try:
            sensitivity(endless, seconds=0.5)
        except ValueError as error:
            message.append(str(error))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(300)
    assert message and "did not finish" in message[0]


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_seconds_out_of_range(seconds: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`seconds`"):
        sensitivity(page(tmp_path), seconds=seconds)


@pytest.mark.parametrize("facts_tried", [0, 1])
def test_time_that_is_up_between_facts_leaves_those_tried(
    facts_tried: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run as it is and the facts tried take no time here; the next fact finds the time used up."""
    runs = 0

    @contextlib.contextmanager
    def used_up(deadline: Deadline) -> Iterator[None]:
        nonlocal runs
        runs += 1
        if runs > 1 + facts_tried:
            raise TimeIsUpError
        yield

    monkeypatch.setattr("mlsys.claims.sensitivity.interrupted_at", used_up)
    made = page(tmp_path, "claim(ridge=a100.peak('fp16') / a100.memory_bw)")
    with pytest.warns(UserWarning, match=rf"{facts_tried} of 2 facts tried in 600 s\. Allow more seconds"):
        moved = sensitivity(made)
    assert len(moved) == facts_tried and all("ridge" in claims for claims in moved.values())
    runs = 0
    result = CliRunner().invoke(main, ["claims", "sensitivity", str(made), "--json"])
    assert result.exit_code == 0 and f"{facts_tried} of 2 facts tried" in result.stderr, result.output
    record = json.loads(result.stdout)
    assert len(record["facts"]) == facts_tried and not record["complete"]
    assert len(result.stderr.splitlines()) == 1
