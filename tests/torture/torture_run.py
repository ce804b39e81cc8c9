"""Runs the corpus of bad inputs in a process that is watched from outside, and judges what became of each.

    python tests/torture/torture_run.py [--only TEXT] [--group COMMAND] [--part 1/4] [--report FILE]

The process is killed when a case computes for more than 10 s, takes more than 2 GB, or sleeps without end; seconds
are those of the processor, so that a busy machine changes nothing.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from torture_cases import Case, content, corpus

MOST_SECONDS, MOST_BYTES, ASLEEP = 10.0, 2_000_000_000, 60.0
_LINES = 45  # of one refusal: loaders list every fault
_FINE = ("ArgumentError", "ArgumentUnitError", "UnknownNameError", "UnrecordedError", "DeviceFileError", "ScenarioFileError", "SweepFileError",
         "UnreadableError", "UnwrittenError", "LogFileError", "DimensionalityError", "UndefinedUnitError", "ValueError", "TypeError")  # fmt: skip


@dataclass
class Verdict:
    """What became of a case: ``fault`` is empty where all was right."""

    case: Case
    fault: str
    seconds: float = 0.0
    code: int | None = None
    message: str = ""


def run(cases: Iterable[Case], tick: Any = lambda verdict: None) -> tuple[list[Verdict], int]:
    """Return the verdict of each case, and the most bytes that the process held."""
    worker = _Worker()
    verdicts, peak = [], 0
    try:
        for case in cases:
            verdict = worker.judge(case)
            peak = max(peak, worker.peak)
            verdicts.append(verdict)
            tick(verdict)
    finally:
        worker.stop()
    return verdicts, peak


class _Worker:
    """A process that runs cases one after the other, and is replaced when one kills it."""

    def __init__(self) -> None:
        self.peak = 0
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,), daemon=True)
        self._process.start()
        there.close()
        self._pipe.recv()  # it is warm

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def judge(self, case: Case) -> Verdict:
        started, awake = self._processor(), time.monotonic()
        last = started
        self._pipe.send(case)
        while not self._pipe.poll(0.2):
            now = self._processor()
            if now - last > 0.05:
                last, awake = now, time.monotonic()
            fault = ""
            if not self._process.is_alive():
                fault = "the process died"
            elif now - started > MOST_SECONDS:
                fault = f"computes for more than {MOST_SECONDS:g} s"
            elif self._held() > MOST_BYTES:
                fault = "holds more than 2 GB"
            elif time.monotonic() - awake > ASLEEP:
                fault = "waits without end"
            if fault:
                self.stop()
                self._start()
                return Verdict(case, fault)
        try:
            fault, seconds, code, message, self.peak = self._pipe.recv()
        except EOFError:
            self.stop()
            self._start()
            return Verdict(case, "the process died")
        return Verdict(case, fault, seconds, code, message)

    def _processor(self) -> float:
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _held(self) -> int:
        with contextlib.suppress(OSError, ValueError, IndexError):
            status = Path(f"/proc/{self._process.pid}/status").read_text()
            return int(status.partition("VmRSS:")[2].split(maxsplit=1)[0]) * 1024
        return 0


def _serve(pipe: Any) -> None:
    """Run the cases that come through the pipe."""
    import torch  # noqa: F401  the import is paid once and is none of a case
    from click.testing import CliRunner

    from mlsys.cli import main

    sys.setrecursionlimit(1000)
    for words in (
        ["flops", "lenet5"],
        ["analyze", "lenet5", "--device", "A100"],
        ["memory", "lenet5"],
        ["mapper", "gemm:8x8x8", "--device", "A100"],
    ):
        CliRunner().invoke(main, words)
    space = _space()
    environment = dict(os.environ)
    pipe.send("warm")
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        folder = Path(tempfile.mkdtemp(prefix="torture-"))
        before, start = Path.cwd(), time.process_time()
        path, modules = list(sys.path), set(sys.modules)
        os.chdir(folder)
        try:
            answer = _call(case, space, folder) if case.call else _command(case, main, folder)
        finally:
            os.chdir(before)
            shutil.rmtree(folder, ignore_errors=True)
            os.environ.clear()
            os.environ.update(environment)
            sys.path[:] = path
            for name in set(sys.modules) - modules:
                if name.startswith("boom"):
                    del sys.modules[name]
        pipe.send((answer[0], time.process_time() - start, answer[1], answer[2][:2000], _most_held()))


def _most_held() -> int:
    """Return the most bytes that this process held; ``ru_maxrss`` would count those of the process that started it."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(status.read_text().partition("VmHWM:")[2].split(maxsplit=1)[0]) * 1024


