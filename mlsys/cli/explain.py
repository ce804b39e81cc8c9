"""``mlsys explain``: measure a network with several backends, store the samples, and explain its time."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

import click

from mlsys.cli.common import Commands, progress, refuse_unused, say, speak_plainly
from mlsys.cli.explain_platforms import compare, guide, read_logs
from mlsys.cli.parameters import Finite, Input, Output, OutputFolder, Whole
from mlsys.errors import UnwrittenError
from mlsys.files import atomically, check_folder, csv_text, write_text

_PATH, _MADE, _LOG = click.Path(path_type=Path), Output(folders=True), Input(stored=True)


@click.group(cls=Commands)
def explain() -> None:
    """Measure a network, store every sample, and attribute time and energy to causes.

    `run` measures, `import` reads the output of a board, `report` explains logs, `compare` compares platforms, `guide`
    chooses a platform for a requirement.
    """


@explain.command()
@click.argument("model", default="ds-cnn")
@click.option(
    "--backend",
    "names",
    default="all",
    show_default=True,
    help="Names separated by commas; `all` is those on this CPU.",
)
@click.option("--format", "formats", default="fp32", show_default=True, help="fp32, int8, or both with a comma.")
@click.option(
    "--iterations", type=Whole(min=1), default=100, show_default=True, help="Inferences per run; at least 100."
)
@click.option("--warmup", type=Whole(min=1), default=10, show_default=True, help="Warm-up inferences before each run.")
@click.option("--runs", type=Whole(min=1), default=3, show_default=True, help="Number of runs.")
@click.option("--threads", type=Whole(min=1), default=1, show_default=True, help="Number of threads.")
@click.option("--cores", help="Core numbers separated by commas; by default one core for one thread.")
@click.option("--batch", type=Whole(min=1), default=1, show_default=True, help="Batch of a PyTorch module.")
@click.option("--port", help="Serial port: /dev/ttyACM0, COM3, or socket://host:port.")
@click.option("--baud", type=Whole(min=300), default=115200, show_default=True, help="Baud rate of the port.")
@click.option("--wait", type=Finite(min=0.1), default=30.0, show_default=True, help="Seconds to wait for an answer.")
@click.option("--out", type=_PATH, default=Path("explain-logs"), show_default=True, help="Folder for the logs.")
@click.option("--no-rates", is_flag=True, help="Skip measuring the machine's rates; the time is then not attributed.")
@click.option("--trace", type=_MADE, help="Also write a Chrome trace of PyTorch's operators to this file.")
@click.option("--flame", type=_MADE, help="Also write a flame graph of PyTorch eager, sampled by py-spy, as SVG.")
@click.option("--json", "as_json", is_flag=True, help="Summaries as JSON.")
@speak_plainly
def run(
    model: str, names: str, formats: str, iterations: int, warmup: int, runs: int, threads: int, cores: str | None,
    batch: int, port: str | None, baud: int, wait: float, out: Path, no_rates: bool, trace: Path | None,
    flame: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Measure MODEL: ds-cnn, tiny-cnn, an .onnx or .tflite file, a network with PyTorch code, or a module:factory.

    Each backend is loaded, its first inference timed separately, warmed up and run at least 100 times, in three runs.
    One log (JSON lines) per backend and format is written, under a new name if --out has one already. Ctrl-C keeps the
    samples taken so far. A backend that cannot run is listed with the reason; a backend whose INT8 kernels saturate on
    this CPU is labelled, with the difference from exact sums in steps of the output grid.
    """
    from mlsys.measure.errors import BackendMissingError
    from mlsys.measure.networks.subjects import FORMATS, subject_of
    from mlsys.measure.protocol import LEAST, measure_backend
    from mlsys.unit_checks import checked_choice

    faults: list[str] = []
    serial = "serial" in names or (names == "all" and port)
    if not serial:
        refuse_unused("applies to a board: write --backend serial --port /dev/ttyACM0", ("port", "baud", "wait"))
    if iterations < LEAST:
        faults.append(f"--iterations: must be at least {LEAST}, got {iterations}")
    chosen, requested = _backends(names, port, baud, wait, faults), [part.strip() for part in formats.split(",")]
    numbers = _cores(cores, faults)
    try:
        check_folder(out)
    except UnwrittenError as error:
        faults.append(f"--out: {error}")
    subjects = []
    for each in requested:
        try:
            subjects.append(subject_of(model, checked_choice("subject_of", "format", each, FORMATS), batch=batch))
        except (ValueError, LookupError, OSError) as error:
            faults.append(str(error))
    if faults:
        raise ValueError("\n".join(dict.fromkeys(faults)))
    jobs = [(subject, make) for subject in {id(subject): subject for subject in subjects}.values() for make in chosen]
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
        path = _free(out / f"{log.name.replace(' ', '-').replace('/', '-')}.jsonl")
        log.write(path)
        logs.append((log, path))
        if stopped := log.environment.get("stopped"):
            say(f"{log.name}: {stopped}; written: {path}", err=True)
            raise KeyboardInterrupt
    if trace is not None:
        _trace(subjects[0], trace)
    if flame is not None:
        from mlsys.measure.flame import of_subject

        of_subject(model, requested[0], batch, flame)
        say(f"written: {flame}", err=True)
    _tell(logs, absent, as_json)
    if not logs:
        sys.exit(1)


