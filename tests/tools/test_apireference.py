"""The reference: every public name has one entry, on a page; every path to an object leads to it."""

import inspect
import re

import mlsys
from apireference import MODULES, calls_of, comments, homes, located, members, one_attribute_each, summary
from pages import ROOT
from printing import printed_contents

PAGES = sorted((ROOT / "book" / "reference").glob("*.md"))


def test_every_module_of_the_list_is_on_one_page_and_no_other_is() -> None:
    shown = [module for page in PAGES for module in re.findall(r"^\.\. api:: (\S+)$", page.read_text("utf-8"), re.M)]
    assert sorted(shown) == sorted(MODULES)


def test_every_everyday_call_and_every_public_formula_has_an_entry() -> None:
    from mlsys import formulas

    assert {name for name in mlsys.__all__ if not inspect.ismodule(getattr(mlsys, name))} - {"__version__"} == set(
        members("mlsys")
    )
    assert set(members("mlsys.formulas")) == set(formulas.__all__)


def test_an_object_has_one_entry_under_its_shortest_path() -> None:
    described = [id(value) for module in MODULES for value in members(module).values() if inspect.isroutine(value)]
    described.remove(id(located("mlsys.testing.assert_leans_on")[0]))  # an old name, for one release
    assert len(described) == len(set(described)) > 150
    for path in ("mlsys.plan_memory", "mlsys.planner.memory.plan_memory", "mlsys.planner.memory.plan.plan_memory"):
        found, exists = located(path)
        assert exists and homes()[id(found)] == "mlsys.plan_memory"
    assert homes()[id(located("mlsys.models.roofline")[0])] == "mlsys.roofline", "the call, not the module of its name"
    assert located("mlsys.models.no_such_model") == (None, False)


def test_every_function_and_class_of_the_reference_has_a_summary() -> None:
    lacking = [
        f"{module}.{name}"
        for module in MODULES
        for name, value in members(module).items()
        if (inspect.isclass(value) or inspect.isroutine(value)) and not summary(module, name, value)
    ]
    assert lacking == []


def test_imports_of_a_cell_are_linked_and_nothing_else() -> None:
    cell = "%matplotlib inline\nfrom mlsys.models import roofline\nfrom mlsys import Hardware\nimport numpy as np"
    assert calls_of(cell) == {"roofline": "mlsys.roofline"} | (
        {"Hardware": "mlsys.Hardware"} if id(mlsys.Hardware) in homes() else {}
    )
    assert calls_of("this is no Python") == {}


def test_attributes_that_share_a_text_are_listed_one_by_one() -> None:
    lines = ["A point.", "", "Attributes", "----------", "x, y : float", "    Where.", "name", "    What."]
    assert one_attribute_each(lines)[4:] == ["x : float", "    Where.", "y : float", "    Where.", "name", "    What."]
    assert comments("mlsys.planner.memory")["STRATEGIES"].startswith("Rules")


def test_the_printed_book_has_the_tour_and_leaves_out_the_reference(tmp_path) -> None:
    text = printed_contents(ROOT, tmp_path).read_text("utf-8")
    assert "book/tour" in text and "book/roofline" in text and "book/reference" not in text