def _command(case: Case, main: Any, folder: Path) -> tuple[str, int | None, str]:
    from click.testing import CliRunner

    for name, recipe in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if recipe == "whole:folder":
            (folder / name).mkdir()
        elif recipe == "whole:pipe":
            os.mkfifo(folder / name)
        else:
            (folder / name).write_bytes(content(recipe))
    files = _listed(folder)
    done = CliRunner().invoke(main, list(case.words))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        text = "".join(traceback.format_exception(done.exception))
        return f"a traceback: {type(done.exception).__name__}: {done.exception}"[:300], done.exit_code, text[-1500:]
    return (
        _judged(case, done.exit_code, done.stdout, done.stderr, sorted(_listed(folder) - files)),
        done.exit_code,
        done.stderr,
    )


def _listed(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts}


def _judged(case: Case, code: int, out: str, err: str, left: list[str]) -> str:
    """Return what is wrong with an ending; nothing if it is as it should be."""
    if "Traceback" in err or "Traceback" in out:
        return "a traceback is printed"
    if "\x1b" in err + out:
        return "steers the terminal"
    if case.codes is None:
        return "" if code == 0 or "Error: " in err else f"ends with {code} and says nothing"
    if code not in case.codes:
        return "wrongly accepted" if code == 0 else f"ends with {code}"
    if out.strip() and not case.out:
        return f"half an answer is printed: {out.strip()[:80]!r}"
    lines = [line for line in err.splitlines() if line.strip()]
    if code != 130 and not any(line.startswith("Error: ") for line in lines):
        return f"no line begins with Error: {err.strip()[:120]!r}"
    if code == 1 and len(lines) > _LINES:
        return f"{len(lines)} lines"
    if max(map(len, lines)) > 4000:
        return "a line of more than 4,000 letters"
    named = case.names.lstrip("-").replace("-", "_")
    if (
        named
        and named not in err.replace("-", "_")
        and case.words[-1].strip()
        and repr(case.words[-1])[1:-1][:20] not in err
    ):
        return f"does not name {case.names}: {lines[-1][:160]!r}"
    if case.says and case.says not in err:
        return f"does not say {case.says!r}: {lines[-1][:160]!r}"
    parts = [
        name
        for name in left
        if name not in case.leaves
        and ((not case.out and name.endswith(".part")) or Path(name).suffix in (".html", ".png", ".csv"))
    ]
    return f"leaves {', '.join(parts)}" if parts else ""


def _call(case: Case, space: dict[str, Any], folder: Path) -> tuple[str, int | None, str]:
    def calling() -> Any:
        return eval(case.call, {**space, "T": folder})

    try:
        value = calling()
    except Exception as error:
        kind, text = type(error).__name__, str(error)
        if kind not in _FINE and not any(parent.__name__ in _FINE[:9] for parent in type(error).__mro__):
            return f"raises {kind}: {text[:160]}", None, "".join(traceback.format_exception(error))[-1500:]
        if case.names and case.names not in text:
            return f"does not name {case.names}: {kind}: {text[:160]!r}", None, text
        if not text.strip():
            return f"{kind} says nothing", None, text
        return "", None, text
    return f"wrongly accepted: gives {repr(value)[:100]}", None, ""


# Where the names come from that calls of the library use.
_NAMES = {
    "mlsys": "Hardware Q_ SoftwareStack collective device devices edge_arena edge_clock edge_layers formulas mapper system",
    "mlsys.api.size": "size",
    "mlsys.api.train": "train",
    "mlsys.api.systems": "systems", "mlsys.api.systolic": "systolic", "mlsys.models.overlap": "overlapped_steps",
    "mlsys.models.journey": "request_journey",
    "mlsys.amounts": "amount parsed_number", "mlsys.formatting": "check fmt fmt_percent",
    "mlsys.mapping.fusion": "fuse", "mlsys.models": "roofline", "mlsys.models.analysis": "analyze",
    "mlsys.models.architecture": "architecture", "mlsys.models.systolic": "count_systolic",
    "mlsys.models.training": "simulate_schedule training_step", "mlsys.mapping.parallel": "Layout",
    "mlsys.models.tiling": "Tiling tiled_gemm", "mlsys.planner.mapper": "best_mapping best_two_level",
    "mlsys.planner.memory": "fits_on plan_memory", "mlsys.planner.memory.fixed": "FixedBuffers",
    "mlsys.planner.placement": "Scenario example plan", "mlsys.precision": "PRECISIONS", "mlsys.provenance": "perturbed",
    "mlsys.sweep": "SweepSpec sweep", "mlsys.units": "ureg", "mlsys_evidence": "read_rows",
    "mlsys.workloads": "attention dense gemm load relu", "mlsys.workloads.zoo": "language_model network", "pathlib": "Path",
}  # fmt: skip


