"""Logs that tests read."""

from dataclasses import replace

import pytest

from mlsys.measure import Cold, LayerWork, Log, Sample


def make_log(latencies=None, *, runs=3, backend="here", works=None, layers=(), **changes) -> Log:
    """Return a small log whose samples are given run by run."""
    values = latencies if latencies is not None else [[1.0, 1.1, 0.9, 1.0]] * runs
    log = Log(
        backend=backend, model="net", format="fp32", platform="a machine", day="2026-11-22",
        protocol={"warmup": 10, "iterations": len(values[0]), "runs": len(values), "threads": 1, "affinity": [0]},
        environment={"cores": 2, "load": 0.1},
        works=works or (LayerWork("a", "conv", 1000, 10, 20, 30), LayerWork("b", "dense", 500, 5, 10, 15)),
        colds=(Cold(0, 5.0, 2.0),),
        samples=tuple(Sample(run, i, value) for run, row in enumerate(values) for i, value in enumerate(row)),
        layers=tuple(layers),
        rates={"ops_per_s": 1e7, "bytes_per_s": 1e6, "launch_s": 1e-5, "how": "by hand"},
        layer_times={"source": "by hand", "reason": ""},
    )  # fmt: skip
    return replace(log, **changes) if changes else log


@pytest.fixture
def log() -> Log:
    return make_log(layers=(Sample(0, 0, 0.5, layer="a"), Sample(0, 0, 0.3, layer="b")))
