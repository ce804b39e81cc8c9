"""Questions about layers of experts that nobody can measure."""

from dataclasses import replace

import pytest

from mlsys.calibration.case import Inexpressible
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows


def test_a_token_is_sent_to_no_more_experts_than_there_are() -> None:
    shape = "tokens 64, hidden 1024, expert ffn 512, experts 8, top 16, tensor parallel 1, expert parallel 1"
    row = next(row for row in shipped_rows() if row.workload.startswith("MoE"))
    with pytest.raises(Inexpressible, match="16 experts of 8"):
        interpret(replace(row, seq_or_shape=shape))
