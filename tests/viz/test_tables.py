"""Cells of a table: a number stands at the right where its column is one of numbers, and nowhere else."""

import re

from mlsys.tables import Table, html_table


def right_of(column: list[str]) -> list[bool]:
    """Say of each cell of a column under "value" whether it is set to the right."""
    page = html_table("", ("value",), [(cell,) for cell in column])
    return ["number" in kind for kind in re.findall(r"<td( class='number')?>", page)]


def test_a_number_among_words_stands_with_the_words() -> None:
    assert right_of(["4.6", "1.25 (0.928 to 1.69)", "0.36 (0.26 to 0.633)"]) == [False, False, False]


def test_a_word_among_numbers_leaves_the_numbers_at_the_right() -> None:
    assert right_of(["4.6", "12%", "1,234", "refused"]) == [True, True, True, False]


def test_a_dash_in_a_column_of_numbers_stands_under_them() -> None:
    assert right_of(["4.6", "—", "—"]) == [True, True, True]


def test_numbers_before_and_behind_an_arrow_stand_with_the_numbers() -> None:
    assert right_of(["0 → 22", "3", "— → 45%"]) == [True, True, True]
    assert right_of(["3", "4", "dense → sparse"]) == [True, True, False]


def test_a_number_that_knows_its_origin_is_grouped_and_an_empty_cell_keeps_its_height_in_print() -> None:
    class Counted(int):
        pass

    shown = Table("Tiles", ("level", "edge", "note"), [("L2", Counted(2643), ""), ("L1", 167, "yes")])
    assert "2,643" in repr(shown)
    assert "| L2 | 2,643 | &nbsp; |" in shown._repr_mimebundle_()["text/markdown"]


def test_numbers_in_brackets_and_beyond_a_limit_stand_below_each_other() -> None:
    assert right_of(["3.2 (2.8)", "1,279 (413)", "—"]) == [True, True, True]
    assert right_of(["15%", ">1000%"]) == [True, True]
    assert right_of(["two (2)", "three (3)"]) == [False, False]
