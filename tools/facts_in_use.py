"""Report which values of the device catalogue the pages use, and how many of them are verified.

Three sources are searched: the claims in the outputs of the notebooks (each lists the facts it depends
on); the facts read while the code of a page or a lab runs again, which adds those shown only in figures;
and the facts read by the tests of formulas, published values, views and labs. Lists of the whole
catalogue, as on its own page, do not count as use, nor do tests that iterate over every device (laws,
models, validation). The estimates of measured rows are counted separately.

    python tools/facts_in_use.py            claims only, immediate
    python tools/facts_in_use.py --run      with figures: runs the code of every page
    python tools/facts_in_use.py --tests    with tests: runs those of formulas, published values, views and labs
"""

import argparse
import contextlib
import io
import re
import sys
from pathlib import Path

from measured_machines import machines
from mlsys.claims.ledgers import ledger
from mlsys.hardware import Hardware
from mlsys.hardware.evidence import Evidence, evidence
from mlsys.provenance import recording
from mlsys_evidence.evaluate.report import predictions_on

ROOT = Path(__file__).parents[1]
FOLDERS = ("book", "labs")
MOST = 40


def claimed(folders: tuple[str, ...] = FOLDERS) -> list[str]:
    """Return the names of the facts that claims depend on, in page order.

    Claims over a large part of the catalogue are skipped.
    """
    claims = ledger(ROOT / folder for folder in folders).values()
    few = (claim["facts"] for claim in claims if len(claim["facts"]) <= MOST)
    return list(dict.fromkeys(name for facts in few for name in facts))


def judged() -> list[str]:
    """Return the names of the facts that the estimates of all measured rows read."""
    with recording() as seen:
        for machine, rows in machines().items():
            predictions_on(machine, rows)
    return list(seen)


def shown(page: Path) -> list[str]:
    """Return the names of the facts that the code of a page reads."""
    import jupytext
    import matplotlib as mpl

    mpl.use("Agg")
    space: dict[str, object] = {"__name__": "__page__", "display": lambda *_: None}
    cells = [cell for cell in jupytext.read(page, fmt="md:myst").cells if cell.cell_type == "code"]
    with recording() as seen, contextlib.redirect_stdout(io.StringIO()):
        for cell in cells:
            with contextlib.suppress(*([Exception] if "raises-exception" in cell.metadata.get("tags", ()) else [])):
                source = re.sub(r"^(\s*)%.*", r"\1pass", cell.source, flags=re.MULTILINE)  # %pip is for notebooks
                exec(compile(source, str(page), "exec"), space)
    return list(seen)


def tested() -> list[str]:
    """Return the names of the facts that the tests of formulas, published values, views and labs read."""
    import pytest

    folders = [str(ROOT / "tests" / name) for name in ("formulas", "published", "viz", "widgets")]
    with recording() as seen, contextlib.redirect_stdout(io.StringIO()):
        pytest.main([*folders, "-q", "-p", "no:cacheprovider"])
    return list(seen)


def in_use(run: bool = False, tests: bool = False) -> Evidence:
    """Return the evidence for the values used by claims, and on request by figures and tests."""
    names = claimed() + (tested() if tests else [])
    for page in sorted(page for folder in FOLDERS for page in (ROOT / folder).glob("*.md")) if run else ():
        if "kernelspec" in page.read_text("utf-8")[:500]:
            names += shown(page)
    return evidence(names, Hardware)


def main() -> None:
    """Print the share of verified values, and those that are not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", action="store_true", help="run the code of the pages to see what figures use")
    parser.add_argument("--tests", action="store_true", help="run tests to see what they use")
    chosen = parser.parse_args()
    sys.stdout.write(f"{in_use(chosen.run, chosen.tests).table()}\n\n")
    sys.stdout.write(f"Of those that estimates of measured rows read, {evidence(judged(), Hardware).table()}\n")


if __name__ == "__main__":
    main()