def _free(path: Path) -> Path:
    """Return an unused file name, so that a second measurement does not replace the first."""
    names = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
    return next(name for name in chain([path], names) if not name.exists())


def _backends(names: str, port: str | None, baud: int, wait: float, faults: list[str]) -> list[Any]:
    """Return a constructor for each backend, and record unknown names as errors."""
    from mlsys.errors import did_you_mean
    from mlsys.measure.backends import BACKENDS

    backends: list[Any] = []
    listed = list(BACKENDS) if names == "all" else [part.strip() for part in names.split(",") if part.strip()]
    if names == "all" and port:
        listed = ["serial"]
    if not listed:
        faults.append(f"--backend: no name given. Known: {', '.join((*BACKENDS, 'serial'))}")
    for index, name in enumerate(listed):
        if name in listed[:index]:
            faults.append(f"--backend: duplicate {name!r}")
        elif name == "serial":
            if port is None:
                faults.append("--backend serial: needs --port, e.g. --port /dev/ttyACM0")
                continue
            from mlsys.measure.firmware.serial import SerialDevice

            backends.append(lambda: SerialDevice(port, baud, wait))
        elif name not in BACKENDS:
            known = (*BACKENDS, "serial")
            faults.append(f"--backend: unknown {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}")
        else:
            backends.append(BACKENDS[name])
    return backends


def _cores(text: str | None, faults: list[str]) -> list[int] | None:
    import os

    if text is None:
        return None
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    counts = []
    for part in text.split(","):
        if not part.strip().isdigit():
            faults.append(f"--cores: {part.strip()!r} is not a core number")
        elif allowed and int(part) not in allowed:
            faults.append(f"--cores: this process may not use core {part.strip()}, only {sorted(allowed)}")
        else:
            counts.append(int(part))
    return counts


def _trace(subject: Any, path: Path) -> None:
    """Write PyTorch's profile of five inferences, for chrome://tracing or Perfetto."""
    import torch

    from mlsys.measure.backends.pytorch import Eager

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
    from mlsys.measure.summary import agreement, summary, summary_text

    pairs = agreement([log for log, _ in logs])
    if as_json:
        record = {
            "logs": [summary(log) | {"file": str(path)} for log, path in logs], "absent": absent,
            "agreement": [list(pair) for pair in pairs],
        }  # fmt: skip
        say(json.dumps(record, indent=1, ensure_ascii=False))
    else:
        for log, path in logs:
            say(summary_text(log))
            say(f"  written: {path}\n")
        for first, second, difference in pairs:
            say(f"outputs of {first} and {second} differ by at most {difference:.2g} of the largest output")
        for missing in absent:
            say(f"absent: {missing['reason']}")


