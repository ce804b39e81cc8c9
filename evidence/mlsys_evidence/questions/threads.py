"""A processor on which some threads work: cores, their clock, what they draw from memory, and their joins."""

from mlsys.models.estimate import Snapshot
from mlsys.models.estimate.thread_scaling import sharing_layers
from mlsys.provenance import as_recorded
from mlsys_evidence.typed_rows import TypedRow


def threads_of(row: TypedRow, cores: float = 0.0) -> int:
    """Return how many threads of a CPU a row has; 0 if it does not say.

    Parameters
    ----------
    row
        Which may have the number, or a program that takes all cores by default.
    cores
        Of such a program; 0 where that does not matter.
    """
    if "threads" in row.numbers:
        return row.number("threads")
    return max(1, round(cores)) if cores and row.has("threads of all cores") else 0


def instances_of(row: TypedRow) -> tuple[int, int]:
    """Return how many programs of their own share a CPU, and the cores of each; (1, 0) for one of all.

    Each has weights and samples of its own, and a published rate is that of all together.
    """
    return int(row.get("instances", 1)), int(row.get("cores_of_an_instance"))


def instance(engine: Snapshot, number: int, cores: int, samples: float = 1.0) -> Snapshot:
    """Return what one of several equal programs has of a processor on which all of them are at work.

    Parameters
    ----------
    engine
        All cores, at the clock of all.
    number
        Of programs, which divide bandwidth and cache among them.
    cores
        Of each, with a thread on each.
    samples
        That one works on side by side.
    """
    part = engine.share(1 / number, 1 / number).changed(cache=lambda: engine.cache / number)
    return sharing_layers(part, cores, samples)


def rented_share(row: TypedRow, cores: float) -> float:
    """Return the part of a CPU that a rented machine has, 1 where the row names none."""
    return min(1.0, row.get("rented_cores", cores) / cores)


def at_clock(engine: Snapshot, clock: float, *, memory: bool = False) -> Snapshot:
    """Return a machine at another clock than the one on record.

    Parameters
    ----------
    engine
        Whose rates go with the clock that they are on record at.
    clock
        Hz.
    memory
        Whether its main memory lies on the chip and goes with the clock, too, as a microcontroller's does.
    """
    with as_recorded():
        ratio = clock / engine.clock
    other = engine.changed(
        matmul=lambda: engine.matmul * ratio,
        vector=lambda: engine.vector * ratio,
        cache_bandwidth=lambda: engine.cache_bandwidth * ratio,
        clock=clock,
    )
    return other.changed(bandwidth=lambda: engine.bandwidth * ratio) if memory else other