def _space() -> dict[str, Any]:
    """Return the names that calls of the library use."""
    import importlib

    import numpy as np

    import mlsys.formulas
    from mlsys.frozen import FrozenDict

    space: dict[str, Any] = {"np": np}
    for module, names in _NAMES.items():
        space |= {name: getattr(importlib.import_module(module), name) for name in names.split()}
    a100, quantity = space["Hardware"].Cloud.A100, space["Q_"]
    net = space["load"]("lenet5", precision="fp16")

    def formula(name: str, argument: str, value: Any) -> Any:
        function = getattr(mlsys.formulas, name)
        given = {other: _usual(spec, quantity) for other, spec in function.specs.items()}
        return function(**{**given, argument: value})

    def like(fact: Any, value: float) -> Any:
        other = fact.__class__(value, fact.units)
        other._origin = fact._origin
        return other

    def forged(part: str, value: float) -> Any:
        from dataclasses import replace

        if part == "peak":
            return replace(a100, _peaks=FrozenDict({key: like(peak, value) for key, peak in a100._peaks.items()}))
        level, field = a100.memory[a100.main_memory], f"_{part}"
        changed = replace(level, **{field: like(getattr(level, field), value)})
        return replace(a100, memory=FrozenDict({**a100.memory, a100.main_memory: changed}))

    return space | {
        "A": a100, "W": space["gemm"](64, 64, 64), "N": net, "P": space["plan_memory"](net), "L": space["language_model"]("gpt2"),
        "S": space["SweepSpec"](models=["lenet5"], devices=["A100"]), "formula": formula, "forged": forged,
    }  # fmt: skip


def _usual(spec: Any, quantity: Any) -> Any:
    value = 0.5 if spec.high == 1 else max(spec.low, 1) + 1
    value = int(value) if spec.whole else value
    return quantity(value, spec.unit) if spec.unit else value


def table(verdicts: list[Verdict], peak: int) -> str:
    """Return the results by command, as Markdown."""
    groups: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        groups[verdict.case.group].append(verdict)
    lines = [
        "| Command | Inputs | Tracebacks | Wrongly accepted | Too late or too large | Other | Slowest, s |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = [*sorted(groups.items()), ("all", verdicts)]
    for name, own in rows:
        kinds = Counter(_kind(verdict.fault) for verdict in own)
        slowest = max((verdict.seconds for verdict in own), default=0.0)
        lines.append(
            f"| {name} | {len(own):,} | {kinds['traceback']} | {kinds['accepted']} | {kinds['late']} | {kinds['other']} | {slowest:.1f} |"
        )
    return "\n".join([*lines, "", f"Most memory of the process: {peak / 1e9:.2f} GB"])


def _kind(fault: str) -> str:
    if not fault:
        return ""
    if "traceback" in fault or fault.startswith("raises"):
        return "traceback"
    if "wrongly" in fault:
        return "accepted"
    return "late" if fault.startswith(("computes", "holds", "waits", "the process")) else "other"


def _main() -> Iterator[str]:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", default="", help="cases whose name holds this")
    options.add_argument("--group", default="", help="cases of this command, or python")
    options.add_argument("--part", default="1/1", help="of the cases, such as 2/4: every fourth, from the second on")
    options.add_argument("--report", type=Path, help="write every verdict, as JSON lines")
    given = options.parse_args()
    import click

    cases = [case for case in corpus() if given.only in case.id and (not given.group or case.group == given.group)]
    number, _, parts = given.part.partition("/")
    cases = cases[int(number) - 1 :: int(parts)]
    with (
        click.progressbar(length=len(cases), label="bad inputs", file=sys.stderr) as bar,
        open(given.report or os.devnull, "w", encoding="utf-8") as report,
    ):

        def tick(verdict: Verdict) -> None:
            bar.update(1)
            result = {
                "id": verdict.case.id,
                "group": verdict.case.group,
                "fault": verdict.fault,
                "seconds": verdict.seconds,
                "message": verdict.message,
            }
            print(json.dumps(result), file=report, flush=True)

        verdicts, peak = run(cases, tick)
    yield from (f"{verdict.case.group}: {verdict.case.id!r}: {verdict.fault}" for verdict in verdicts if verdict.fault)
    print(table(verdicts, peak))


if __name__ == "__main__":
    faults = list(_main())
    print("\n".join(faults))
    sys.exit(1 if faults else 0)
