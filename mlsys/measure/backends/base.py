"""Base class of the backends."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from mlsys.measure.errors import Unmeasured
from mlsys.measure.networks.subjects import Subject

Array = np.ndarray[Any, np.dtype[Any]]


class Backend(ABC):
    """Interface of a way to run a network: create, set up, run, read, close.

    A backend times itself: on a CPU by the clock around a call, on a device by the device's own counter.
    """

    name: ClassVar[str]
    package: ClassVar[str] = ""
    extra: ClassVar[str] = "measure"
    kinds: ClassVar[tuple[str, ...]] = ("chain",)
    formats: ClassVar[tuple[str, ...]] = ("fp32",)
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
        backend.setup(Subject.of_chain(whole.only(index)), threads)
        for _ in range(5):
            backend.run_inference()
    rounds = [{name: part.run_inference() for name, part in parts.items()} for _ in range(iterations)]
    for part in parts.values():
        part.close()
    return "each layer as a separate network", rounds


def flat(values: object) -> Array:
    """Return an output as one row of real numbers."""
    return np.asarray(values, dtype=np.float64).ravel()


def seeded_input(shape: Sequence[Any], kind: Any) -> Array:
    """Return seeded values for an input of a model file; a free size becomes one."""
    sizes = [size if isinstance(size, int) and size > 0 else 1 for size in shape]
    draw = np.random.default_rng(7)
    if np.issubdtype(kind, np.floating):
        return draw.uniform(-1, 1, sizes).astype(kind)
    return draw.integers(0, 100, sizes).astype(kind)
