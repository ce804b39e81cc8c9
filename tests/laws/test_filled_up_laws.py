"""A product of more rows is never faster, whatever a library's curve over shapes says: fewer may be filled up."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from mlsys.calibration.estimates import estimated
from mlsys.calibration.rows import Row
from mlsys.calibration.times import stack_of
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows
from sampled import drawn

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
SERVING = re.compile("vLLM|SGLang|TensorRT-LLM")


def products() -> Iterator[Row]:
    """Rows of the newest servers, one for each of their settings, machines and widths."""
    seen = set()
    for row in shipped_rows():
        shape = re.match(r"M=\d+,(N=\d+,K=\d+)$", row.seq_or_shape)
        if shape and SERVING.search(row.software):
            key = row.software, row.device, row.precision, shape[1]
            if key not in seen:
                seen.add(key)
                yield row


@pytest.mark.parametrize("row", drawn(list(products()), 24, "products of servers"), ids=lambda row: row.id)
def test_more_rows_are_never_faster(row: Row) -> None:
    other = row.seq_or_shape.partition(",")[2]
    cases = [interpret(replace(row, seq_or_shape=f"M={rows},{other}")) for rows in ROWS]
    times = estimated(cases, stack_of(cases)).tolist()
    assert all(fewer <= 1.015 * more for fewer, more in pairwise(times)), times
    assert all(times[0] <= 1.02 * more for more in times), times
