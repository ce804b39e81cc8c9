"""3D-UNet, as MLPerf runs it."""

import math
from typing import TypeAlias

from mlsys.workloads.zoo.layer_builder import LayerBuilder

Volume: TypeAlias = tuple[int, tuple[int, int, int]]  # channels; depth, height, width


def _conv(
    builder: LayerBuilder,
    name: str,
    batch: int,
    volume: Volume,
    out: int,
    kernel: int,
    stride: int = 1,
    norm: bool = True,
) -> Volume:
    """Append a 3-D convolution that preserves the size at stride 1; return the volume after it."""
    into, sides = volume
    depth, height, width = ((side + 2 * (kernel // 2) - kernel) // stride + 1 for side in sides)
    voxels = batch * depth * height * width
    stored = out * into * kernel**3
    moved = (batch * into * math.prod(sides) + out * voxels + stored) * builder.size
    shape = {"batch": batch, "in_channels": into, "out_channels": out, "groups": 1, "stride": stride}
    shape |= {"out_depth": depth, "out_height": height, "out_width": width}
    shape |= {f"kernel_{axis}": kernel for axis in ("depth", "height", "width")}
    held = stored + (2 * out if norm else out)
    builder.write(name, "conv3d", 2 * voxels * stored, moved, stored * builder.size, held, shape)
    if norm:
        builder.norm_of_whole(f"{name} norm", out * voxels)
        builder.activation(f"{name} relu", out * voxels, "relu")
    return out, (depth, height, width)


def unet3d(builder: LayerBuilder, batch: int) -> None:
    """Append MLPerf's 3D-UNet on one window of a KiTS19 scan: 32 to 320 channels, five downsamplings.

    Isensee et al. 2021 (nnU-Net); mlcommons/training, image_segmentation/pytorch/model/unet3d.py.
    """
    _unet(builder, batch, (1, (128, 128, 128)), (32, 64, 128, 256, 320, 320), classes=3, up_bias=True)


def unet3d_brats(builder: LayerBuilder, batch: int) -> None:
    """Append MLPerf's 3D-UNet up to v1.1, on a whole BraTS 2019 scan of four modalities: 30 to 320 channels.

    MIC-DKFZ/nnUNet, network_architecture/generic_UNet.py (30 features at first, 320 at most, two convolutions per
    level, transposed ones without a bias; five downsamplings, after which no side is below 4);
    mlcommons/inference, vision/medical_imaging/3d-unet-brats19 (the scan).
    """
    _unet(builder, batch, (4, (224, 224, 160)), (30, 60, 120, 240, 320, 320), classes=4, up_bias=False)


def _unet(
    builder: LayerBuilder, batch: int, volume: Volume, widths: tuple[int, ...], classes: int, up_bias: bool
) -> None:
    levels = []
    for level, width in enumerate(widths):
        volume = _conv(builder, f"down {level}a", batch, volume, width, 3, 1 if level == 0 else 2)
        volume = _conv(builder, f"down {level}b", batch, volume, width, 3)
        levels.append(volume)
    for level in reversed(range(len(widths) - 1)):
        into, small = volume
        width, sides = levels[level]
        rows, stored = batch * math.prod(small), into * width * 8
        moved = (rows * (into + 8 * width) + stored) * builder.size
        builder.write(f"up {level}", "gemm", 2 * rows * stored, moved, stored * builder.size, stored + width * up_bias,
                   {"m": rows, "n": 8 * width, "k": into})  # fmt: skip
        volume = _conv(builder, f"up {level}a", batch, (2 * width, sides), width, 3)
        volume = _conv(builder, f"up {level}b", batch, volume, width, 3)
    _conv(builder, "classifier", batch, volume, classes, 1, norm=False)
