"""Import of a log from the serial output of a board, with a power trace recorded in parallel."""

from dataclasses import replace
from datetime import date
from pathlib import Path

from mlsys.errors import LogFileError, UnreadableError
from mlsys.inputs import read_bytes
from mlsys.measure.energy.trace import read_power
from mlsys.measure.firmware.uart import read_capture, samples_of
from mlsys.measure.log import Cold, LayerWork, Log, parsed
from mlsys.measure.networks.chains import NETS, net_of
from mlsys.measure.networks.subjects import Subject


def import_capture(
    path: Path, *, model: str, platform: str, clock: float | None = None, power: Path | None = None, idle: float = 0.0,
    skip_malformed: bool = False,
) -> Log:  # fmt: skip
    """Return the log of a capture.

    Parameters
    ----------
    path
        Text of the serial line; see :mod:`mlsys.measure.firmware.uart`.
    model, platform
        The network, built-in or any other name, and the board.
    clock
        Ticks per second, if the capture does not contain them.
    power, idle
        A CSV file of time, s, and power, W, over all inferences, and the idle power of the board, W.
    skip_malformed
        Whether to skip lines that cannot be read; they are kept in the log.

    Raises
    ------
    LogFileError
        If files cannot be read; every error is listed with its line.
    ArgumentError
        If the clock is unknown.
    """
    faults: list[str] = []
    if clock is not None and not 0 < clock < 1e12:
        faults.append(f"--clock: must be above 0 ticks per second, got {clock:g}")
    if not 0 <= idle < 1e6:
        faults.append(f"--idle: must not be below 0 W, got {idle:g}")
    capture = trace = None
    try:
        text = read_bytes(path).decode("ascii", errors="replace")
        capture = read_capture(text.splitlines(), str(path), skip_malformed=skip_malformed)
    except (LogFileError, UnreadableError) as error:
        faults.append(str(error))
    if power is not None:
        try:
            trace = read_power(power)
        except LogFileError as error:
            faults.append(str(error))
    if capture is not None and not (capture.clock or clock):
        faults.append(f"{path}: the capture does not contain its clock. Write --clock 25e6")
    if faults or capture is None:
        raise LogFileError("\n".join(faults))
    ticks = clock or capture.clock
    rates = capture.rates_per_second(ticks)
    samples, layers = samples_of(capture, ticks)
    if not samples:
        raise LogFileError(f"{path}: no inference took any time")
    reason = "the capture contains no energy"
    if trace is not None:
        mean = float(trace.per_inference(len(samples), idle).m_as("mJ"))
        samples = [replace(sample, energy_mj=mean) for sample in samples]
        reason = f"mean of the whole trace, {len(trace.times)} samples, minus idle power of {idle:g} W"
    elif any(sample.energy_mj is not None for sample in samples):
        reason = "reported by the board"
    rate = {"rate_hz": trace.rate} if trace is not None else {}
    energy = {
        "source": "power trace" if trace else "board" if samples[0].energy_mj is not None else None,
        "reason": reason,
    }
    counted = any((layer.counters or {}).get("accesses") is not None for layer in layers)
    log = Log(
        backend="import", model=model, format="int8", platform=platform, day=date.today().isoformat(),
        protocol={"warmup": 0, "iterations": len(samples), "runs": 1, "threads": 1, "affinity": None},
        environment=capture.environment,
        works=_works(model, [layer.layer or "" for layer in layers]), colds=(Cold(0, None, samples[0].latency_ms),),
        samples=tuple(samples), layers=tuple(layers),
        rates=rates and {**rates, "how": "the board's own loops, in the capture"},
        rates_reason="" if rates else "the capture contains no answer to `rates`", energy=energy | rate,
        counters={"source": "board" if counted else None, "reason": "" if counted else "the board counts no accesses"},
        layer_times={"source": "the counter of the board, before and after each layer" if layers else None,
                     "reason": "" if layers else "the capture has no layer rows"},
        malformed=tuple(f"line {line}: {words}" for line, words in capture.faults),
    )  # fmt: skip
    parsed("\n".join(log.lines()), f"the log of {path}")  # the written log must be readable
    return log


def _works(model: str, names: list[str]) -> tuple[LayerWork, ...]:
    works = list(dict.fromkeys(names))
    known: dict[str, LayerWork] = {}
    if model in NETS:
        known = {work.name: work for work in Subject(model, "int8", net_of(model)).works()}
    return tuple(known.get(name, LayerWork(name, "unknown", 0, 0, 0, 0)) for name in works)
