"""Whether a notebook runs from its first cell to its last, and what its code answers: told, and never scored."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from mlsys.escaping import printable
from mlsys.grading.folder import MISSHAPEN, SubmittedFile
from mlsys.grading.sandbox import Limits, Sandbox

__all__ = ["Execution", "execute"]

_MOST_TEXT = 300
_STOPS = {
    "time": "{seconds:.0f} s are over", "memory": "more than {memory:.3g} GB of memory",
    "processes": "more than {processes} processes", "output": "more than {output:.3g} MB of output",
}  # fmt: skip


@dataclass(frozen=True)
class Execution:
    """How the cells of a notebook ran.

    It comes from inside the sandbox, where the notebook's own code may have written it: a reason to look at a file, and
    no reason for a grade.

    Attributes
    ----------
    outcome
        ``"ran"`` to its end, ``"failed"`` in a cell, ``"stopped"`` at a limit, or ``"not run"``.
    cell, cells
        Number of the last code cell that was begun, and of all code cells.
    detail
        The error or the limit.
    differing
        Code cells whose text is another than the stored one.
    seconds
        How long it took.
    work
        Hand-ins of labs that the code itself answered, as the labs would write them.
    answers
        What these come to, in words.
    """

    outcome: str
    cell: int = 0
    cells: int = 0
    detail: str = ""
    differing: tuple[int, ...] = ()
    seconds: float = 0.0
    work: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    answers: str = ""

    def text(self) -> str:
        """Return it in words.

        Examples
        --------
        >>> print(Execution("failed", 3, 9, "NameError: name 'lab' is not defined").text())
        failed in code cell 3 of 9: NameError: name 'lab' is not defined
        >>> print(Execution("ran", 9, 9, differing=(2, 5), seconds=11.8).text())
        ran: 9 code cells in 12 s; what cells 2, 5 print is not what is stored
        """
        parts = [f"not run: {self.detail}"]
        if self.outcome == "ran":
            parts = [f"ran: {self.cells} code cell{'' if self.cells == 1 else 's'} in {self.seconds:.0f} s"]
        elif self.outcome in ("failed", "stopped"):
            where = f" in code cell {self.cell} of {self.cells}" if self.cell else " before the first cell"
            parts = [f"{self.outcome}{where}: {self.detail}"]
        if self.differing:
            listed = ", ".join(map(str, self.differing[:10])) + (", …" if len(self.differing) > 10 else "")
            cells = "cell" if len(self.differing) == 1 else "cells"
            prints = "prints" if len(self.differing) == 1 else "print"
            parts.append(f"what {cells} {listed} {prints} is not what is stored")
        return "; ".join([*parts, *([self.answers] if self.answers else [])])

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "outcome": self.outcome, "cell": self.cell, "cells": self.cells, "detail": self.detail,
            "differing_cells": list(self.differing), "seconds": round(self.seconds, 1), "answers": self.answers,
        }  # fmt: skip


def execute(found: SubmittedFile, sandbox: Sandbox, limits: Limits) -> Execution:
    """Run the cells of a notebook in a sandbox.

    Parameters
    ----------
    found
        The file.
    sandbox
        Where it runs.
    limits
        What it may use.
    """
    if found.content is None:
        return Execution("not run", detail="it was not read")
    try:
        notebook = _notebook(found)
    except MISSHAPEN as error:
        return Execution("not run", detail=f"it is no notebook ({printable(str(error))[:80]})")
    task = json.dumps({"notebook": notebook, "limits": asdict(limits)})
    harness = str(Path(__file__).with_name("inside.py"))
    ended = sandbox.run([sys.executable, "-P", harness], task.encode(), limits)
    return _of_lines(ended.output, ended.stopped_by, ended.seconds, limits)


def _notebook(found: SubmittedFile) -> dict[str, Any]:
    data = json.loads((found.content or b"").decode("utf-8-sig"))
    if not isinstance(data, dict) or not isinstance(data.get("cells"), list):
        raise ValueError("it has no cells")
    nbformat: Any = import_module("nbformat")
    upgraded: dict[str, Any] = json.loads(json.dumps(nbformat.reads(json.dumps(data), as_version=4)))
    for cell in upgraded["cells"]:
        cell["source"] = "".join(cell["source"])
        cell.setdefault("metadata", {})
    return upgraded


def _of_lines(output: bytes, stopped_by: str, seconds: float, limits: Limits) -> Execution:
    """Return what the lines from inside say, as far as they have the shape that they should have."""
    cell, cells, error, ended = 0, 0, "", ""
    differing: list[int] = []
    work: list[dict[str, Any]] = []
    for line in _lines(output):
        at = line.get("cell")
        if type(at) is int and 0 < at < 100_000:
            cell = at
        if type(line.get("of")) is int and 0 < line["of"] < 100_000:
            cells = line["of"]
        if type(line.get("differs")) is int and len(differing) < 1000:
            differing.append(line["differs"])
        if isinstance(line.get("error"), str):
            error = printable(line["error"])[:_MOST_TEXT]
        if isinstance(line.get("work"), list):
            work = [each for each in line["work"][:20] if isinstance(each, dict)]
        if isinstance(line.get("end"), str):
            ended = line["end"]
    stopped_by = stopped_by or (ended if ended in _STOPS else "")
    outcome, detail = "ran", ""
    if stopped_by:
        values = {"seconds": limits.seconds, "memory": limits.memory / 1e9, "processes": limits.processes,
                  "output": limits.output / 1e6}  # fmt: skip
        outcome, detail = "stopped", _STOPS[stopped_by].format(**values)
    elif error or ended != "done":
        outcome, detail = "failed", error or "its Python ended, perhaps at a limit of memory or time"
    return Execution(outcome, cell, cells, detail, tuple(differing), seconds, tuple(work))


def _lines(output: bytes) -> Iterator[dict[str, Any]]:
    for line in output.decode("utf-8", "replace").splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value