@explain.command("import")
@click.argument("capture", type=Input())
@click.option("--model", required=True, help="The network: ds-cnn, tiny-cnn, or any name for your own network.")
@click.option("--platform", required=True, help="Name of the board.")
@click.option("--clock", type=Finite(), help="Ticks per second, if the capture does not contain m-clock-[...].")
@click.option("--power", type=Input(), help="CSV of power: time_s,power_w, over all inferences of the capture.")
@click.option("--idle", type=Finite(), default=0.0, show_default=True, help="Idle power of the board, W, for --power.")
@click.option("--skip-malformed", is_flag=True, help="Skip lines that cannot be read; they stay in the log.")
@click.option("--out", type=_MADE, required=True, help="The log file to write.")
@speak_plainly
def import_(
    capture: Path, model: str, platform: str, clock: float | None, power: Path | None, idle: float,
    skip_malformed: bool, out: Path,
) -> None:  # fmt: skip
    """Convert CAPTURE, the text that a board sent over its serial line, to a log.

    Rows are i,layer,start,end,misses,accesses,ms,mJ with the raw 32-bit counter, whose wrap-around is handled. Lines
    that cannot be read are listed by number.
    """
    from mlsys.measure.firmware.capture import import_capture

    if power is None:
        refuse_unused("applies to --power", ("idle",))

    log = import_capture(
        capture, model=model, platform=platform, clock=clock, power=power, idle=idle, skip_malformed=skip_malformed
    )
    log.write(out)
    for words in log.malformed:
        say(f"skipped: {words}", err=True)
    _tell([(log, out)], [], False)


@explain.command()
@click.argument("logs", nargs=-1, required=True, type=_LOG)
@click.option("--html", "page_file", type=_MADE, help="One HTML file with figures, tables and raw data.")
@click.option(
    "--pictures",
    type=OutputFolder(),
    help="Folder for PNG figures, operators.csv and an interactive sunburst.",
)
@click.option("--json", "as_json", is_flag=True, help="Summaries as JSON.")
@speak_plainly
def report(logs: tuple[Path, ...], page_file: Path | None, pictures: Path | None, as_json: bool) -> None:
    """Explain LOGS, the first one by layer: causes, doubts, gains, claims. `stored:NAME` reads a shipped log."""
    contents = read_logs(logs)
    if page_file is not None:
        from mlsys.cli.explain_page import explain_page

        write_text(
            page_file, explain_page(contents, command=f"mlsys explain report {' '.join(map(str, logs))}"), folders=True
        )
        say(f"written: {page_file}", err=True)
    if pictures is not None:
        _write_pictures(contents, pictures)
    if as_json or (page_file is None and pictures is None):
        _tell_report(contents, as_json)


def _write_pictures(logs: list[Any], folder: Path) -> None:
    from mlsys.cli.explain_page import OPERATOR_COLUMNS, operator_table, write_pictures
    from mlsys.cli.sunburst_page import sunburst_page
    from mlsys.measure.attribution import attribution_or_reason

    written, absent = write_pictures(logs, folder)
    shares, why = attribution_or_reason(logs[0])
    if shares is None:
        absent.append(f"operators.csv, attribution_sunburst.html: {why}")
    else:
        made = {
            "operators.csv": csv_text(operator_table(shares, logs[0]), OPERATOR_COLUMNS),
            "attribution_sunburst.html": sunburst_page(shares, logs[0]),
        }
        for name, text in made.items():
            write_text(folder / name, text)
            written.append(folder / name)
    for path in written:
        say(f"written: {path}", err=True)
    for words in absent:
        say(f"absent: {words}", err=True)


def _tell_report(logs: list[Any], as_json: bool) -> None:
    from mlsys.measure.attribution import attribution_or_reason
    from mlsys.measure.hypotheses import standard_claims
    from mlsys.measure.recommend.whatif import what_ifs

    verdicts = standard_claims(logs)
    if as_json:
        from mlsys.measure.summary import summary

        record = {"logs": list(map(summary, logs)), "claims": [asdict(verdict) for verdict in verdicts]}
        say(json.dumps(record, indent=1, ensure_ascii=False))
        return
    _tell([(log, Path("-")) for log in logs], [], False)
    attribution, why = attribution_or_reason(logs[0])
    if attribution is None:
        say(why)
    else:
        say(attribution.explain())
        for gain in what_ifs(attribution, logs[0]):
            words = f"at most {gain.speedup:.2f}×, limit {gain.limit:.2f}×" if gain.applies else "not applicable"
            say(f"  what if {gain.change}: {words} ({gain.why})")
    for verdict in verdicts:
        say(verdict.explain())


explain.add_command(compare)
explain.add_command(guide)
