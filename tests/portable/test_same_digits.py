"""A sample of pages, estimates and stored fits gives what is committed and locked, and is quick to compute.

:mod:`test_other_cpus` runs it with the kernels of other CPUs.
"""

import json
from pathlib import Path

import pytest

from goldens import GOLDENS, machines, prediction_line
from mlsys.claims.ledger import ledger
from mlsys.claims.sensitivity import run_page
from mlsys.tables import Table
from mlsys_evidence import ten_table
from mlsys_evidence.fit.cards import card_table
from sampled import drawn

BOOK = Path(__file__).resolve().parents[2] / "book"
PAGES = ("dataflow", "energy", "roofline")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_states_what_is_committed(name: str) -> None:
    page = run_page(BOOK / f"{name}.ipynb", pedigree=False)
    stated = {claim.name: claim.pinned for claim in page.claims.values()} | page.looks()
    committed = {stated_as: entry["value"] for (_, stated_as), entry in ledger([BOOK / f"{name}.ipynb"]).items()}
    assert stated == committed


def test_estimates_are_those_locked() -> None:
    rows = machines()
    locked = set((GOLDENS / "predictions.txt").read_text("utf-8").splitlines())
    chosen = drawn(sorted(rows), 15, "machines estimated with other kernels")
    assert [line for line in (prediction_line(name, rows[name]) for name in chosen) if line not in locked] == []


@pytest.mark.parametrize("table", [ten_table(fewest=1000), card_table()], ids=["ten", "cards"])
def test_tables_of_stored_fits_are_those_committed(table: Table) -> None:
    cells = json.loads((BOOK / "validation.ipynb").read_text("utf-8"))["cells"]
    texts = ["".join(o.get("data", {}).get("text/plain", "")) for cell in cells for o in cell.get("outputs", ())]
    assert repr(table) in texts
