"""Configuration of the edge optimiser, read from YAML; all errors are reported together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from mlsys.edge.clock import Clock, PowerPoint, split_energy
from mlsys.edge.schema import FORMATS, faults
from mlsys.errors import EdgeFileError
from mlsys.faults import dotted
from mlsys.hardware import Hardware
from mlsys.hardware.document import read_faultless
from mlsys.inputs import shipped_text, yaml_of
from mlsys.models.energy.boards import WorkPower, work_power
from mlsys.units import Q_, Quantity


class EdgeVariant(NamedTuple):
    """One variant of a network: pruning method and level, and number format."""

    method: str
    level: float
    precision: str

    def __str__(self) -> str:
        cut = "as trained" if not self.level else f"{self.method} {self.level:.0%}"
        return f"{cut}, {self.precision}"


def example_config() -> dict[str, Any]:
    """Return an example: scikit-learn's digits, on the small network of the exercises."""
    config: dict[str, Any] = yaml_of(shipped_text("mlsys.edge", "example.yaml"))
    return config


@dataclass(frozen=True)
class Config:
    """Configuration of a run.

    Attributes
    ----------
    data
        Contents of a configuration file; all properties are read from it.

    Raises
    ------
    EdgeFileError
        If anything is wrong; every error is listed, with its place.

    Examples
    --------
    >>> config = Config(example_config())
    >>> len(config.variants), len(config.clocks), str(config.active_budget)
    (30, 2, '0.1 MB')
    >>> Config({"network": "small-cnn", "precisions": ["int4"]})
    Traceback (most recent call last):
        ...
    mlsys.errors.EdgeFileError: precisions.0: must be one of fp32, fp16, bf16, int8-dynamic, int8-static, got 'int4'.
    """

    data: Mapping[str, Any] = field(repr=False)

    def __post_init__(self) -> None:
        problems = faults(self.data)
        if problems:
            raise EdgeFileError("\n".join(f"{dotted(where)}{text}" for where, text in problems))

    @classmethod
    def load(cls, path: str | Path) -> Config:
        """Read a configuration from a YAML file (JSON is YAML, too).

        Raises
        ------
        EdgeFileError
            If the file is unreadable or invalid; every error is listed with its line and place.
        """
        return cls(read_faultless(Path(path), "configuration", EdgeFileError, faults))

    def _of(self, group: str, key: str, usual: Any) -> Any:
        return (self.data.get(group) or {}).get(key, usual)

    @property
    def name(self) -> str:
        """Title of the report."""
        return str(self.data.get("name", self.network))

    @property
    def network(self) -> str:
        """Name or factory of the network."""
        return str(self.data["network"])

    @property
    def source(self) -> str:
        """Name or loader of the data."""
        return str(self.data.get("data", "digits"))

    @property
    def seed(self) -> int:
        """Seed of all random numbers."""
        return int(self.data.get("seed", 0))

    @property
    def training(self) -> dict[str, Any]:
        """Epochs, epochs after pruning, batch and learning rate."""
        usual = {"epochs": 8, "finetune_epochs": 2, "batch": 64, "learning_rate": 0.002}
        return {**usual, **(self.data.get("training") or {})}

    @property
    def batch(self) -> int:
        """Images of one inference."""
        return int(self.data.get("batch", 1))

    @cached_property
    def variants(self) -> tuple[EdgeVariant, ...]:
        """Variants: the trained network first, then methods and levels in order, formats innermost."""
        pruning = self.data.get("pruning") or {"structured": [0]}
        cuts = [
            (method, float(level))
            for method in ("structured", "unstructured")
            for level in sorted(pruning.get(method, ()))
        ]
        whole = [("none", 0.0)] if any(not level for _, level in cuts) else []
        return tuple(
            EdgeVariant(method, level, precision)
            for method, level in (*whole, *(cut for cut in cuts if cut[1]))
            for precision in self.precisions
        )

    @property
    def precisions(self) -> tuple[str, ...]:
        """Number formats."""
        return tuple(self.data.get("precisions", FORMATS))

    @cached_property
    def clocks(self) -> tuple[Clock, ...]:
        """Clocks relative to the reference clock, with their voltages; a bare number keeps the voltage."""
        return tuple(
            Clock(entry["scale"], entry["voltage"]) if isinstance(entry, Mapping) else Clock(entry)
            for entry in self.data.get("clocks", (1.0,))
        )

    @property
    def device(self) -> str | None:
        """Device whose latency is modelled; None if it is measured here."""
        device: str | None = self._of("latency", "device", None)
        return device

    @property
    def samples(self) -> int:
        """Inferences per timing window."""
        return int(self._of("latency", "samples", 200))

    @property
    def warmup(self) -> int:
        """Warm-up inferences before each window."""
        return int(self._of("latency", "warmup", 10))

    @property
    def threads(self) -> int:
        """PyTorch threads during timing."""
        return int(self._of("latency", "threads", 1))

    @property
    def repeats(self) -> int:
        """Number of timing windows."""
        return int(self.data.get("benchmark_repeats", 5))

    @property
    def backend(self) -> str:
        """PyTorch's quantisation backend for INT8."""
        return str(self.data.get("quantization_backend", "fbgemm"))

    @property
    def bandwidth(self) -> Quantity:
        """Main-memory bandwidth: as given, that of the modelled device, or a typical one."""
        given = self.data.get("memory_bandwidth_gb_s")
        if given is None and self.device is not None:
            of_device: Quantity = Hardware[self.device].memory_bw.to("GB/s")
            return of_device
        return Q_(12.8 if given is None else float(given), "GB/s")

    @cached_property
    def _at_work(self) -> WorkPower | None:
        """Power of the device, if its latency is modelled and no power is given."""
        return work_power(Hardware[self.device]) if self.device is not None and not self.data.get("power") else None

    @property
    def power_rests_on(self) -> str:
        """Source of static and dynamic power, in words."""
        if self._at_work is not None:
            return f"{self.device}: {self._at_work.why}"
        if self._of("power", "measured", None) is not None:
            return "split from measurements at several clocks"
        return "as given" if self.data.get("power") else "not given: 0.5 W static and 1.5 W dynamic assumed"

    @cached_property
    def _split(self) -> tuple[float, float] | None:
        if self._at_work is not None:
            return self._at_work.static.m_as("W"), self._at_work.dynamic.m_as("W")
        points = self._of("power", "measured", None)
        if points is None:
            return None
        measured = [
            PowerPoint(
                Q_(float(point["clock_mhz"]), "MHz"),
                Q_(float(point["time_ms"]), "ms"),
                Q_(float(point["energy_mj"]), "mJ"),
                float(point.get("voltage", 1.0)),
            )
            for point in points
        ]
        parts = split_energy(measured)
        fastest = max(measured, key=lambda point: point.clock.m_as("Hz"))
        return parts.static.m_as("W"), parts.dynamic.m_as("J") / fastest.time.m_as("s")

    @property
    def static_power(self) -> Quantity:
        """Power that does not depend on the clock."""
        return Q_(self._split[0] if self._split else float(self._of("power", "static_w", 0.5)), "W")

    def dynamic_power(self, precision: str) -> Quantity:
        """Power that depends on the clock, at the reference clock and voltage."""
        if self._split:
            return Q_(self._split[1], "W")
        given = self._of("power", "dynamic_w", 1.5)
        return Q_(float(given[precision] if isinstance(given, Mapping) else given), "W")

    @property
    def reserve(self) -> Quantity:
        """Memory reserved for other uses."""
        return Q_(float(self.data.get("reserve_mb", 0.0)), "MB")

    @property
    def budgets(self) -> tuple[Quantity, ...]:
        """Memory budgets that are reported."""
        return tuple(Q_(float(budget), "MB") for budget in self.data.get("memory_budgets_mb", (0.5, 1.0, 2.0, 5.0)))

    @property
    def active_budget(self) -> Quantity:
        """The memory budget that a variant must meet."""
        return Q_(float(self.data.get("active_memory_budget_mb", 1.0)), "MB")

    @cached_property
    def active_bytes(self) -> float:
        """The active budget in bytes, rounded to whole bytes, so that using it exactly is allowed."""
        exact = float(self.data.get("active_memory_budget_mb", 1.0)) * 1e6
        return float(round(exact)) if abs(exact - round(exact)) < 1e-3 else exact

    def advice(self, key: str) -> float:
        """Return the threshold of a piece of advice in the report."""
        usual = {"least_sram_share": 0.6, "most_sram_share": 0.8, "least_accepted": 0.5}
        return float(self._of("advice", key, usual[key]))

    def limit(self, key: str) -> float | None:
        """Return another limit that a variant must meet, in the unit of its name; None if there is none."""
        value = self._of("limits", key, None)
        return None if value is None else float(value)
