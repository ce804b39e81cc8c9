"""The path of ``measure --on cuda``, walked where no GPU is: a clock that only calls and waits move."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from mlsys.calibration.rows import read_rows
from mlsys.cli import main
from mlsys.hardware import Hardware
from mlsys.measure import ten_measurements as ten
from mlsys.measure import timing
from mlsys.measure.errors import MeasureError


class Gpu:
    """A machine that queues: a call returns after ``host`` seconds, its kernels take ``work``, a wait ends with them.

    It says nothing of PyTorch's own part: that its kernels queue so, and that its waits wait, is for a GPU to show.
    """

    def __init__(self, host: float, work: float) -> None:
        self.host, self.work = host, work
        self.now = self.ends = 0.0
        self.calls = self.waits = 0

    def clock(self) -> float:
        return self.now

    def call(self) -> None:
        self.calls += 1
        self.now += self.host
        self.ends = max(self.ends, self.now) + self.work

    def synchronize(self) -> None:
        self.waits += 1
        self.now = max(self.now, self.ends)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Gpu]:
    def made(host: float = 1e-4, work: float = 3e-3, fits: Callable[[str], bool] = lambda name: True) -> Gpu:
        device = Gpu(host, work)
        measured = timing.measure
        monkeypatch.setattr(ten, "measure", lambda calls, **words: measured(calls, **words | {"clock": device.clock}))
        monkeypatch.setattr(ten.time, "perf_counter", device.clock)
        for name, answer in {
            "is_available": lambda: True,
            "synchronize": device.synchronize,
            "empty_cache": lambda: None,
            "clock_rate": lambda: 1410,
            "get_device_name": lambda: "NVIDIA A100-SXM4-80GB",
            "get_device_capability": lambda: (8, 0),
        }.items():
            monkeypatch.setattr(torch.cuda, name, answer)

        def placed(what: Any, *_: object) -> Callable[[], object]:
            if not fits(str(what)):
                raise torch.cuda.OutOfMemoryError("CUDA out of memory")
            return device.call

        tokens = torch.zeros(8, 128, dtype=torch.int64)
        monkeypatch.setattr(
            "mlsys.measure.networks.modules.ready_model",
            lambda name, batch: (name, tokens if "bert" in name else torch.zeros(batch, 3, 4, 4), name),
        )
        monkeypatch.setattr(ten, "_network", placed)
        monkeypatch.setattr(ten, "_addition", placed)
        return device

    return made


def _rows(precision: Any = "fp16") -> list[dict[str, str]]:
    return ten.ten_measurements("A100_80GB", "datacenter GPU", "cuda", precision)


@pytest.mark.parametrize(("host", "work"), [(1e-4, 3e-3), (1e-4, 2e-5), (2e-3, 1.5)])
def test_what_a_gpu_takes_is_told_whether_host_or_kernels_hold_it(
    gpu: Callable[..., Gpu], host: float, work: float
) -> None:
    """Steady state of a queue is the slower of the two; the last kernels of a sample, and its first call, stand out."""
    gpu(host, work)
    times = [float(row["value"]) / 1e3 for row in _rows() if row["metric"] == "latency"]
    assert len(times) >= 6 or work > 1
    assert times == pytest.approx([max(host, work)] * len(times), rel=0.06 if work < 1 else 0.01)


def test_every_sample_is_waited_for_and_long_calls_are_not_made_twenty_at_a_time(gpu: Callable[..., Gpu]) -> None:
    quick = gpu(1e-4, 1e-3)
    _rows()
    assert quick.calls / quick.waits == pytest.approx(20, rel=0.2)
    slow = gpu(1e-4, 1.5)
    assert 1 <= len(_rows()) < ten.count_measurements("cuda"), "three minutes are up"
    assert slow.calls / slow.waits == pytest.approx(1, rel=0.01)
    assert slow.now < 180


def test_what_does_not_fit_the_memory_is_left_out(gpu: Callable[..., Gpu]) -> None:
    gpu(fits=lambda name: name not in ("vgg11", str(1 << 27)))
    rows = _rows()
    assert len(rows) == ten.count_measurements("cuda") - 2 and "vgg11" not in {row["model"] for row in rows}
    gpu(fits=lambda name: False)
    with pytest.raises(MeasureError, match="none of the measurements fits"):
        _rows()


def test_the_bandwidth_counts_two_loads_and_a_store(gpu: Callable[..., Gpu]) -> None:
    gpu(1e-5, 2e-3)
    last = _rows("fp32")[-1]
    assert last["unit"] == "GB/s" and "2 loads + 1 store" in last["seq_or_shape"]
    assert float(last["value"]) == pytest.approx(3 * (1 << 27) * 4 / 2e-3 / 1e9, rel=0.02)


def test_rows_state_clock_machine_and_tf32(gpu: Callable[..., Gpu], monkeypatch: pytest.MonkeyPatch) -> None:
    gpu()
    row = _rows("fp32")[0]
    assert row["clock_mhz"] == "1410" and row["note"].endswith("NVIDIA A100-SXM4-80GB")
    assert (row["tf32"], _rows("fp16")[0]["tf32"]) == ("convolutions", "none")

    class NVMLError(Exception):
        pass

    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(NVMLError=NVMLError))

    def refused() -> int:
        raise NVMLError("Not Supported")

    monkeypatch.setattr(torch.cuda, "clock_rate", refused)
    assert _rows()[0]["clock_mhz"] == ""


@pytest.mark.parametrize(("device", "doubted"), [("A100_80GB", False), ("T4", True)])
def test_another_gpu_than_the_one_named_is_told(
    gpu: Callable[..., Gpu], tmp_path: Path, device: str, doubted: bool
) -> None:
    gpu()
    out = tmp_path / "mine.csv"
    result = CliRunner().invoke(main, ["measure", "--device", device, "--on", "cuda", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert ("is --device right?" in result.output) == doubted
    rows = read_rows(out)
    assert len(rows) == ten.count_measurements("cuda") and {row.device for row in rows} == {Hardware[device].id}
    assert all(re.search(r"after \d+ warm-up calls", row.note) for row in rows)
