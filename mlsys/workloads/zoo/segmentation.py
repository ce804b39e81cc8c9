"""U-Net of volumes, as MLPerf runs it."""

from __future__ import annotations

from typing import TypeAlias

from mlsys.workloads.zoo.tape import Tape

Volume: TypeAlias = tuple[int, int]  # channels, side


def _conv(
    tape: Tape, name: str, batch: int, volume: Volume, out: int, kernel: int, stride: int = 1, norm: bool = True
) -> Volume:
    """Append a 3-D convolution that keeps the size at stride 1; return the volume after it."""
    into, side = volume
    after = (side + 2 * (kernel // 2) - kernel) // stride + 1
    stored = out * into * kernel**3
    moved = (batch * (into * side**3 + out * after**3) + stored) * tape.size
    shape = {"batch": batch, "in_channels": into, "out_channels": out, "groups": 1, "stride": stride}
    shape |= {f"out_{axis}": after for axis in ("depth", "height", "width")}
    shape |= {f"kernel_{axis}": kernel for axis in ("depth", "height", "width")}
    held = stored + (2 * out if norm else out)
    tape.write(name, "conv3d", 2 * batch * after**3 * stored, moved, stored * tape.size, held, shape)
    if norm:
        tape.ride_along(f"{name} norm", batch * out * after**3, 7)
        tape.activation(f"{name} relu", batch * out * after**3, "relu")
    return out, after


def unet3d(tape: Tape, batch: int, side: int = 128) -> None:
    """MLPerf's 3D-UNet on one window of a KiTS19 scan: 32 to 320 channels, five halvings, two convolutions a level.

    Isensee et al. 2021 (nnU-Net); mlcommons/training, image_segmentation/pytorch/model/unet3d.py.
    """
    widths = (32, 64, 128, 256, 320, 320)
    volume: Volume = (1, side)
    levels = []
    for level, width in enumerate(widths):
        volume = _conv(tape, f"down {level}a", batch, volume, width, 3, 1 if level == 0 else 2)
        volume = _conv(tape, f"down {level}b", batch, volume, width, 3)
        levels.append(volume)
    for level in reversed(range(5)):
        into, small = volume
        width, side = levels[level]
        rows, stored = batch * small**3, into * width * 8
        moved = (rows * (into + 8 * width) + stored) * tape.size
        tape.write(f"up {level}", "gemm", 2 * rows * stored, moved, stored * tape.size, stored + width,
                   {"m": rows, "n": 8 * width, "k": into})  # fmt: skip
        volume = _conv(tape, f"up {level}a", batch, (2 * width, side), width, 3)
        volume = _conv(tape, f"up {level}b", batch, volume, width, 3)
    _conv(tape, "classifier", batch, volume, 3, 1, norm=False)
