"""A book with other facts: which change, what a page says of it, and checks that fail without stopping the page."""

import subprocess
import sys

import pytest

from bookplace import BookError
from mlsys.claims.filed import Claim
from mlsys.claims.render import _card
from pages import notebook_files
from whatif import Affected, changed_facts, mark, parsed, reading

H100 = "H100_SXM/memory/HBM/bandwidth"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("H100", "FACT=FACTOR"),
        ("H100/memory/HBM/bandwidth=0", "above zero"),
        ("H100/memory/HBM/bandwidth=inf", "above zero"),
        ("=2", "FACT=FACTOR"),
        ("H100/memory/HBM/bandwith=2", f"Did you mean '{H100}'"),
        ("nothing/like/it=2", "no fact"),
    ],
)
def test_what_is_no_fact_or_no_factor_is_refused(text: str, message: str) -> None:
    with pytest.raises(BookError, match=message):
        parsed(text)


def test_pages_that_state_a_fact_run_anew_and_pages_that_cannot_read_it_do_not() -> None:
    names = {page.stem for page in reading(parsed("H100/memory/HBM/bandwidth=1.4"), notebook_files())}
    assert {"roofline", "economics"} <= names and not {"amdahl", "mapping"} & names


def test_a_kernel_reads_the_changed_fact_and_goes_on_after_a_failing_check() -> None:
    code = (
        "from mlsys import Hardware, check\n"
        "check(Hardware.Cloud.H100.memory_bw.m_as('GB/s') == 3350, 'it is 3,350')\n"
        "print(Hardware.Cloud.H100.memory_bw.m_as('GB/s') / 3350)"
    )
    with changed_facts({H100: 1.4}):
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    failed, ratio = ran.stdout.splitlines()
    assert failed == "This check no longer holds: it is 3,350" and float(ratio) == pytest.approx(1.4)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(ran.stdout) == 1, "and nothing is left of it afterwards"


def test_a_page_says_what_moved_and_marks_those_numbers_alone() -> None:
    cards = [_card(Claim(name, 2.0, "", "2.00", "a & b", ()), {}) for name in ("ridge", "peak")]
    page = f"<h1>Title</h1><p>{cards[0]} and {cards[1]}</p><h1>Again</h1>"
    affected = Affected(moved={"ridge": ("1 < 2", "2.00")}, failed=["the ridge <falls>"])
    marked = mark(page, affected, "H100 × 1.4")
    assert marked.count("mlsys-moved") == 1 and 'data-was="1 &lt; 2">2.00' in marked
    assert marked.count("What if H100 × 1.4?") == 1 and "the ridge &lt;falls&gt;" in marked
    assert "1 number of this page moved; one of its checks no longer holds." in marked
