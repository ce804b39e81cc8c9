"""``mlsys explain``: measure a network in several ways, keep the samples, and say why it is slow."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from mlsys.cli.common import Commands, Finite, progress, say, speak_plainly
from mlsys.files import atomically

__all__ = ["explain"]

_INFEASIBLE = 3
_PATH = click.Path(path_type=Path)


@click.group(cls=Commands)
def explain() -> None:
    """Measure, keep every sample, and say where the time and the energy went.

    `run` measures, `import` reads what a board sent, `report` explains logs, `compare` lays platforms side by side,
    `guide` chooses a platform for a requirement.
    """


@explain.command()
@click.argument("model", default="ds-cnn")
@click.option("--backend", "names", default="all", show_default=True, help="With commas; `all` is those on this CPU.")
@click.option("--format", "formats", default="fp32", show_default=True, help="fp32, int8, or both with a comma.")
@click.option(
    "--iterations", type=click.IntRange(min=1), default=100, show_default=True, help="Of a run; 100 at least."
)
@click.option("--warmup", type=click.IntRange(min=1), default=10, show_default=True, help="Before each run.")
@click.option("--runs", type=click.IntRange(min=1), default=3, show_default=True, help="Repetitions of all of it.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="How many may compute.")
@click.option("--cores", help="Numbers with commas; by default one core where one thread computes.")
@click.option("--batch", type=click.IntRange(min=1), default=1, show_default=True, help="Of a PyTorch module.")
@click.option("--port", help="Of a serial device: /dev/ttyACM0, COM3, or socket://host:port.")
@click.option("--baud", type=click.IntRange(min=300), default=115200, show_default=True, help="Of the port.")
@click.option("--wait", type=Finite(min=0.1), default=30.0, show_default=True, help="Seconds for an answer.")
@click.option("--out", type=_PATH, default=Path("explain-logs"), show_default=True, help="Folder for the logs.")
@click.option("--no-rates", is_flag=True, help="Do not measure the machine's rates; then nothing can be attributed.")
@click.option("--trace", type=_PATH, help="Also write a Chrome trace of PyTorch's operators into this file.")
@click.option("--json", "as_json", is_flag=True, help="Summaries as JSON.")
@speak_plainly
def run(
    model: str, names: str, formats: str, iterations: int, warmup: int, runs: int, threads: int, cores: str | None,
    batch: int, port: str | None, baud: int, wait: float, out: Path, no_rates: bool, trace: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Measure MODEL: ds-cnn, tiny-cnn, an .onnx or .tflite file, a network with PyTorch code, or a module:factory.

    Each backend is loaded, its first inference kept apart, warmed up and run 100 times or more, three times over. One
    log a backend and format, JSON lines, is written. A backend that cannot run is named with its reason.
    """
    from mlsys.explain.backends import BackendMissingError
    from mlsys.explain.protocol import LEAST, measure_backend
    from mlsys.explain.subjects import subject_of

    faults = []
    if iterations < LEAST:
        faults.append(f"--iterations: at least {LEAST}, got {iterations}")
    chosen, asked = _backends(names, port, baud, wait, faults), [part.strip() for part in formats.split(",")]
    numbers = _cores(cores, faults)
    if out.exists() and not out.is_dir():
        faults.append(f"--out: {out} is a file, and must be a folder")
    subjects = []
    for each in asked:
        try:
            subjects.append(subject_of(model, each, batch=batch))
        except (ValueError, LookupError, OSError) as error:
            faults.append(str(error))
    if faults:
        raise ValueError("\n".join(dict.fromkeys(faults)))
    jobs = [(subject, make) for subject in {id(one): one for one in subjects}.values() for make in chosen]
    logs, absent = [], []
    for subject, make in jobs:
        backend = make()
        try:
            with progress(range(runs * iterations // 10), f"{backend.name} {subject.format}") as bar:
                step: Iterator[int] = iter(bar)
                log = measure_backend(
                    backend, subject, iterations=iterations, warmup=warmup, runs=runs, threads=threads, cores=numbers,
                    rates=not no_rates, tick=partial(next, step, None),
                )  # fmt: skip
        except BackendMissingError as error:
            absent.append({"backend": backend.name, "format": subject.format, "reason": str(error)})
            continue
        finally:
            backend.close()
        path = out / f"{log.name.replace(' ', '-').replace('/', '-')}.jsonl"
        log.write(path)
        logs.append((log, path))
    if trace is not None:
        _trace(subjects[0], trace)
    _tell(logs, absent, as_json)
    if not logs:
        sys.exit(1)


def _backends(names: str, port: str | None, baud: int, wait: float, faults: list[str]) -> list[Any]:
    """Return what makes each backend, and note names that there are none of."""
    from mlsys.errors import did_you_mean
    from mlsys.explain.backends import BACKENDS

    found: list[Any] = []
    listed = list(BACKENDS) if names == "all" else [part.strip() for part in names.split(",") if part.strip()]
    if names == "all" and port:
        listed = ["serial"]
    if not listed:
        faults.append(f"--backend: names none. Known: {', '.join((*BACKENDS, 'serial'))}")
    for place, name in enumerate(listed):
        if name in listed[:place]:
            faults.append(f"--backend: {name!r} is there twice")
        elif name == "serial":
            if port is None:
                faults.append("--backend serial: needs --port, e.g. --port /dev/ttyACM0")
                continue
            from mlsys.explain.serial import SerialDevice

            found.append(lambda: SerialDevice(port, baud, wait))
        elif name not in BACKENDS:
            known = (*BACKENDS, "serial")
            faults.append(f"--backend: there is no {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}")
        else:
            found.append(BACKENDS[name])
    return found


def _cores(text: str | None, faults: list[str]) -> list[int] | None:
    import os

    if text is None:
        return None
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    found = []
    for part in text.split(","):
        if not part.strip().isdigit():
            faults.append(f"--cores: {part.strip()!r} is no number of a core")
        elif allowed and int(part) not in allowed:
            faults.append(f"--cores: this process may not use core {part.strip()}, only {sorted(allowed)}")
        else:
            found.append(int(part))
    return found


def _trace(subject: Any, path: Path) -> None:
    """Write PyTorch's own profile of five inferences, for chrome://tracing or Perfetto."""
    import torch

    from mlsys.explain.backends.pytorch import Eager

    backend = Eager()
    backend.setup(subject, 1)
    for _ in range(5):
        backend.run_inference()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(5):
            backend.run_inference()
    atomically(path, lambda draft: profile.export_chrome_trace(str(draft)), folders=True)
    say(f"written: {path}", err=True)


def _tell(logs: list[tuple[Any, Path]], absent: list[dict[str, str]], as_json: bool) -> None:
    from mlsys.explain.summary import agreement, summary, summary_text

    pairs = agreement([log for log, _ in logs])
    if as_json:
        told = {
            "logs": [summary(log) | {"file": str(path)} for log, path in logs], "absent": absent,
            "agreement": [list(pair) for pair in pairs],
        }  # fmt: skip
        say(json.dumps(told, indent=1, ensure_ascii=False))
    else:
        for log, path in logs:
            say(summary_text(log))
            say(f"  written: {path}\n")
        for one, other, apart in pairs:
            say(f"outputs of {one} and {other} differ by at most {apart:.2g} of the largest")
        for missing in absent:
            say(f"absent: {missing['reason']}")


@explain.command("import")
@click.argument("capture", type=_PATH)
@click.option("--model", required=True, help="The network: ds-cnn, tiny-cnn, or any name for one of your own.")
@click.option("--platform", required=True, help="Name of the board.")
@click.option("--clock", type=float, help="Ticks a second, where the capture does not say m-clock-[...].")
@click.option("--power", type=_PATH, help="CSV of power: time_s,power_w, over all inferences of the capture.")
@click.option("--idle", type=float, default=0.0, show_default=True, help="Power of the idle board, W, for --power.")
@click.option("--skip-malformed", is_flag=True, help="Leave out lines that cannot be read; they stay in the log.")
@click.option("--out", type=_PATH, required=True, help="The log to write.")
@speak_plainly
def import_(
    capture: Path, model: str, platform: str, clock: float | None, power: Path | None, idle: float,
    skip_malformed: bool, out: Path,
) -> None:  # fmt: skip
    """Make a log of CAPTURE, the text that a board sent over its serial line.

    Rows are i,layer,start,end,misses,accesses,ms,mJ with the raw 32-bit counter; its turns are followed. Lines that
    cannot be read are listed by number.
    """
    from mlsys.explain.imported import imported

    log = imported(
        capture, model=model, platform=platform, clock=clock, power=power, idle=idle, skip_malformed=skip_malformed
    )
    log.write(out)
    for words in log.malformed:
        say(f"left out: {words}", err=True)
    _tell([(log, out)], [], False)


@explain.command()
@click.argument("logs", nargs=-1, required=True, type=_PATH)
@click.option("--html", "page_file", type=_PATH, help="One HTML file with pictures, tables and raw data.")
@click.option("--pictures", type=_PATH, help="Folder for the pictures as PNG, and operators.csv.")
@click.option("--json", "as_json", is_flag=True, help="Summaries as JSON.")
@speak_plainly
def report(logs: tuple[Path, ...], page_file: Path | None, pictures: Path | None, as_json: bool) -> None:
    """Explain LOGS, the first one layer by layer: causes, doubts, gains, claims. `stored:NAME` reads a shipped log."""
    found = _read(logs)
    if page_file is not None:
        from mlsys.cli.explain_page import explain_page
        from mlsys.explain.log import write_whole

        write_whole(page_file, explain_page(found, command=f"mlsys explain report {' '.join(map(str, logs))}"))
        say(f"written: {page_file}", err=True)
    if pictures is not None:
        _write_pictures(found, pictures)
    if as_json or (page_file is None and pictures is None):
        _tell_report(found, as_json)


def _read(paths: tuple[Path, ...]) -> list[Any]:
    """Return logs, of files and of those that are shipped; every fault of all is told."""
    from mlsys.errors import LogFileError, did_you_mean
    from mlsys.explain import read_log, stored_logs

    found: list[Any] = []
    faults: list[str] = []
    for path in paths:
        text = str(path)
        try:
            if text == "stored":
                found += stored_logs().values()
            elif text.startswith("stored:"):
                name = text.removeprefix("stored:")
                if name not in stored_logs():
                    faults.append(f"{text}: there is no such log.{did_you_mean(name, stored_logs())}")
                    continue
                found.append(stored_logs()[name])
            else:
                found.append(read_log(path))
        except LogFileError as error:
            faults.append(str(error))
    names = [(log.name, log.platform) for log in found]
    faults += [
        f"{name} on {platform} is there twice"
        for name, platform in dict.fromkeys(names)
        if names.count((name, platform)) > 1
    ]
    if faults:
        raise LogFileError("\n".join(faults))
    return found


def _write_pictures(logs: list[Any], folder: Path) -> None:
    import csv
    import io

    from mlsys.cli.explain_page import OPERATOR_COLUMNS, operator_table, write_pictures
    from mlsys.explain import attribute
    from mlsys.explain.log import write_whole

    written, absent = write_pictures(logs, folder)
    try:
        stream = io.StringIO()
        writer = csv.DictWriter(stream, OPERATOR_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(operator_table(attribute(logs[0]), logs[0]))
        write_whole(folder / "operators.csv", stream.getvalue())
        written.append(folder / "operators.csv")
    except ValueError as why:
        absent.append(f"operators.csv: {why}")
    for path in written:
        say(f"written: {path}", err=True)
    for words in absent:
        say(f"absent: {words}", err=True)


def _tell_report(logs: list[Any], as_json: bool) -> None:
    from mlsys.explain import attribute
    from mlsys.explain.hypotheses import standard_claims
    from mlsys.explain.whatif import what_ifs

    verdicts = standard_claims(logs)
    if as_json:
        from mlsys.explain.summary import summary

        told = {"logs": list(map(summary, logs)), "claims": [asdict(one) for one in verdicts]}
        say(json.dumps(told, indent=1, ensure_ascii=False))
        return
    _tell([(log, Path("-")) for log in logs], [], False)
    try:
        found = attribute(logs[0])
    except ValueError as why:
        say(f"{why}")
    else:
        say(found.explain())
        for gain in what_ifs(found, logs[0]):
            words = f"at most {gain.speedup:.2f}×, limit {gain.limit:.2f}×" if gain.applies else "not applicable"
            say(f"  what if {gain.change}: {words} ({gain.why})")
    for verdict in verdicts:
        say(verdict.explain())


@explain.command()
@click.argument("logs", nargs=-1, type=_PATH)
@click.option("--published/--no-published", default=True, show_default=True, help="Microcontrollers on DS-CNN.")
@click.option("--rows", type=_PATH, help="CSV of further platforms.")
@click.option("--portability", is_flag=True, help="Predict each published platform from the others.")
@click.option("--json", "as_json", is_flag=True)
@click.option("--csv", "as_csv", is_flag=True)
@speak_plainly
def compare(
    logs: tuple[Path, ...], published: bool, rows: Path | None, portability: bool, as_json: bool, as_csv: bool
) -> None:
    """Lay platforms side by side: LOGS, published microcontrollers, rows of your own; name the best of each column."""
    from mlsys.cli.common import print_csv
    from mlsys.explain.platforms import COLUMNS, winners

    if portability:
        _tell_portability(as_json)
        return
    found = _platforms(logs, published, rows)
    best = winners(found)
    if as_json:
        told = {"platforms": [asdict(row) | {"power_mw": row.power_mw} for row in found], "best": best}
        say(json.dumps(told, indent=1, ensure_ascii=False))
    elif as_csv:
        print_csv([{name: _known(getattr(row, name)) for name in (*COLUMNS, "source")} for row in found])
    else:
        wide = max(len(row.platform) for row in found)
        say(f"{'platform':<{wide}}  {'ms':>10}  {'mJ':>9}  {'mW':>8}  {'kB':>8}  {'runs apart':>10}")
        for row in found:
            values = (row.latency_ms, row.energy_mj, row.power_mw, row.memory_kb)
            cells = [("—" if v is None else f"{v:.4g}").rjust(w) for v, w in zip(values, (10, 9, 8, 8), strict=True)]
            apart = "—" if row.between_runs is None else f"{row.between_runs:.1%}"
            say(f"{row.platform:<{wide}}  {'  '.join(cells)}  {apart:>10}")
        for name, platform in best.items():
            say(f"best {name}: {platform}")


def _known(value: Any) -> Any:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else value


def _platforms(logs: tuple[Path, ...], with_published: bool, rows: Path | None) -> list[Any]:
    from mlsys.errors import LogFileError
    from mlsys.explain.platforms import platform_of, published, read_platforms

    faults: list[str] = []
    found: list[Any] = []
    try:
        found += map(platform_of, _read(logs))
    except LogFileError as error:
        faults.append(str(error))
    if rows is not None:
        try:
            found += read_platforms(rows)
        except LogFileError as error:
            faults.append(str(error))
    if with_published:
        found += published()
    names = [row.platform for row in found]
    faults += [f"{name!r} is there twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    if not found and not faults:
        faults.append("nothing to compare: give LOGS, --rows, or --published")
    if faults:
        raise LogFileError("\n".join(faults))
    return found


def _tell_portability(as_json: bool) -> None:
    from mlsys.explain.portability import leave_one_out, published_points

    found = leave_one_out(published_points())
    if as_json:
        say(json.dumps([asdict(one) | {"error": one.error} for one in found], indent=1))
        return
    for one in found:
        told = f"{one.time_ms:.4g} ms, {one.error:+.0%}" if one.error is not None else f"refused: {one.refused}"
        say(f"{one.platform}, {one.network}: measured {one.measured_ms:.4g} ms; {told}")
    errors = sorted(abs(one.error) for one in found if one.error is not None)
    say(f"{len(errors)} of {len(found)} predicted; the middle error is {errors[len(errors) // 2]:.0%}")


@explain.command()
@click.argument("logs", nargs=-1, type=_PATH)
@click.option("--within", "latency_ms", type=float, help="Milliseconds at most.")
@click.option("--energy", "energy_mj", type=float, help="mJ at most.")
@click.option("--memory", "memory_kb", type=float, help="kB at most.")
@click.option("--accuracy", type=float, help="Percent at least.")
@click.option("--cost", "cost_usd", type=float, help="US dollars at most.")
@click.option("--published/--no-published", default=True, show_default=True, help="Microcontrollers on DS-CNN.")
@click.option("--rows", type=_PATH, help="CSV of platforms.")
@click.option("--json", "as_json", is_flag=True)
@click.option("--markdown", type=_PATH, help="Also write tree and table into this file.")
@speak_plainly
def guide(
    logs: tuple[Path, ...],
    published: bool,
    rows: Path | None,
    as_json: bool,
    markdown: Path | None,
    **limits: float | None,
) -> None:
    """Choose a platform for a requirement, by a decision tree over feasible rows. INFEASIBLE ends with exit code 3."""
    from mlsys.explain.guide import INFEASIBLE, Requirement
    from mlsys.explain.guide import guide as best

    faults: list[str] = []
    wanted = None
    try:
        wanted = Requirement(**limits)
    except ValueError as error:
        faults.append(str(error))
    try:
        found = _platforms(logs, published, rows)
    except ValueError as error:
        faults.append(str(error))
    if faults or wanted is None:
        raise ValueError("\n".join(faults))
    told = best(found, wanted)
    if markdown is not None:
        from mlsys.explain.guide import as_markdown
        from mlsys.explain.log import write_whole

        write_whole(markdown, as_markdown(told, found))
        say(f"written: {markdown}", err=True)
    if as_json:
        say(json.dumps(asdict(told) | {"wanted": told.wanted.asked}, indent=1, ensure_ascii=False))
    else:
        say(f"{told.answer}\n")
        say(f"by {told.by}, checked in {told.cells} cells of limits\n\n{told.tree}\n")
        for name, why in told.why.items():
            say(f"{name}: {'; '.join(why) or 'feasible'}")
    if told.answer == INFEASIBLE:
        sys.exit(_INFEASIBLE)
