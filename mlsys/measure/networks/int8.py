"""INT8 quantisation as in LiteRT: one scale per output channel of a weight, scale and zero point per activation.

References
----------
Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference, CVPR 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mlsys.measure.networks.chains import Layer, Net, inputs_of, layer_products, reference

Array = np.ndarray[Any, np.dtype[Any]]
_CALIBRATION = 32  # inputs that activation ranges are calibrated on


@dataclass(frozen=True)
class Grid:
    """Real number = scale × (integer − zero)."""

    scale: float
    zero: int

    def to_int(self, values: Array) -> Array:
        """Return the nearest integers from −128 to 127."""
        integers: Array = np.clip(np.rint(values / self.scale) + self.zero, -128, 127).astype(np.int8)
        return integers

    def to_real(self, values: Array) -> Array:
        """Return the real values of integers."""
        return (values.astype(np.float32) - self.zero) * np.float32(self.scale)


@dataclass(frozen=True)
class QuantizedLayer:
    """A quantised layer.

    Attributes
    ----------
    layer
        The layer in real numbers.
    source, target
        Grids of its input and output.
    weight, bias, scales
        INT8 weights, 32-bit biases, and the scale of each output channel's weights.
    multiplier, shift
        For each channel: ``multiplier · 2^(shift − 31)`` converts a sum to steps of the output grid.
    """

    layer: Layer
    source: Grid
    target: Grid
    weight: Array | None = None
    bias: Array | None = None
    scales: Array | None = None
    multiplier: Array | None = None
    shift: Array | None = None


@dataclass(frozen=True)
class QuantizedNet:
    """A quantised network."""

    net: Net
    layers: tuple[QuantizedLayer, ...]

    @property
    def source(self) -> Grid:
        """Grid of the input."""
        return self.layers[0].source

    @property
    def target(self) -> Grid:
        """Grid of the output."""
        return self.layers[-1].target

    def only(self, index: int) -> QuantizedNet:
        """Return one layer as a network."""
        return QuantizedNet(self.net.only(index), (self.layers[index],))


@lru_cache(maxsize=8)
def quantized(net: Net) -> QuantizedNet:
    """Return the quantised network, calibrated on seeded inputs.

    Examples
    --------
    >>> from mlsys.measure.networks.chains import net_of
    >>> whole = quantized(net_of("tiny-cnn"))
    >>> whole.layers[0].weight.dtype.name, whole.layers[0].bias.dtype.name
    ('int8', 'int32')
    """
    batch = inputs_of(net, _CALIBRATION, seed=11)
    outputs = reference(net, batch)
    grid, layers = _grid(batch), []
    for layer, output in zip(net.layers, outputs, strict=True):
        if layer.kind == "pool":
            layers.append(QuantizedLayer(layer, grid, grid))
            continue
        assert layer.weight is not None and layer.bias is not None
        axes = (0, 1, 2) if layer.kind == "depthwise" else tuple(range(1, layer.weight.ndim))
        scales = (np.abs(layer.weight).max(axis=axes) / 127).astype(np.float32)
        spread = scales if layer.kind == "depthwise" else scales.reshape(-1, *[1] * (layer.weight.ndim - 1))
        weight = np.clip(np.rint(layer.weight / spread), -127, 127).astype(np.int8)
        bias = np.rint(layer.bias / (scales * grid.scale)).astype(np.int32)
        target = _grid(output)
        layers.append(integer_layer(layer, grid, target, weight, bias, scales))
        grid = target
    return QuantizedNet(net, tuple(layers))


def integer_layer(
    layer: Layer, source: Grid, target: Grid, weight: Array, bias: Array, scales: Array
) -> QuantizedLayer:
    """Return a layer with given integers, and the fixed-point factors from its sums to its output grid.

    Parameters
    ----------
    layer
        The layer in real numbers.
    source, target
        Grids of its input and output.
    weight, bias, scales
        INT8 weights, 32-bit biases, and the scale of each output channel's weights.
    """
    mantissa, exponent = np.frexp(scales.astype(np.float64) * source.scale / target.scale)
    multiplier = np.rint(mantissa * 2**31).astype(np.int64)
    full = multiplier == 2**31
    multiplier, exponent = np.where(full, 2**30, multiplier), exponent + full
    return QuantizedLayer(layer, source, target, weight, bias, scales, multiplier, exponent.astype(np.int32))


def _grid(values: Array) -> Grid:
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 1e-6)
    scale = float(np.float32((high - low) / 255))
    return Grid(scale, int(np.clip(round(-128 - low / scale), -128, 127)))


def run_int8(net: QuantizedNet, batch: Array) -> list[Array]:
    """Return the integer output of every layer, bit-identical to the firmware's.

    Parameters
    ----------
    net
        The network.
    batch
        INT8, ``(count, height, width, channels)``.
    """
    now, outputs = batch, []
    for each in net.layers:
        now = _applied(each, now)
        outputs.append(now)
    return outputs


def _applied(each: QuantizedLayer, x: Array) -> Array:
    layer = each.layer
    if layer.kind == "pool":
        total, count = x.astype(np.int64).sum(axis=(1, 2), keepdims=True), x.shape[1] * x.shape[2]
        mean: Array = (np.sign(total) * ((np.abs(total) + count // 2) // count)).astype(np.int8)
        return mean
    assert each.weight is not None and each.bias is not None and each.multiplier is not None and each.shift is not None
    centred, weight = x.astype(np.int64) - each.source.zero, each.weight.astype(np.int64)
    total = layer_products(layer, centred, weight) + each.bias
    down = 31 - each.shift.astype(np.int64)
    scaled = (total * each.multiplier + (np.int64(1) << (down - 1))) >> down  # rounds halves upwards
    low = each.target.zero if layer.relu else -128
    output: Array = np.clip(scaled + each.target.zero, max(low, -128), 127).astype(np.int8)
    return output
