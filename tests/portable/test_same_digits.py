"""A sample of pages, estimates and stored fits gives what is committed, and is quick to compute.

:mod:`test_other_cpus` runs it with the kernels of other CPUs.
"""

import json
from pathlib import Path

import pytest

from goldens import differences
from mlsys.claims.ledgers import ledger
from mlsys.claims.sensitivity import run_page
from mlsys.tables import Table
from mlsys_evidence import card_table, group_table

BOOK = Path(__file__).resolve().parents[2] / "book"
PAGES = ("dataflow", "energy", "roofline")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_states_what_is_committed(name: str) -> None:
    page = run_page(BOOK / f"{name}.ipynb", with_provenance=False)
    stated = {claim.name: claim.pinned for claim in page.claims.values()} | page.looks()
    committed = {stated_as: entry["value"] for (_, stated_as), entry in ledger([BOOK / f"{name}.ipynb"]).items()}
    assert stated == committed


def test_median_errors_are_those_locked() -> None:
    assert differences() == []


@pytest.mark.parametrize("table", [group_table(), card_table()], ids=["groups", "cards"])
def test_tables_of_stored_fits_are_those_committed(table: Table) -> None:
    cells = json.loads((BOOK / "validation_tables.ipynb").read_text("utf-8"))["cells"]
    texts = ["".join(o.get("data", {}).get("text/plain", "")) for cell in cells for o in cell.get("outputs", ())]
    assert repr(table) in texts
