"""Measurement protocol: cold start separate, warm-up dropped, one core, three runs, all samples kept."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from mlsys.errors import ArgumentError
from mlsys.formatting import significant
from mlsys.gc_pause import gc_paused
from mlsys.measure.backends.base import Backend, timed
from mlsys.measure.counters import PerfCounters, per_run
from mlsys.measure.energy import Rapl
from mlsys.measure.errors import BackendMissingError, Unmeasured
from mlsys.measure.firmware.serial import SerialDevice
from mlsys.measure.integer_check import IntegerCheck, check_integers
from mlsys.measure.log import Cold, LayerWork, Log, Sample
from mlsys.measure.machine import cpu_name, environment, pinned, throttle_count
from mlsys.measure.networks.chains import Net, idle_chain
from mlsys.measure.networks.subjects import Subject
from mlsys.measure.rates import rates_here
from mlsys.unit_checks import checked_number, count

LEAST = 100
"""Least iterations of a run."""
_LAYER_ROUNDS = 25
_NO_METER = "the board reports no energy: add a shunt and an INA226 to its supply, and import the trace"
_NO_MISSES = "misses and accesses: cores up to the Cortex-M7 have no counters of them"
_IDLE, _IDLE_ROUNDS = 17, 101
_MEAN = "the mean of each run, including idle power: the meter is too slow for one inference"


def measure_backend(
    backend: Backend,
    subject: Subject,
    *,
    iterations: int = LEAST,
    warmup: int = 10,
    runs: int = 3,
    threads: int = 1,
    cores: Sequence[int] | None = None,
    rates: bool = True,
    tick: Callable[[], object] = lambda: None,
) -> Log:
    """Measure a network on one backend, and return the log.

    Parameters
    ----------
    backend, subject
        The backend, and the network to measure.
    iterations, warmup, runs
        Inferences kept in each run, at least 100; warm-up inferences; and the number of runs, each with its own load.
    threads, cores
        Number of threads, and cores to run on; by default one thread, on the last core.
    rates
        Whether to measure the machine's rates too, for the attribution.
    tick
        Called after every ten inferences.

    Notes
    -----
    Ctrl-C ends the measurement early: the log holds the samples taken so far, and ``environment["stopped"]`` says how
    many. Without any sample the exception propagates.

    Raises
    ------
    BackendMissingError
        If the backend cannot run here, or not this network.
    ArgumentError
        If a number is out of its range.
    """
    if int(checked_number("measure_backend", "iterations", iterations, count(), {})) < LEAST:
        raise ArgumentError(
            f"measure_backend(): `iterations` must be at least {LEAST}, got {iterations}. Write iterations={LEAST}"
        )
    before = int(checked_number("measure_backend", "warmup", warmup, count(), {}))
    times = int(checked_number("measure_backend", "runs", runs, count(), {}))
    reason = backend.refuses(subject)
    if reason:
        raise BackendMissingError(f"{backend.name}: {reason}")
    if isinstance(backend, SerialDevice):
        return _on_board(backend, subject, iterations, before, times, tick)
    surroundings, throttled = environment(), throttle_count()
    colds: list[Cold] = []
    samples: list[Sample] = []
    layers: list[Sample] = []
    rapl = Rapl()
    own = list(cores) if cores else ([] if threads == 1 else list(range(threads)))
    with pinned(own or None) as affinity, PerfCounters() as counters:
        how = rate_reason = layer_reason = ""
        found_rates: dict[str, Any] | None = None
        if rates:
            try:
                found_rates = {**rates_here(subject.format, threads), **_launch_costs(type(backend), subject, threads)}
            except (ModuleNotFoundError, RuntimeError) as error:
                rate_reason = f"the machine's rates cannot be measured: {error}"
        else:
            rate_reason = "not requested"
        output: tuple[float, ...] | None = None
        integers: IntegerCheck | None = None
        try:
            for run in range(times):
                load = timed(lambda: backend.setup(subject, threads))
                colds.append(Cold(run, 1e3 * load, 1e3 * backend.run_inference()))
                for _ in range(before):
                    backend.run_inference()
                _run(backend, run, iterations, counters, rapl, tick, samples)
            try:
                how, rounds = backend.layers(_LAYER_ROUNDS)
                layers = [
                    Sample(0, index, 1e3 * seconds, layer=name)
                    for index, times_ in enumerate(rounds)
                    for name, seconds in times_.items()
                ]
            except Unmeasured as why:
                layer_reason = str(why)
            output = tuple(float(value) for value in backend.output()[:64])
            integers = check_integers(backend, subject, threads)
        except KeyboardInterrupt:
            if not samples:
                raise
            surroundings["stopped"] = _stopped(len(samples), times * iterations)
            how, layers, layer_reason = "", [], surroundings["stopped"]
        facts = backend.facts()
        backend.close()
    works = subject.works()
    known = {work.name for work in works}
    extra = [name for name in dict.fromkeys(sample.layer or "" for sample in layers) if name not in known]
    works += tuple(LayerWork(name, "other", 0, 0, 0, 0) for name in extra)
    after = throttle_count()
    surroundings["throttled_during"] = None if throttled is None or after is None else after - throttled
    return Log(
        backend=backend.name, model=subject.name, format=subject.format, platform=cpu_name(),
        day=date.today().isoformat(),
        protocol={"warmup": before, "iterations": iterations, "runs": times, "threads": threads, "affinity": affinity},
        environment={**surroundings, **({"backend": facts} if facts else {})},
        works=works, colds=tuple(colds), samples=tuple(samples), layers=tuple(layers),
        rates=found_rates, rates_reason=rate_reason,
        energy={"source": None if rapl.reason else "rapl", "reason": rapl.reason or _MEAN},
        counters={"source": "perf" if counters.read_names else None, "reason": counters.reason},
        layer_times={"source": how or None, "reason": layer_reason},
        memory=_memory(works), output=output, integers=None if integers is None else integers.record,
    )  # fmt: skip


def _on_board(
    board: SerialDevice, subject: Subject, iterations: int, warmup: int, runs: int, tick: Callable[[], object]
) -> Log:
    """Measure on a device that times itself; the time of its host between commands does not count."""
    samples: list[Sample] = []
    board.setup(subject, 1)
    colds = (Cold(0, None, 1e3 * board.run_inference()),)
    malformed: list[str] = []
    how: str | None = None
    layers: list[Sample] = []
    stopped = ""
    facts, rates, reason = board.facts(), None, ""
    output: tuple[float, ...] | None = None
    works = subject.works()
    memory = _memory(works)
    try:
        for run in range(runs):
            samples += board.run_many(run, iterations, warmup)
            malformed += [f"run {run}: {words}" for words in board.malformed]
            for _ in range(iterations // 10):
                tick()
        how, layers = board.layer_samples()
        try:
            rates = board.rates()
        except Unmeasured as why:
            reason = str(why)
        output = tuple(float(value) for value in board.output()[:64])
        memory = board.memory() or memory
    except KeyboardInterrupt:
        if not samples:
            raise
        stopped = _stopped(len(samples), runs * iterations)
        how, layers = None, []
    board.close()
    return Log(
        backend=board.name, model=subject.name, format=subject.format, platform=facts.get("board", "a board"),
        day=date.today().isoformat(),
        protocol={"warmup": warmup, "iterations": iterations, "runs": runs, "threads": 1, "affinity": None},
        environment={**board.environment(), **({"stopped": stopped} if stopped else {})},
        works=works, colds=colds, samples=tuple(samples),
        layers=tuple(replace(layer, run=0) for layer in layers if layer.iteration < _LAYER_ROUNDS),
        rates=rates, rates_reason=reason, energy={"source": None, "reason": _NO_METER},
        counters={"source": facts.get("counter"), "reason": _NO_MISSES}, layer_times={"source": how, "reason": stopped},
        memory=memory, output=output, malformed=tuple(malformed),
    )  # fmt: skip


def _run(
    backend: Backend, run: int, iterations: int, counters: PerfCounters, rapl: Rapl, tick: Callable[[], object],
    samples: list[Sample],
) -> None:  # fmt: skip
    """Append the samples of one run as they are taken; counters and energy are read outside the timed section."""
    first = len(samples)
    gc.collect()
    before = None if rapl.reason else rapl.read()
    with gc_paused():
        for iteration in range(iterations):
            counted = counters.read()
            seconds = backend.run_inference()
            samples.append(Sample(run, iteration, 1e3 * seconds, None, per_run(counted, counters.read()) or None))
            if iteration % 10 == 9:
                tick()
    if before is None:
        return
    mean = rapl.spent(before, rapl.read()) / iterations  # the meter is too slow for one inference
    samples[first:] = [replace(sample, energy_mj=mean) for sample in samples[first:]]


def _stopped(taken: int, wanted: int) -> str:
    return f"stopped by Ctrl-C after {taken} of {wanted} inferences"


def _launch_costs(kind: type[Backend], subject: Subject, threads: int) -> dict[str, float]:
    """Return this backend's cost of an inference and of a layer, s, from a line through two points."""
    if "chain" not in kind.kinds:
        return {}
    few, many = (_median_of(kind(), idle_chain(length), subject.format, threads) for length in (1, _IDLE))
    launch = max((many - few) / (_IDLE - 1), 0.0)
    return {"launch_s": significant(launch, 5), "entry_s": significant(max(few - launch, 0.0), 5)}


def _median_of(backend: Backend, net: Net, format: str, threads: int) -> float:
    subject = Subject(net.name, format if format in backend.formats else "fp32", net)
    backend.setup(subject, threads)
    times = sorted(backend.run_inference() for _ in range(_IDLE_ROUNDS))
    backend.close()
    return times[len(times) // 2]


def _memory(works: Sequence[LayerWork]) -> dict[str, float] | None:
    """Return the weights, and the largest traffic of a layer, kB: the least that a device must hold."""
    if not works or not any(work.weight_bytes for work in works):
        return None
    return {
        "flash_kb": sum(work.weight_bytes for work in works) / 1e3,
        "ram_kb": max(work.read_bytes + work.write_bytes for work in works) / 1e3,
    }
