"""Evaluation of one variant: building, accuracy, measured or estimated time, and memory."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from mlsys.edge.config import Config, EdgeVariant
from mlsys.edge.task import EdgeTask, accuracy, fresh_network, load_task, train
from mlsys.edge.variants import check_backend, in_format, input_dtype, pruned, stored_sizes
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.measure.machine import with_threads
from mlsys.measure.timing import measure
from mlsys.units import Q_

if TYPE_CHECKING:
    import torch

    from mlsys.planner.memory import MemoryPlan
    from mlsys.workloads.workload import Workload

_STORED = {"int8-static": "int8", "int8-dynamic": "fp32"}


@dataclass(frozen=True)
class VariantMeasurement:
    """Results of one variant, before any clock is chosen; plain data for a file.

    Attributes
    ----------
    method, level, precision
        The variant.
    accuracy
        Accuracy on the test samples, 0 to 1; None if building failed.
    samples_ms
        Raw times of single inferences; empty if modelled.
    core_ms, memory_ms
        Modelled time that scales with the clock, and time that does not; None if measured.
    weight_bytes, sparse_bytes, buffer_bytes
        Weights and biases as stored in memory, and without zeros; statistics and counters.
    activation_bytes, moved_bytes
        Planned block of activations and inputs, and bytes moved by fused operators.
    macs, parameters, nonzero
        Multiply-accumulates of one inference, parameters, and those that are not zero.
    failed
        Reason of failure; empty on success.
    """

    method: str
    level: float
    precision: str
    accuracy: float | None = None
    samples_ms: list[float] = field(default_factory=list)
    core_ms: float | None = None
    memory_ms: float | None = None
    weight_bytes: int = 0
    sparse_bytes: int = 0
    buffer_bytes: int = 0
    activation_bytes: int = 0
    moved_bytes: int = 0
    macs: int = 0
    parameters: int = 0
    nonzero: int = 0
    failed: str = ""

    @property
    def variant(self) -> EdgeVariant:
        """The variant."""
        return EdgeVariant(self.method, self.level, self.precision)

    def record(self) -> dict[str, Any]:
        """Return the results as plain data."""
        return asdict(self)


class Workbench:
    """Builder of the variants of a configuration; shared parts are built once.

    Parameters
    ----------
    config
        Configuration to build.

    Raises
    ------
    ArgumentError
        If the network, the data, or kernels for a format are missing.
    """

    def __init__(self, config: Config) -> None:
        check_backend(config.backend, config.precisions)
        self.config = config
        self._cut: dict[tuple[str, float], torch.nn.Module] = {}
        self._captured: dict[tuple[Any, ...], Workload] = {}

    @functools.cached_property
    def task(self) -> EdgeTask:
        """The data."""
        return load_task(self.config.source, self.config.seed)

    @functools.cached_property
    def trained(self) -> torch.nn.Module:
        """The trained network; a stored state can be loaded into it."""
        module = self.fresh()
        plan = self.config.training
        train(
            module,
            self.task,
            epochs=plan["epochs"],
            batch=plan["batch"],
            learning_rate=plan["learning_rate"],
            seed=self.config.seed,
        )
        return module

    def fresh(self) -> torch.nn.Module:
        """Return the untrained network, checked to accept the data.

        Raises
        ------
        ArgumentError
            If it does not return a score for each class.
        """
        import torch

        module = fresh_network(self.config.network, self.config.seed)
        try:
            with torch.no_grad():
                scores = module(self.task.test_x[:2])
        except Exception as error:  # a user's network may raise anything
            raise ArgumentError(
                f"{self.config.network} does not accept the data {self.task.name}, whose samples have shape "
                f"{tuple(self.task.test_x.shape[1:])}: {str(error).splitlines()[0]}"
            ) from error
        classes = int(self.task.train_y.max()) + 1
        if getattr(scores, "ndim", 0) != 2 or scores.shape[1] < classes:
            raise ArgumentError(
                f"{self.config.network} must return a score for each of {classes} classes, got shape "
                f"{tuple(getattr(scores, 'shape', ()))} for 2 samples of {self.task.name}"
            )
        return module

    def cut(self, variant: EdgeVariant) -> torch.nn.Module:
        """Return the network in FP32, pruned as in the variant."""
        key = (variant.method, variant.level)
        if key not in self._cut:
            config = self.config
            self._cut[key] = pruned(self.trained, self.task, variant, training=config.training, seed=config.seed)
        return self._cut[key]

    def workload(self, variant: EdgeVariant) -> Workload:
        """Return the pruned network as captured, in FP32, at the batch of one inference."""
        from mlsys.workloads import Workload

        module = self.cut(variant)
        shapes = tuple(tuple(parameter.shape) for parameter in module.parameters())
        if shapes not in self._captured:
            first = self.task.test_x[:1]
            example = first.expand(self.config.batch, *first.shape[1:]).contiguous()
            self._captured[shapes] = Workload.from_torch(module, example, name=self.config.network)
        return self._captured[shapes]

    def measure(self, variant: EdgeVariant) -> VariantMeasurement:
        """Return all results of one variant.

        If it cannot be built here, or not estimated on the device, ``failed`` holds the reason.
        """
        try:
            made = in_format(self.cut(variant), self.task, variant.precision, self.config.backend)
            dtype = input_dtype(variant.precision)
            share = accuracy(made, self.task, dtype)
            times, core, memory = self._times(variant, made, dtype)
            sizes, work = stored_sizes(made), self.workload(variant)
            stored = work.stored_as(_STORED.get(variant.precision, variant.precision))
            saved = stored.weight_bytes.m_as("byte") - sizes.dense
            return VariantMeasurement(
                *variant,
                accuracy=share,
                samples_ms=times,
                core_ms=core,
                memory_ms=memory,
                weight_bytes=sizes.dense,
                sparse_bytes=sizes.sparse,
                buffer_bytes=sizes.buffers,
                activation_bytes=int(_plan(stored).peak.m_as("byte")),
                moved_bytes=_moved(stored) - int(saved),
                macs=int(work.macs.m_as("MAC")),
                parameters=sizes.parameters,
                nonzero=sizes.nonzero,
            )
        except (ArgumentError, UnknownNameError, RuntimeError, NotImplementedError) as error:
            return VariantMeasurement(*variant, failed=str(error).splitlines()[0][:300])

    def _times(
        self, variant: EdgeVariant, made: torch.nn.Module, dtype: torch.dtype | None
    ) -> tuple[list[float], float | None, float | None]:
        config = self.config
        if config.device is not None:
            core, memory = modelled_times(config.device, self.workload(variant), variant.precision, config.batch)
            return [], core, memory
        import torch

        first = self.task.test_x[:1].to(dtype)
        inputs = first.expand(config.batch, *first.shape[1:]).contiguous()
        with with_threads(config.threads), torch.inference_mode():
            # no minimum duration: each sample is one call, never the mean of several
            (timing,) = measure(
                {"run": lambda: made(inputs)}, repeats=config.samples * config.repeats, window=config.samples,
                warmup=max(config.warmup, 1), shortest=Q_(1.0, "ns"),
            )  # fmt: skip
        return [1e3 * seconds for seconds in timing.samples], None, None


def base_workload(config: Config) -> Workload:
    """Return the unpruned network, captured at the batch of one inference."""
    from mlsys.workloads import Workload

    bench = Workbench(config)
    module, first = bench.fresh(), bench.task.test_x[:1]
    example = first.expand(config.batch, *first.shape[1:]).contiguous()
    return Workload.from_torch(module, example, name=config.network)


def _plan(work: Workload) -> MemoryPlan:
    from mlsys.planner.memory import plan_memory

    return plan_memory(work, in_place=True, inputs=True)


def _moved(work: Workload) -> int:
    from mlsys.mapping.fusion import fuse

    return int(fuse(work).data.m_as("byte"))


def modelled_times(device: str, work: Workload, precision: str, batch: int = 1) -> tuple[float, float]:
    """Return the time on a device that scales with its clock, and the memory time, ms.

    Parameters
    ----------
    device
        Name in the catalogue.
    work
        A network captured in FP32.
    precision
        One of :data:`mlsys.edge.schema.FORMATS`; in dynamic INT8 only matrix products run in 8 bits.
    batch
        Samples of one inference.

    Raises
    ------
    UnknownNameError
        If the device has no rate in the format.
    """
    from mlsys.hardware import Hardware
    from mlsys.models.analysis import analyze

    twin = Hardware[device]
    wide = None if precision == "int8-static" else precision if precision != "int8-dynamic" else "fp32"
    narrow = "int8" if precision.startswith("int8") else None
    analyses = {
        form: analyze(twin, work, work, precision=form, samples=batch) for form in dict.fromkeys((wide, narrow)) if form
    }
    core = memory = 0.0
    for index, operator in enumerate(work.operators):
        form = narrow if wide is None or (narrow and operator.kind == "gemm") else wide
        assert form is not None
        traced = analyses[form].operators[index]
        time = float(traced.estimate.m_as("ms"))
        core, memory = (core, memory + time) if traced.limited_by == "memory" else (core + time, memory)
    return core, memory
