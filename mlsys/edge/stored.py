"""The run shipped with the package, with its machine, as shown by the page and the lab."""

import gzip
import json
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from mlsys.edge.config import Config
from mlsys.edge.evaluate import VariantMeasurement
from mlsys.edge.points import EdgePoint, points_of
from mlsys.files import write_bytes
from mlsys.formatting import significant

_FILE, _DIGITS = "digits.json.gz", 4


@dataclass(frozen=True)
class StoredRun:
    """A finished run: configuration, results and machine.

    Attributes
    ----------
    config, measured, machine
        As for :func:`mlsys.edge.run.run`; samples in four significant digits.
    """

    config: Config
    measured: tuple[VariantMeasurement, ...]
    machine: str

    def points(self, **changes: object) -> tuple[EdgePoint, ...]:
        """Return every variant at every clock; ``changes`` to the configuration need no new measurement.

        Parameters
        ----------
        changes
            Keys of the configuration that only re-evaluate the measurements: budgets, limits, clocks, power, reserve.
        """
        return points_of(Config({**self.config.data, **changes}), self.measured)


@lru_cache(maxsize=1)
def stored_run() -> StoredRun:
    """Return the shipped run of the example configuration.

    Examples
    --------
    >>> stored = stored_run()
    >>> len(stored.measured), stored.config.network
    (30, 'small-cnn')
    """
    raw = files("mlsys.edge").joinpath(f"data/{_FILE}").read_bytes()
    kept = json.loads(gzip.decompress(raw))
    return StoredRun(
        Config(kept["config"]), tuple(VariantMeasurement(**record) for record in kept["measured"]), kept["machine"]
    )


def packed(run: StoredRun) -> bytes:
    """Return the contents of the file read by :func:`stored_run`."""
    rounded = [
        replace(measurement, samples_ms=[significant(time, _DIGITS) for time in measurement.samples_ms])
        for measurement in run.measured
    ]
    kept = {"config": run.config.data, "machine": run.machine, "measured": [record.record() for record in rounded]}
    return gzip.compress(json.dumps(kept, separators=(",", ":")).encode(), mtime=0)


def main(config: str, folder: str) -> None:
    """Store a finished run in the package: ``python -m mlsys.edge.stored digits.yaml digits-results``."""
    from mlsys.edge.run import machine_of, measured_of

    read = Config.load(config)
    run = StoredRun(read, measured_of(read, folder), machine_of(Path(folder)))
    write_bytes(Path(__file__).parent / "data" / _FILE, packed(run))


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
