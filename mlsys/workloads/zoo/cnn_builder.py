"""The builder of convolutional networks, which tracks the image shape through convolutions and pooling."""

from typing import Any, TypeAlias

from mlsys.errors import ArgumentError
from mlsys.workloads.zoo.layer_builder import LayerBuilder

Shape: TypeAlias = tuple[int, int, int]  # channels, height, width
Pair: TypeAlias = int | tuple[int, int]


def divisible(channels: float, divisor: int = 8, floor: int | None = None) -> int:
    """Return ``channels`` rounded to a multiple of ``divisor``, never more than 10 % below.

    This is the rounding of the MobileNet papers' reference code, also used by EfficientNet and MnasNet.

    Examples
    --------
    >>> divisible(32 * 0.75), divisible(16 * 0.35), divisible(24 * 1.1)
    (24, 8, 24)
    """
    rounded = max(floor or divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * channels else rounded


def _pair(value: Pair) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (value, value)


class CnnBuilder(LayerBuilder):
    """Builder of convolutional networks: each call appends a layer and updates ``shape``.

    Parameters
    ----------
    batch
        Number of images.
    shape
        Channels, height and width of the input.
    precision, fused
        As in :class:`LayerBuilder`.
    norm
        Whether convolutions are followed by batch normalisation by default.
    """

    def __init__(
        self, batch: int, shape: Shape, precision: str, fused: bool, norm: bool = True, whole: bool = False
    ) -> None:
        super().__init__(precision, fused, whole=whole)
        self.batch, self.shape, self.norm_by_default = batch, shape, norm

    @property
    def channels(self) -> int:
        """Channels of the current image."""
        return self.shape[0]

    def conv(
        self,
        name: str,
        out: int,
        kernel: Pair,
        stride: int = 1,
        padding: Pair | str | None = None,
        groups: int = 1,
        dilation: int = 1,
        bias: bool | None = None,
        norm: bool | None = None,
        act: str | None = "relu",
        extra: int = 0,
    ) -> None:
        """Append a convolution with normalisation and activation.

        ``padding`` by default preserves the size at stride 1; ``"same"`` selects
        TensorFlow's rule (output = input / stride, rounded up).
        """
        normed = self.norm_by_default if norm is None else norm
        biased = not normed if bias is None else bias
        _, height, width = self.shape
        kh, kw = _pair(kernel)
        if isinstance(padding, str):
            oh, ow = -(-height // stride), -(-width // stride)
        else:
            ph, pw = (dilation * (kh // 2), dilation * (kw // 2)) if padding is None else _pair(padding)
            oh = (height + 2 * ph - dilation * (kh - 1) - 1) // stride + 1
            ow = (width + 2 * pw - dilation * (kw - 1) - 1) // stride + 1
        self._must_fit(name, oh, ow)
        self._convolve(name, (out, oh, ow), (kh, kw), stride, padding, dilation, groups, biased, extra)
        if normed:
            self.batch_norm(f"{name} norm")
        if act:
            self.activation(f"{name} {act}", self.elements, act)

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
        """Append the convolution itself, whose output has the shape ``made``."""
        (into, height, width), (out, oh, ow), (kh, kw) = self.shape, made, kernel
        stored = out * (into // groups) * kh * kw
        shape = {"batch": self.batch, "in_channels": into, "out_channels": out}
        if height == width and kh == kw and oh == ow:
            shape |= {"size": height, "out_size": oh, "kernel": kh, "stride": stride, "groups": groups}
        else:
            shape |= {"height": height, "width": width, "out_height": oh, "out_width": ow}
            shape |= {"kernel_height": kh, "kernel_width": kw, "stride": stride, "groups": groups}
        self.write(
            name,
            "conv2d",
            self.batch * oh * ow * (2 * stored + (out if bias and self.counts_all else 0)),
            (self.batch * (into * height * width + out * oh * ow) + stored) * self.size,
            stored * self.size,
            stored + (out if bias else 0) + extra,
            shape,
        )
        self.shape = made

    def batch_norm(self, name: str) -> None:
        """Append batch normalisation of each channel."""
        self.ride_along(name, self.elements, 2, parameters=2 * self.channels)

    def _must_fit(self, name: str, height: int, width: int) -> None:
        if height < 1 or width < 1:
            before = " × ".join(map(str, self.shape[1:]))
            raise ArgumentError(
                f"network(): `image` is too small: the input of {name!r} is {before}, which leaves no output. "
                "Leave `image` out for the usual size"
            )

    @property
    def elements(self) -> int:
        """Elements of the current image, over the whole batch."""
        channels, height, width = self.shape
        return self.batch * channels * height * width

    def pool(self, kernel: int, stride: int, padding: int | str = 0, ceil: bool = False, name: str = "pool") -> None:
        """Append max pooling; fused, it only updates the shape."""
        channels, height, width = self.shape

        def out(size: int) -> int:
            if isinstance(padding, str):
                return -(-size // stride)
            whole = size + 2 * padding - kernel
            steps = -(-whole // stride) if ceil else whole // stride
            if ceil and steps * stride >= size + padding:  # a window must start inside the input or its left padding
                steps -= 1
            return steps + 1

        after = out(height), out(width)
        self._must_fit(name, *after)
        self._pool(name, (channels, *after), kernel, stride, padding, ceil)

    def _pool(self, name: str, made: Shape, kernel: int, stride: int, padding: int | str, ceil: bool) -> None:
        before, self.shape = self.elements, made
        self._reduce(name, before, self.elements * (kernel * kernel - 1))

    def global_pool(self) -> None:
        """Append global average pooling."""
        before = self.elements
        self.shape = (self.channels, 1, 1)
        self._reduce("global pool", before, before + self.elements)

    def average_to(self, side: int, name: str = "average") -> None:
        """Append adaptive average pooling to ``side`` × ``side``."""
        before = self.elements
        self.shape = (self.channels, side, side)
        self._reduce(name, before, before + self.elements)

    def _reduce(self, name: str, before: int, operations: int) -> None:
        if not self.fused:
            moved = (before + self.elements) * self.size
            self.write(name, "elementwise", operations, moved, shape={"elements": before})
        else:
            self.work_along(operations)

    def upsample(self, factor: int = 2) -> None:
        """Upsample by nearest neighbour: only the shape changes."""
        channels, height, width = self.shape
        self.shape = (channels, height * factor, width * factor)

    @property
    def here(self) -> Any:
        """The current image, which :meth:`go_to` can return to."""
        return self.shape

    def go_to(self, here: Any) -> None:
        """Continue from an earlier image of :attr:`here`."""
        self.shape = here

    def shortcut(self, name: str, act: str | None = None, start: Any = None, body: Any = None) -> None:
        """Append a residual addition of ``start`` and ``body``, each by default the current image."""
        self.add(f"{name} add", self.elements, start, body)
        if act:
            self.activation(f"{name} {act}", self.elements, act)

    def excite(self, name: str, squeezed: int, act: str = "relu", gate: str = "sigmoid") -> None:
        """Append squeeze and excitation: two dense layers on the pooled image scale its channels."""
        channels, shape = self.channels, self.shape
        self.global_pool()
        self.dense(f"{name} squeeze", self.batch, channels, squeezed)
        self.activation(f"{name} squeeze {act}", self.batch * squeezed, act)
        self.dense(f"{name} excite", self.batch, squeezed, channels)
        self.activation(f"{name} excite {gate}", self.batch * channels, gate)
        self.shape = shape
        self.ride_along(f"{name} scale", self.elements, 1)

    def as_tokens(self, tokens: int, width: int) -> None:
        """Read pixels as tokens, prepend a class token and add learned positions."""
        self.ride_along("positions", self.batch * tokens * width, 1, parameters=width + tokens * width)

    def classify(self, classes: int) -> None:
        """Append global average pooling and a dense layer."""
        self.global_pool()
        self.dense("classifier", self.batch, self.channels, classes)
        self.shape = (classes, 1, 1)
