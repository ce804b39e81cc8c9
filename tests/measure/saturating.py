"""A runtime without a CPU: integer networks as ``vpmaddubsw`` computes them, sums of two products held to 16 bits."""

from typing import Any, ClassVar

import numpy as np

from mlsys.measure.backends import Backend, Subject
from mlsys.measure.backends.base import Array, flat
from mlsys.measure.networks.int8 import QuantizedLayer, QuantizedNet


class Saturating(Backend):
    """Integer networks with saturating sums of pairs, or, if ``most`` is wide, with exact ones."""

    name, kinds, formats, channels_last = "saturating", ("chain",), ("int8",), True
    most: ClassVar[int] = 2**15 - 1

    def setup(self, subject: Subject, threads: int) -> None:
        """Keep the network and its input."""
        assert isinstance(subject.chain, QuantizedNet)
        self._whole = subject.chain
        self._given = subject.chain.source.to_int(subject.batch)[0]

    def _run(self) -> None:
        now = self._given.astype(int)
        for each in self._whole.layers:
            now = self._layer(each, now)
        self._output = now

    def output(self) -> Array:
        """Return real numbers."""
        target = self._whole.target
        return flat((self._output - target.zero) * target.scale)

    def _layer(self, each: QuantizedLayer, x: Array) -> Array:
        layer = each.layer
        if layer.kind == "pool":
            return np.rint(x.mean(axis=(0, 1), keepdims=True)).astype(int)
        assert each.weight is not None and each.bias is not None and each.scales is not None
        if layer.kind == "dense":
            x = x.reshape(1, 1, -1)
        top, left, bottom, right = layer.pads
        x = np.pad(x, ((top, bottom), (left, right), (0, 0)), constant_values=each.source.zero)
        (tall, wide), (down, along) = layer.kernel, layer.stride
        outputs = np.zeros(layer.shape, int)
        for channel in range(layer.shape[2]):
            kernel = each.weight[0, ..., channel] if layer.kind == "depthwise" else each.weight[channel]
            for row, column in np.ndindex(layer.shape[:2]):
                window = x[row * down : row * down + tall, column * along : column * along + wide]
                if layer.kind == "depthwise":
                    window = window[..., channel]
                outputs[row, column, channel] = self._sum(window.ravel(), kernel.ravel(), each.source.zero)
        real = (outputs + each.bias) * (each.scales.astype(float) * each.source.scale / each.target.scale)
        low = each.target.zero if layer.relu else -128
        return np.clip(np.rint(real) + each.target.zero, max(low, -128), 127).astype(int)

    def _sum(self, values: Array, weight: Array, zero: int) -> int:
        products: Any = (values + 128) * weight.astype(int)  # unsigned bytes by signed ones
        pairs = np.append(products, 0)[: len(products) // 2 * 2 + 2 * (len(products) % 2)].reshape(-1, 2).sum(axis=1)
        held = np.clip(pairs, -self.most - 1, self.most).sum()
        return int(held - (zero + 128) * weight.astype(int).sum())


class Exact(Saturating):
    """The same with sums of 32 bits."""

    name = "exact"
    most = 2**31 - 1
