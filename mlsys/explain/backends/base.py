"""What every backend offers, and what it is given."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mlsys.explain.int8 import QuantizedNet, quantized
from mlsys.explain.nets import Net, inputs_of

Array = np.ndarray[Any, np.dtype[Any]]


class BackendMissingError(ValueError):
    """A backend cannot run here, or not this network; the message is the reason."""


class Unmeasured(Exception):
    """Something that this backend or machine does not tell; the message is the reason."""


@dataclass(frozen=True)
class Subject:
    """What is measured.

    Attributes
    ----------
    name, format
        Of the network, and its numbers: ``fp32`` or ``int8``.
    net
        A chain that the package describes itself; every backend takes it.
    module, inputs
        A PyTorch module in evaluation mode and its inputs, instead.
    file
        An ONNX or LiteRT file, instead.
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
        """The chain in the format asked for."""
        assert self.net is not None
        return quantized(self.net) if self.format == "int8" else self.net

    @property
    def batch(self) -> Array:
        """The one input of a chain: ``(1, height, width, channels)``."""
        assert self.net is not None
        return inputs_of(self.net)


class Backend(ABC):
    """One way to run a network: made, set up, run, read, closed.

    A backend times itself: on a processor by the clock around a call, on a device by the device's own counter.
    """

    name: ClassVar[str]
    package: ClassVar[str] = ""
    extra: ClassVar[str] = "explain"
    kinds: ClassVar[tuple[str, ...]] = ("chain",)
    formats: ClassVar[tuple[str, ...]] = ("fp32",)
    own_clock: ClassVar[bool] = False
    channels_last: ClassVar[bool] = False  # of the output of a chain

    def refuses(self, subject: Subject) -> str:
        """Return why this backend cannot run a network, in words; empty where it can."""
        from importlib.util import find_spec

        if self.package and find_spec(self.package.split(".")[0]) is None:
            return f"the package {self.package.split('.')[0]} is not installed: pip install 'mlsys[{self.extra}]'"
        if subject.kind not in self.kinds:
            return f"{self.name} takes {', '.join(self.kinds)}, and this is a {subject.kind}"
        if subject.format not in self.formats and subject.kind == "chain":
            return f"{self.name} runs {', '.join(self.formats)} here, not {subject.format}"
        return ""

    def twin(self) -> "Backend":
        """Return a fresh backend with the same settings."""
        return type(self)()

    @abstractmethod
    def setup(self, subject: Subject, threads: int) -> None:
        """Load and prepare the network; the time it takes is the load of a cold start."""

    def _run(self) -> None:
        """Run once."""
        raise NotImplementedError

    def run_inference(self) -> float:
        """Run once; return how long it took, s."""
        return timed(self._run)

    @abstractmethod
    def output(self) -> Array:
        """Return what the last inference answered, in real numbers, flat."""

    def layers(self, iterations: int) -> tuple[str, list[dict[str, float]]]:
        """Return how layers were timed, and for each iteration the seconds of each layer.

        Raises
        ------
        Unmeasured
            If this backend cannot tell.
        """
        raise Unmeasured(f"{self.name} does not tell the times of layers")

    def read_counters(self) -> dict[str, float]:
        """Return counts of the device up to now; none by default: the kernel's counters are read around a call."""
        return {}

    def measure_energy(self, iterations: int) -> float:
        """Return the energy of one inference by the backend's own sensor, mJ.

        Raises
        ------
        Unmeasured
            If there is none.
        """
        raise Unmeasured("no sensor is attached")

    def facts(self) -> dict[str, Any]:
        """Return what the log should say of this backend: version, settings, clock of the device."""
        return {}

    def close(self) -> None:  # noqa: B027 - most have nothing to give back
        """Give back what was opened."""


def timed(call: Callable[[], object]) -> float:
    """Return the seconds that one call takes."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def stepped(
    make: Callable[[], Backend], subject: Subject, threads: int, iterations: int
) -> tuple[str, list[dict[str, float]]]:
    """Time every layer of a chain as a network of its own, warm, in turn with the others.

    Parameters
    ----------
    make
        Returns a backend of its own for each layer.
    subject
        A chain.
    threads, iterations
        As for the whole.
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
    return "each layer as a network of its own", rounds


class ChainSubject(Subject):
    """A chain with grids of its own, as one layer has them in a whole network.

    Parameters
    ----------
    chain
        The network.
    format
        ``fp32`` or ``int8``.
    batch
        Its one input; by default the seeded one of :class:`Subject`.
    """

    def __init__(self, chain: Net | QuantizedNet, format: str, batch: Array | None = None) -> None:
        plain = chain.net if isinstance(chain, QuantizedNet) else chain
        super().__init__(plain.name, format, plain)
        object.__setattr__(self, "_chain", chain)
        object.__setattr__(self, "_batch", batch)

    @property
    def chain(self) -> Net | QuantizedNet:
        """The chain as it was given."""
        net: Net | QuantizedNet = self.__dict__["_chain"]
        return net

    @property
    def batch(self) -> Array:
        """The input that was given, or the seeded one."""
        own: Array | None = self.__dict__["_batch"]
        return super().batch if own is None else own


def flat(values: object) -> Array:
    """Return an output as one row of real numbers."""
    return np.asarray(values, dtype=np.float64).ravel()
