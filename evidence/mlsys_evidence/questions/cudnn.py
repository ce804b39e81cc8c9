"""Convolutions: the algorithms that a library has for them, each as the kernels that it launches.

A library picks one of a few algorithms. All of them are products of matrices, and differ in how many multiplications
they need and in what they write to the main memory on the way: A. Lavin and S. Gray, Fast Algorithms for
Convolutional Neural Networks, CVPR 2016, for Winograd's; S. Chetlur et al., cuDNN, arXiv:1410.0759, for the rest.

cuDNN's own kernels come in a few sizes of blocks, each of which sums all channels by itself: profiles of cuDNN 8.9
(NeuSight's data) name ``scudnn_128x32``, ``128x64`` and ``128x128``, and ``scudnn_winograd_128x128``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mlsys.calibration.case import Inexpressible
from mlsys.models.estimate import MATMUL, VECTOR, CaseBatch, Kernel, Parameters, Snapshot, Work, calibrated_times
from mlsys.models.estimate.blocks import Tiles, batched_blocks
from mlsys.models.estimate.lowering import LARGER_WINOGRAD, WINOGRAD_SAVING, Format
from mlsys.provenance import as_recorded

__all__ = ["Convolution", "quickest"]

# Rows and columns of the smallest blocks of cuDNN's kernels: of FP32 and of Winograd's in one kernel as named in the
# profiles; of matrix units and of half precision inferred: a V100 and a P100 take as long with 32 filters as with 64.
BLOCK, FUSED_BLOCK, MATRIX_BLOCK, HALF_BLOCK, WIDE = (128, 32), (128, 128), (64, 64), (128, 64), (128, 128)
# Channels that kernels of matrix units take at a time at each place of the filter, in bytes, and those of DP4A. A V100
# does one channel, padded to 8 by DeepBench (conv_bench.cu), at 1.5 TFLOP/s where 32 of them reach 40;
# of 8, 16, 32 and 64 channels, 32 explains its 18 rows best. No document says so, nor of DP4A: of 4 to 64 bytes, 16.
MATRIX_STEP, DP4A_STEP = 64, 16
# Outputs and filters of the one tile of its kernels of DP4A, whatever they hold: inferred from a TITAN X, which takes
# as long with 32 and 64 filters as with 128.
INT8_TILE = 128
# Instructions of half precision over half of those of FP32: what moves values about takes as many of both.
# Inferred: of 1 to 2, 1.1 to 1.2 leave a P100's two sweeps in half precision as fast as its FP32.
HALF_STEPS = 1.2
# Sides of the tiles that cuDNN transforms: fft2d_r2c_16x16 and fft2d_r2c_32x32 in published traces of TensorFlow.
TILES = (16, 32)


@dataclass(frozen=True)
class Convolution:
    """A dense convolution.

    Attributes
    ----------
    images, channels, high, wide
        Of the input.
    filters, tall, broad
        Filters, and the size of each.
    rows, columns, stride
        Size of the output, and the greater of its strides.
    """

    images: int
    channels: int
    high: int
    wide: int
    filters: int
    tall: int
    broad: int
    rows: int
    columns: int
    stride: int

    @classmethod
    def of(cls, numbers: Mapping[str, float]) -> Convolution:
        """Return the convolution that the numbers of a typed row describe."""
        names = ("images", "channels", "height", "width", "filters", "filter_height", "filter_width")
        if not set(names) <= numbers.keys():
            raise Inexpressible("shape of the convolution not stated")
        images, channels, high, wide, filters, tall, broad = (int(numbers[name]) for name in names)
        down, across = int(numbers.get("stride_v", 1)), int(numbers.get("stride_h", 1))
        rows = (high + 2 * int(numbers.get("pad_h", 0)) - tall) // down + 1
        columns = (wide + 2 * int(numbers.get("pad_w", 0)) - broad) // across + 1
        return cls(images, channels, high, wide, filters, tall, broad, rows, columns, max(down, across))

    @property
    def pixels(self) -> float:
        """Outputs of one filter."""
        return float(self.images * self.rows * self.columns)

    @property
    def is_three_by_three(self) -> bool:
        """Whether Winograd's algorithms for 3 × 3 filters apply."""
        return self.tall == self.broad == 3 and self.stride == 1

    @property
    def has_spectra(self) -> bool:
        """Whether a library's Fourier transforms apply: a filter wider than one, moved by one."""
        return self.stride == 1 and min(self.tall, self.broad) > 1

    @property
    def _inputs(self) -> float:
        return float(self.images * self.channels * self.high * self.wide)

    @property
    def flops(self) -> float:
        """FLOP of the sums as they are written."""
        return 2.0 * self.pixels * self.filters * self.channels * self.tall * self.broad

    def as_product(self, fmt: Format, saving: float = 1.0) -> Kernel:
        """Return the one product of output pixels, filters and what each of them sums over."""
        volume = self.channels * self.tall * self.broad
        weights = self.filters * volume * fmt.weight
        return Kernel(
            MATMUL,
            flops=self.flops / saving,
            moved=(self._inputs + self.pixels * self.filters) * fmt.value + weights,
            weights=weights,
            m=self.pixels,
            n=self.filters,
            k=volume / saving,
        )

    def unrolled(self, fmt: Format) -> list[Kernel]:
        """Return what Caffe and Torch7 run without cuDNN: biases, columns and a product, image by image.

        Columns are the inputs of every output, written out, which the product reads again.
        """
        whole = self.as_product(fmt)
        outputs = whole.m * whole.n / self.images * fmt.value
        columns = whole.m * whole.k / self.images * fmt.value
        product = replace(
            whole,
            flops=whole.flops / self.images,
            moved=columns + 2 * outputs + whole.weights,
            m=whole.m / self.images,
            count=self.images,
        )
        unfolding = self._inputs / self.images * fmt.value + columns
        return [
            Kernel(VECTOR, flops=0.0, moved=outputs, count=self.images),
            Kernel(VECTOR, flops=0.0, moved=unfolding, count=self.images),
            product,
        ]

    def implicit(self, fmt: Format) -> Kernel:
        """Return the product as cuDNN's implicit kernels do it, in blocks of their own and whole steps of channels."""
        kernel = self.as_product(fmt)
        step, block = 1, BLOCK
        if fmt.computes == "int8":
            kernel = replace(kernel, m=_whole(kernel.m, INT8_TILE), n=_whole(kernel.n, INT8_TILE))
            step = DP4A_STEP
        elif not fmt.vector_unit:
            step, block = max(1, int(MATRIX_STEP / fmt.value)), MATRIX_BLOCK
        elif _in_half(fmt):
            block = WIDE if self.filters > HALF_BLOCK[1] else HALF_BLOCK
        depth = _whole(self.channels, step) * self.tall * self.broad
        return replace(kernel, k=depth, block_rows=block[0], block_columns=block[1])

    def fused(self, fmt: Format) -> list[Kernel]:
        """Return Winograd's F(2 × 2, 3 × 3) in one kernel, after one that transforms the filters.

        A block computes 32 filters of a region of 32 squares of 2 × 2 outputs, whatever is left of it.
        """
        blocks = min(
            math.ceil(self.images / images) * math.ceil(self.rows / rows) * math.ceil(self.columns / columns)
            for images, rows, columns in ((1, 8, 16), (1, 16, 8), (2, 8, 8), (4, 8, 4), (4, 4, 8))
        )
        weights = float(self.filters * self.channels)
        product = Kernel(
            MATMUL,
            flops=self.flops / WINOGRAD_SAVING,  # what blocks compute beyond the outputs is no work
            moved=(self._inputs + self.pixels * self.filters + 16 * weights) * fmt.value,
            m=128.0 * blocks,
            n=128.0 * math.ceil(self.filters / 32),
            k=self.channels,
            block_rows=FUSED_BLOCK[0],
            block_columns=FUSED_BLOCK[1],
        )
        return [Kernel(VECTOR, flops=0.0, moved=(9 + 16) * weights * fmt.value), product]

    def apart(self, fmt: Format, tiles: Tiles = ()) -> list[Kernel]:
        """Return Winograd's F(4 × 4, 3 × 3) in four kernels: inputs, filters, 36 products, and outputs.

        The products are batches of cuBLAS. In 6,800 profiles of three cards (NeuSight, cuDNN 8.9) they ran in blocks of
        4,096 results or more, and none had 16 filters or fewer, where most of a block would be nobody's.
        """
        squares = float(self.images * math.ceil(self.rows / 4) * math.ceil(self.columns / 4))
        weights, inputs, outputs = self.filters * self.channels, squares * self.channels, squares * self.filters
        product = Kernel(
            MATMUL,
            flops=self.flops / LARGER_WINOGRAD,
            moved=36 * (weights + inputs + outputs) * fmt.value,
            m=squares,
            n=self.filters,
            k=self.channels,
            batch=36,
        )
        if tiles:
            rows, columns, _ = batched_blocks(np.array([squares]), np.array([float(self.filters)]), tiles)
            product = replace(product, block_rows=float(rows[0]), block_columns=float(columns[0]))
        return [
            Kernel(VECTOR, flops=0.0, moved=(self._inputs + 36 * inputs) * fmt.value),
            Kernel(VECTOR, flops=0.0, moved=(9 + 36) * weights * fmt.value),
            product,
            Kernel(VECTOR, flops=0.0, moved=(36 * outputs + self.pixels * self.filters) * fmt.value),
        ]

    def transformed(self, fmt: Format, tile: int) -> list[Kernel]:
        """Return the convolution by Fourier transforms of square tiles, in four kernels as Winograd's.

        A spectrum of T × T real numbers has T × (T / 2 + 1) complex ones, whose products take four multiplications
        (M. Mathieu, M. Henaff, Y. LeCun, Fast Training of Convolutional Networks through FFTs, ICLR 2014).
        """
        down, across = tile - self.tall + 1, tile - self.broad + 1
        squares = float(self.images * math.ceil(self.rows / down) * math.ceil(self.columns / across))
        weights, inputs, outputs = self.filters * self.channels, squares * self.channels, squares * self.filters
        points = tile * (tile // 2 + 1)
        width = 2 * fmt.value
        product = Kernel(
            MATMUL,
            flops=8.0 * points * squares * self.filters * self.channels,
            moved=points * (weights + inputs + outputs) * width,
            m=2 * squares,
            n=self.filters,
            k=2 * self.channels,
            batch=points,
        )
        return [
            Kernel(VECTOR, flops=0.0, moved=self._inputs * fmt.value + points * inputs * width),
            Kernel(VECTOR, flops=0.0, moved=weights * (self.tall * self.broad * fmt.value + points * width)),
            product,
            Kernel(VECTOR, flops=0.0, moved=points * outputs * width + self.pixels * self.filters * fmt.value),
        ]

    def algorithms(self, fmt: Format, tiles: Tiles = ()) -> dict[str, list[Kernel]]:
        """Return the algorithms that a library may take, by name; matrix units leave Winograd's nothing to save.

        Parameters
        ----------
        fmt
            Number formats.
        tiles
            In which the machine's library does batched products; any where it is left out.
        """
        by_name = {"product": [self.implicit(fmt)]}
        if self.is_three_by_three and fmt.vector_unit:
            by_name |= {"Winograd, fused": self.fused(fmt), "Winograd, apart": self.apart(fmt, tiles)}
        if self.has_spectra and fmt.vector_unit and fmt.computes == "fp32":
            by_name |= {
                f"FFT, {tile}": self.transformed(fmt, tile) for tile in TILES if tile > max(self.tall, self.broad)
            }
        if not _in_half(fmt):
            return by_name
        return {
            name: [replace(each, k=HALF_STEPS * each.k) if each.kind == MATMUL else each for each in kernels]
            for name, kernels in by_name.items()
        }


def _whole(size: float, step: int) -> float:
    return float(math.ceil(size / step) * step)


def _in_half(fmt: Format) -> bool:
    return fmt.vector_unit and fmt.computes == "fp16"


# Rates that algorithms are compared at: those of a tuned library, not of any setting, so that a fit moves no choice.
NOMINAL = Parameters(compute=0.6, vector=0.4, bandwidth=0.75, reuse=0.4, launch=1e-5, ramp=32.0)


def quickest(algorithms: Mapping[str, list[Kernel]], engine: Snapshot) -> list[Kernel]:
    """Return the algorithm that should be the fastest on a machine, as a library that tries all of them takes."""
    if len(algorithms) == 1:
        return next(iter(algorithms.values()))
    with as_recorded():  # a what-if does not move the choice, or less of a rate could shorten a time
        stack = CaseBatch.of([(engine, Work.of(kernels), True) for kernels in algorithms.values()])
        times = calibrated_times(stack, NOMINAL.vectorised())
    return list(algorithms.values())[int(times.argmin())]
