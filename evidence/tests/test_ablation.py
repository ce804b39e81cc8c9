"""A group that the rows were made by is worth its numbers; one that says nothing of them is not."""

from dataclasses import replace

import numpy as np
import pytest

from mlsys.models.estimate.effects import Pool
from mlsys_evidence.evaluate.ablation import PoolRows, left_out_errors, medians, without_group
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows

POOL = Pool(r" network on NPU$", ("network", "version"))


@pytest.fixture(scope="module")
def rows() -> PoolRows:
    """Return rows of four sweeps of the same twelve networks, each of which takes its own time everywhere."""
    shipped = [row for row in shipped_rows() if "AI Hub" in row.software and row.device_class == "NPU"][:48]
    made = interpret(shipped[0])
    cases = [
        replace(made, network=f"net{index % 12}", twin=f"t{index // 12}", row=replace(row, group=f"g{index // 12}"))
        for index, row in enumerate(shipped)
    ]
    random = np.random.default_rng(0)
    off = np.tile(random.normal(0, 0.3, 12), 4) + random.normal(0, 0.02, 48)
    return PoolRows(cases, {}, off, np.column_stack([off, off]))


def test_only_the_group_that_made_the_rows_is_worth_its_numbers(rows: PoolRows) -> None:
    def median(pool: Pool) -> float:
        found = medians({"": left_out_errors(pool, rows)}, {"": rows})
        assert len(found) == 2, "machine and sweep left out, of one class"
        return max(found.values())

    whole = median(POOL)
    assert whole < 5
    assert median(without_group(POOL, "network")) > whole + 10
    assert median(without_group(POOL, "version")) == pytest.approx(whole, abs=0.2)
