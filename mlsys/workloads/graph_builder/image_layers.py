"""Graph builder for layers on images: convolutions, pooling, and pixels read as tokens."""

from mlsys.errors import ArgumentError
from mlsys.workloads.graph_builder.sequence_layers import SequenceLayers
from mlsys.workloads.zoo.cnn_builder import Pair, Shape


class ImageLayers(SequenceLayers):
    """Builder that appends calls and edges where :class:`CnnBuilder` appends counts; it takes the same arguments."""

    def _convolve(
        self,
        name: str,
        made: Shape,
        kernel: tuple[int, int],
        stride: int,
        padding: Pair | str | None,
        dilation: int,
        groups: int,
        bias: bool,
        extra: int,
    ) -> None:
        into, (out, *_) = self.channels, made
        if padding is None or isinstance(padding, str):  # torch pads both sides alike
            padding = (dilation * (kernel[0] // 2), dilation * (kernel[1] // 2))
        arguments = {
            "input": self.at,
            "weight": self._weight(name, "weight", out, into // groups, *kernel),
            "bias": self._weight(name, "bias", out) if bias else None,
            "stride": (stride, stride),
            "padding": padding if isinstance(padding, tuple) else (padding, padding),
            "dilation": (dilation, dilation),
            "groups": groups,
        }
        self.at, self.shape = self._call(name, "conv2d.default", (self.batch, *made), arguments), made

    def batch_norm(self, name: str) -> None:
        """Append batch normalisation: each channel is normalised by its running mean and variance."""
        arguments = {
            "input": self.at,
            **{label: self._weight(name, label, self.channels) for label in ("weight", "bias")},
            **{
                label: self.graph.statistic(f"{self._prefix}{name}.{label}", self.channels)
                for label in ("running_mean", "running_var")
            },
            **{"training": False, "momentum": 0.1, "eps": 1e-05, "cudnn_enabled": False},
        }
        self.graph.counts_batches()
        self.at = self._call(name, "batch_norm.default", self.at.shape, arguments)

    def _pool(self, name: str, made: Shape, kernel: int, stride: int, padding: int | str, ceil: bool) -> None:
        if isinstance(padding, str):
            raise ArgumentError(
                f"{name!r} has no torch graph with padding={padding!r}: torch pads both sides alike. Give a number"
            )
        pairs = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": 1}
        windows = {label: (size, size) for label, size in pairs.items()}
        arguments = {"self": self.at, **windows, "ceil_mode": ceil}
        self.at, self.shape = self._call(name, "max_pool2d.default", (self.batch, *made), arguments), made

    def global_pool(self) -> None:
        """Append global average pooling."""
        self.shape = (self.channels, 1, 1)
        arguments = {"self": self.at, "output_size": (1, 1)}
        self.at = self._call("global pool", "adaptive_avg_pool2d.default", (self.batch, *self.shape), arguments)

    def as_tokens(self, tokens: int, width: int) -> None:
        """Read pixels as tokens, prepend a class token and add learned positions."""
        pixels = tokens - 1
        first = self.graph.weight("class token", 1, 1, width)
        positions = self.graph.weight("positions", 1, tokens, width)
        flat = ((self.batch, width, pixels), (width * pixels, pixels, 1), 0)
        (rows,) = self.graph.view("flatten.using_ints", self.at, [flat], {"start_dim": 2, "end_dim": -1})
        rows = self._transposed(rows)
        size = (self.batch, -1, -1)
        wide = ((self.batch, 1, width), (0, width, 1), 0)
        (first,) = self.graph.view("expand.default", first, [wide], {"size": size, "implicit": False})
        arguments = {"tensors": (first, rows), "dim": 1}
        self.at = self._call("class token and patches", "cat.default", (self.batch, tokens, width), arguments)
        self.at = self._pointwise("positions", "add.Tensor", self.at, positions, alpha=1)
