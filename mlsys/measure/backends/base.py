"""Base class of the backends, and the description of what they run."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mlsys.measure.networks.chains import Net, inputs_of
from mlsys.measure.networks.int8 import QuantizedNet, quantized

Array = np.ndarray[Any, np.dtype[Any]]


class BackendMissingError(ValueError):
    """Error of a backend that cannot run here, or not this network, with the reason."""


class Unmeasured(Exception):
    """Error of a quantity that this backend or machine does not report, with the reason."""


@dataclass(frozen=True)
class Subject:
    """The network to measure.

    Attributes
    ----------
    name, format
        Name of the network, and its number format: ``fp32`` or ``int8``.
    net
        A chain described in this package; every backend runs it.
    module, inputs
        A PyTorch module in evaluation mode and its inputs, instead of a chain.
    file
        An ONNX or LiteRT file, instead of a chain.
    """

    name: str
    format: str = "fp32"
    net: Net | None = None
    module: Any = None
    inputs: Any = None
    file: Path | None = None

    @property
    def kind(self) -> str:
        """``chain``, ``module``, ``onnx`` or ``tflite``."""
        if self.net is not None:
            return "chain"
        return "module" if self.file is None else self.file.suffix.lstrip(".")

    @property
    def chain(self) -> Net | QuantizedNet:
        """The chain in the requested format."""
        assert self.net is not None
        return quantized(self.net) if self.format == "int8" else self.net

    @property
    def batch(self) -> Array:
        """The default input of a chain: ``(1, height, width, channels)``."""
        assert self.net is not None
        return inputs_of(self.net)


class Backend(ABC):
    """Interface of a way to run a network: create, set up, run, read, close.

    A backend times itself: on a CPU by the clock around a call, on a device by the device's own counter.
    """

    name: ClassVar[str]
    package: ClassVar[str] = ""
    extra: ClassVar[str] = "explain"
    kinds: ClassVar[tuple[str, ...]] = ("chain",)
    formats: ClassVar[tuple[str, ...]] = ("fp32",)
    own_clock: ClassVar[bool] = False
    channels_last: ClassVar[bool] = False  # layout of a chain's output

    def refuses(self, subject: Subject) -> str:
        """Return why this backend cannot run a network, in words; empty if it can."""
        from importlib.util import find_spec

        if self.package and find_spec(self.package.split(".")[0]) is None:
            return f"the package {self.package.split('.')[0]} is not installed: pip install 'mlsys[{self.extra}]'"
        if subject.kind not in self.kinds:
            return f"{self.name} runs {', '.join(self.kinds)}, but this is a {subject.kind}"
        if subject.format not in self.formats and subject.kind == "chain":
            return f"{self.name} runs {', '.join(self.formats)} here, not {subject.format}"
        return ""

    def twin(self) -> "Backend":
        """Return a fresh backend with the same settings."""
        return type(self)()

    @abstractmethod
    def setup(self, subject: Subject, threads: int) -> None:
        """Load and prepare the network; its duration is the load time of a cold start."""

    def _run(self) -> None:
        """Run once."""
        raise NotImplementedError

    def run_inference(self) -> float:
        """Run one inference; return its time, s."""
        return timed(self._run)

    @abstractmethod
    def output(self) -> Array:
        """Return the output of the last inference, in real numbers, flat."""

    def layers(self, iterations: int) -> tuple[str, list[dict[str, float]]]:
        """Return how layers were timed, and the seconds of each layer for each iteration.

        Raises
        ------
        Unmeasured
            If this backend cannot time layers.
        """
        raise Unmeasured(f"{self.name} does not report layer times")

    def facts(self) -> dict[str, Any]:
        """Return the backend's entry for the log: version, settings, clock of the device."""
        return {}

    def close(self) -> None:  # noqa: B027 - most backends have nothing to release
        """Release resources."""


def timed(call: Callable[[], object]) -> float:
    """Return the time of one call, s."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def stepped(
    make: Callable[[], Backend], subject: Subject, threads: int, iterations: int
) -> tuple[str, list[dict[str, float]]]:
    """Time every layer of a chain as a separate network, warm, interleaved with the others.

    Parameters
    ----------
    make
        Function that returns a new backend for each layer.
    subject
        A chain.
    threads, iterations
        As for the whole network.
    """
    assert subject.net is not None
    parts: dict[str, Backend] = {}
    whole = subject.chain
    for index, layer in enumerate(subject.net.layers):
        parts[layer.name] = backend = make()
        backend.setup(ChainSubject(whole.only(index), subject.format), threads)
        for _ in range(5):
            backend.run_inference()
    rounds = [{name: part.run_inference() for name, part in parts.items()} for _ in range(iterations)]
    for part in parts.values():
        part.close()
    return "each layer as a separate network", rounds


class ChainSubject(Subject):
    """A chain with its own grids, such as one layer of a larger network.

    Parameters
    ----------
    chain
        The network.
    format
        ``fp32`` or ``int8``.
    batch
        Its only input; by default the seeded input of :class:`Subject`.
    """

    def __init__(self, chain: Net | QuantizedNet, format: str, batch: Array | None = None) -> None:
        plain = chain.net if isinstance(chain, QuantizedNet) else chain
        super().__init__(plain.name, format, plain)
        object.__setattr__(self, "_chain", chain)
        object.__setattr__(self, "_batch", batch)

    @property
    def chain(self) -> Net | QuantizedNet:
        """The given chain."""
        net: Net | QuantizedNet = self.__dict__["_chain"]
        return net

    @property
    def batch(self) -> Array:
        """The given input, or the seeded one."""
        own: Array | None = self.__dict__["_batch"]
        return super().batch if own is None else own


def flat(values: object) -> Array:
    """Return an output as one row of real numbers."""
    return np.asarray(values, dtype=np.float64).ravel()
