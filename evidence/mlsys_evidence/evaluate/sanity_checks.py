"""Measurements of a file that cannot be meant as they stand."""

from collections.abc import Sequence

from mlsys.calibration.sanity_checks import Seen, contradiction, doubt_of, what_was_measured
from mlsys_evidence.evaluate.report import Prediction


def questioned(predictions: Sequence[Prediction], where: str) -> list[str]:
    """Return which measurements cannot be meant as they stand, each with its line; graded they are all the same.

    Raises
    ------
    ValueError
        If that is so of more than half of the rows that a model expresses, or all of them are copies of one: the file
        is not what it says.
    """
    result = []
    done = [each for each in predictions if each.case is not None]
    if len(done) > 1 and len({(*what_was_measured(each.row), each.row.device, each.row.value) for each in done}) == 1:
        first, second = (each.row.line for each in done[:2])
        more = " and all others" if len(done) > 2 else ""
        raise ValueError(
            f"{where}: lines {first} and {second}{more} are the same, value and all: {len(done)} rows, "
            "but only 1 measurement. Write each measurement once"
        )
    for each in done:
        assert each.case is not None
        doubt = doubt_of(each.case, each.seconds, each.bound)
        if doubt:
            result.append(f"{where}: line {each.row.line}: {each.row.value:g} {each.row.unit} {doubt}")
    if len(result) > len(done) / 2:
        more = f" (and {len(result) - 1} more such rows of {len(done)})" if len(result) > 1 else ""
        raise ValueError(result[0] + more)
    seen: Seen = {}
    for each in done:
        assert each.case is not None
        if words := contradiction(each.row.line, each.case, seen):
            result.append(f"{where}: {words}")
    return result
