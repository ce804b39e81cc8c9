"""Networks that all backends can run: one description, converted to PyTorch, ONNX, LiteRT and C.

Weights are random with a fixed seed, since times do not depend on them; outputs are compared between backends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mlsys.errors import UnknownNameError, did_you_mean
from mlsys.measure.log import LayerWork

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer, with dimensions in the order height, width, channels.

    Attributes
    ----------
    name, kind
        ``kind`` is ``conv``, ``depthwise``, ``pool`` (global average) or ``dense``.
    source, shape
        Height, width and channels of its input and of its output.
    kernel, stride
        Height and width of the window, and its stride; padding as TensorFlow's SAME.
    relu
        Whether a ReLU follows.
    weight, bias
        ``(out, kh, kw, in)``, ``(1, kh, kw, channels)`` or ``(out, in)``, and one number per output channel.
    """

    name: str
    kind: str
    source: tuple[int, int, int]
    shape: tuple[int, int, int]
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    relu: bool = False
    weight: Array | None = None
    bias: Array | None = None

    @property
    def pads(self) -> tuple[int, int, int, int]:
        """Padding: rows above, columns left, rows below, columns right."""
        if self.kind not in ("conv", "depthwise"):
            return 0, 0, 0, 0
        amounts = []
        for size, out, kernel, stride in zip(self.source, self.shape, self.kernel, self.stride, strict=False):
            whole = max((out - 1) * stride + kernel - size, 0)
            amounts.append((whole // 2, whole - whole // 2))
        (top, bottom), (left, right) = amounts
        return top, left, bottom, right

    def work(self, element: int = 4) -> LayerWork:
        """Return its work with ``element`` bytes per value; a bias takes four."""
        reads, writes = int(np.prod(self.source)), int(np.prod(self.shape))
        macs = weights = 0
        if self.kind != "pool":
            assert self.weight is not None and self.bias is not None
            macs = writes * int(np.prod(self.kernel if self.kind == "depthwise" else self.weight.shape[1:]))
            weights = self.weight.size * element + self.bias.size * 4
        return LayerWork(self.name, self.kind, macs, weights, reads * element, writes * element)


@dataclass(frozen=True, eq=False)
class Net:
    """A chain of layers, and its input shape: height, width, channels."""

    name: str
    shape: tuple[int, int, int]
    layers: tuple[Layer, ...]

    @property
    def macs(self) -> int:
        """MAC of one inference."""
        return sum(layer.work().macs for layer in self.layers)

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return sum(part.size for layer in self.layers for part in (layer.weight, layer.bias) if part is not None)

    def only(self, index: int) -> Net:
        """Return one layer as a network."""
        layer = self.layers[index]
        return Net(f"{self.name}:{layer.name}", layer.source, (layer,))


class _Chain:
    """Builder of a chain, with seeded weights scaled to keep activations near one."""

    def __init__(self, shape: tuple[int, int, int], seed: int = 0) -> None:
        self.shape, self._rng = shape, np.random.default_rng(seed)
        self.layers: list[Layer] = []

    def add(
        self, name: str, kind: str, out: int, kernel: tuple[int, int] = (1, 1), stride: tuple[int, int] = (1, 1),
        relu: bool = True,
    ) -> None:  # fmt: skip
        high, wide, deep = self.shape
        if kind == "pool":
            self._append(Layer(name, kind, self.shape, (1, 1, deep), (high, wide)))
            return
        if kind == "dense":
            source, fan, shape = (1, 1, high * wide * deep), high * wide * deep, (1, 1, out)
            weight: tuple[int, ...] = (out, fan)
        else:
            source, fan = self.shape, kernel[0] * kernel[1] * (1 if kind == "depthwise" else deep)
            shape = (-(-high // stride[0]), -(-wide // stride[1]), deep if kind == "depthwise" else out)
            weight = (1 if kind == "depthwise" else out, *kernel, deep)
        spread = np.sqrt((2.0 if relu else 1.0) / fan)
        self._append(
            Layer(
                name, kind, source, shape, kernel, stride, relu,
                (self._rng.standard_normal(weight) * spread).astype(np.float32),
                (self._rng.standard_normal(shape[2]) * 0.05).astype(np.float32),
            )
        )  # fmt: skip

    def _append(self, layer: Layer) -> None:
        self.layers.append(layer)
        self.shape = layer.shape


def _ds_cnn() -> Net:
    chain = _Chain((49, 10, 1))
    chain.add("conv", "conv", 64, (10, 4), (2, 2))
    for block in range(1, 5):
        chain.add(f"dw{block}", "depthwise", 64, (3, 3))
        chain.add(f"pw{block}", "conv", 64)
    chain.add("pool", "pool", 64)
    chain.add("fc", "dense", 12, relu=False)
    return Net("ds-cnn", (49, 10, 1), tuple(chain.layers))


def _tiny_cnn() -> Net:
    chain = _Chain((16, 8, 1), seed=1)
    chain.add("conv", "conv", 8, (3, 3), (2, 2))
    chain.add("dw", "depthwise", 8, (3, 3))
    chain.add("pw", "conv", 16)
    chain.add("pool", "pool", 16)
    chain.add("fc", "dense", 4, relu=False)
    return Net("tiny-cnn", (16, 8, 1), tuple(chain.layers))


def idle_chain(length: int) -> Net:
    """Return a chain of trivial layers, whose time is the launch cost of a layer."""
    chain = _Chain((1, 1, 4), seed=2)
    for index in range(length):
        chain.add(f"idle{index}", "dense", 4, relu=False)
    return Net(f"idle-{length}", (1, 1, 4), tuple(chain.layers))


NETS: dict[str, Callable[[], Net]] = {"ds-cnn": _ds_cnn, "tiny-cnn": _tiny_cnn}
"""``ds-cnn`` has the shapes of MLPerf Tiny's keyword spotting; ``tiny-cnn`` is for a simulated board."""


@lru_cache(maxsize=8)
def net_of(name: str) -> Net:
    """Return a network by name.

    Raises
    ------
    UnknownNameError
        If the name is unknown.

    Examples
    --------
    >>> net = net_of("ds-cnn")
    >>> net.macs, net.parameters
    (2656768, 22604)
    """
    if name not in NETS:
        raise UnknownNameError(
            f"net_of(): unknown network {name!r}.{did_you_mean(name, NETS)} Known: {', '.join(NETS)}"
        )
    return NETS[name]()


def inputs_of(net: Net, count: int = 1, seed: int = 7) -> Array:
    """Return ``count`` inputs, uniform between −1 and 1; the shape is ``(count, height, width, channels)``."""
    return np.random.default_rng(seed).uniform(-1, 1, (count, *net.shape)).astype(np.float32)


def reference(net: Net, batch: Array) -> list[Array]:
    """Return the output of every layer in double precision, by direct computation.

    Parameters
    ----------
    net
        The network.
    batch
        ``(count, height, width, channels)``.
    """
    now, outputs = batch.astype(np.float64), []
    for layer in net.layers:
        now = _applied(layer, now)
        outputs.append(now)
    return outputs


def layer_products(layer: Layer, x: Array, weight: Array) -> Array:
    """Return a layer's sums of products without bias, in the arithmetic of the given arrays.

    Parameters
    ----------
    layer
        A convolution, depthwise or not, or a dense layer.
    x
        ``(count, height, width, channels)``, zero-padded where the layer pads.
    weight
        Weights of the layer, in the number format of ``x``.
    """
    if layer.kind == "dense":
        sums: Array = (x.reshape(len(x), -1) @ weight.T).reshape(len(x), 1, 1, -1)
        return sums
    windows = _windows(layer, x)
    if layer.kind == "depthwise":
        sums = np.einsum("nhwcij,ijc->nhwc", windows, weight[0])
    else:
        sums = np.einsum("nhwcij,oijc->nhwo", windows, weight)
    return sums


def _applied(layer: Layer, x: Array) -> Array:
    if layer.kind == "pool":
        mean: Array = x.mean(axis=(1, 2), keepdims=True)
        return mean
    assert layer.weight is not None and layer.bias is not None
    y = layer_products(layer, x, layer.weight.astype(np.float64)) + layer.bias
    output: Array = np.maximum(y, 0) if layer.relu else y
    return output


def _windows(layer: Layer, x: Array) -> Array:
    """Return the window of every output position: ``(count, height, width, channels, kh, kw)``."""
    top, left, bottom, right = layer.pads
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view(padded, layer.kernel, axis=(1, 2))
    windows: Array = view[:, :: layer.stride[0], :: layer.stride[1]]
    return windows
