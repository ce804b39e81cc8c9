"""Rows of processors: parts of a machine at work, and cases that travel to the processes of a fit."""

from __future__ import annotations

import pickle
from dataclasses import fields

from mlsys.validation import shipped_rows
from mlsys.validation.cases import interpret


def test_a_case_on_some_cores_travels_to_another_process() -> None:
    row = next(row for row in shipped_rows() if "CPU 1 thread" in row.workload)
    case = interpret(row)
    sent = pickle.loads(pickle.dumps(case))
    for entry in fields(case.engine):
        assert getattr(sent.engine, entry.name) == getattr(case.engine, entry.name), entry.name
    assert (sent.row, sent.setting, sent.seconds) == (case.row, case.setting, case.seconds)
