"""The part of ``mlsys grade --run`` that runs inside the sandbox: a notebook's cells, one after the other.

It reads a task from standard input and writes one line of JSON before each cell and one at the end. Code of the
notebook may reach this process and write anything in its place, so whoever reads the lines trusts none of them.
"""

import json
import os
import platform
import resource
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

_IGNORED = "nbval-ignore-output"
_MOST_TEXT = 300
_ANSWERS = """
import sys as _sys, json as _json
_kind = getattr(_sys.modules.get("mlsys.widgets.lab"), "Lab", ())
_labs = [each for each in list(globals().values()) if isinstance(each, _kind)]
print(_json.dumps([each.work().record() for each in _labs if each.touched]))
"""
"""What the labs of a notebook hold after its last cell."""


def main() -> None:
    """Run the task of standard input."""
    out = os.dup(1)
    os.dup2(2, 1)  # standard error leads nowhere; what the kernel writes to its standard output is no line of ours

    def report(**record: Any) -> None:
        line = (json.dumps(record) + "\n").encode()
        while line:
            line = line[os.write(out, line) :]

    task = json.loads(sys.stdin.buffer.read())
    limits = task["limits"]
    _limit(limits["seconds"], limits["memory"], limits["processes"])
    _run(task["notebook"], limits["output"], report)
    report(end="done")


def _limit(seconds: float, memory: int, processes: int) -> None:
    """Set the limits that the system keeps for this process and all that it starts, each for itself.

    That of processes counts those of the user inside, on Linux 5.14 and newer; before, it counted other sessions too.
    """
    release = tuple(int(part) for part in platform.release().split(".")[:2])
    kinds = [(resource.RLIMIT_CPU, int(seconds) + 1), (resource.RLIMIT_DATA, memory), (resource.RLIMIT_CORE, 0)]
    if release >= (5, 14):
        kinds.append((resource.RLIMIT_NPROC, processes))
    for kind, most in kinds:
        resource.setrlimit(kind, (most, most))


def _run(source: dict[str, Any], most: int, report: Any) -> None:
    import nbclient
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    class Client(nbclient.NotebookClient):
        """A client that stops when the outputs are too large."""

        written = 0

        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            self.written += len(str(msg.get("content", "")))
            if self.written > most:
                report(end="output")
                os._exit(0)
            return super().process_message(msg, cell, cell_index)

    nbformat: Any = import_module("nbformat")
    notebook = nbformat.from_dict(source)
    cells = [(at, cell) for at, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    stored = [_texts(cell) for _, cell in cells]
    client = Client(notebook, kernel_name="python3", timeout=None, startup_timeout=60)
    client.reset_execution_trackers()
    with client.setup_kernel():
        for nth, (at, cell) in enumerate(cells):
            report(cell=nth + 1, of=len(cells))
            try:
                client.execute_cell(cell, at)
            except CellExecutionError as error:
                report(error=f"{error.ename}: {error.evalue}"[:_MOST_TEXT], cell=nth + 1)
                break
            except DeadKernelError:
                report(error="the kernel died", cell=nth + 1)
                return
            if stored[nth] and _IGNORED not in cell.metadata.get("tags", ()) and _texts(cell) != stored[nth]:
                report(differs=nth + 1)
        asking = nbformat.v4.new_code_cell(_ANSWERS)
        notebook.cells.append(asking)
        try:
            client.execute_cell(asking, len(notebook.cells) - 1)
            printed = [each.text for each in asking.outputs if each.output_type == "stream" and each.name == "stdout"]
            report(work=json.loads("".join(printed)))
        except (CellExecutionError, DeadKernelError, ValueError):
            report(work=[])


def _texts(cell: Mapping[str, Any]) -> list[str]:
    """Return the texts among the outputs of a cell: what it printed, and its value unless that is a widget."""
    texts = []
    for output in cell.get("outputs", ()):
        if output.get("output_type") == "stream" and output.get("name") == "stdout":
            texts.append("".join(output.get("text", "")))
        data = output.get("data", {})
        if output.get("output_type") == "execute_result" and not any("widget" in kind for kind in data):
            texts.append("".join(data.get("text/plain", "")))
    return ["".join(texts).strip()] if texts else []


if __name__ == "__main__":
    main()
