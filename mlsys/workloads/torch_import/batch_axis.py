"""Detection of the batch axis of a module's inputs.

Positions do not say it: a mask has no batch, and an LSTM may take (sequence, batch, features). So the module is run,
without data, at two extents of an axis. An axis is the batch if the module then calls the same operators, if each makes
exactly as much as before or as many times as much as there are more samples, and if none combines values along it.
"""

import itertools
import math

from mlsys.workloads.torch_import.module_inputs import Axes, ModuleInputs
from mlsys.workloads.torch_import.probe import Probe, Shape

_MOST_RUNS = 64  # each costs a pass without data


def batch_axes(given: ModuleInputs) -> Axes:
    """Return the axis of the batch of each tensor that has one; nothing where the inputs have no batch.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> lstm = ModuleInputs(nn.LSTM(8, 4, device="meta"), torch.zeros(5, 2, 8, device="meta"))
    >>> unbatched = ModuleInputs(nn.Conv1d(8, 4, 3, device="meta"), torch.zeros(8, 50, device="meta"))
    >>> batch_axes(lstm), batch_axes(unbatched)
    ({0: (1,)}, {})
    """
    if given.run() is None:
        return {}
    candidates = itertools.islice(_candidates(given), _MOST_RUNS)
    return next((axes for axes in candidates if _is_batch(given, axes)), {})


def with_batch_axis(given: ModuleInputs) -> tuple[ModuleInputs, Axes] | None:
    """Return inputs with a batch axis of extent 1 added and that axis, if the module does the same work on them."""
    before = given.run()
    if before is None:
        return None
    shapes = given.shapes
    for axis, alone in itertools.product((0, 1), (False, True)):
        chosen = given.likely_samples()[: 1 if alone else None]
        axes: Axes = {tensor_index: (axis,) for tensor_index in chosen if len(shapes[tensor_index]) >= axis}
        wider = given.with_shapes(
            (*shape[:axis], 1, *shape[axis:]) if tensor_index in axes else shape
            for tensor_index, shape in enumerate(shapes)
        )
        after = wider.run() if axes else None
        if after is not None and after.macs == before.macs and _is_batch(wider, axes):
            return wider, axes
    return None


def _candidates(given: ModuleInputs) -> list[Axes]:
    """Return the axes that may be the batch, those first that are axes of the most tensors, then the usual ones."""
    ranked: list[tuple[int, Axes]] = []
    for axis, tensor_index in itertools.product((0, 1), given.likely_samples()):
        shape, whole = given.shapes[tensor_index], not given.tensors[tensor_index].is_floating_point()
        if len(shape) <= axis or (axis == 1 and len(shape) < (2 if whole else 3)):
            continue
        rows = len(shape) < 3 and not whole  # of a matrix or a sequence: then every other tensor has as many
        most = 2 if rows else 3 if axis else len(shape) + 1  # axes of the numbers that all samples may share
        for others in given.together(tensor_index, lambda other: _companions(other, axis, shape[axis])):  # noqa: B023
            axes: Axes = {tensor_index: (axis,), **others}
            left_out = [
                len(given.shapes[other])
                for other, tensor in enumerate(given.tensors)
                if other not in axes and tensor.is_floating_point() and tensor.dim() > 1
            ]
            if max(left_out, default=0) < most:
                ranked.append((len(left_out), axes))
    return [axes for _, axes in sorted(ranked, key=lambda candidate: candidate[0])]


def _companions(shape: Shape, axis: int, extent: int) -> list[tuple[int, ...]]:
    """Return the axes of another tensor that may be the same batch; none of them where it has no batch."""
    return [*((each,) for each in (axis, 1 - axis) if shape[each : each + 1] == (extent,)), ()]


def _is_batch(given: ModuleInputs, axes: Axes) -> bool:
    first, base = given.extent(axes), given.run()
    if first is None or base is None:
        return False
    small = max(first, 2)  # at 1, torch reshapes in other ways
    fewer, more = (given.run(given.resized(axes, extent)) for extent in (small, small + 1))
    if fewer is None or more is None or not _scales(fewer, more, small, small + 1):
        return False
    return base.macs == fewer.macs - (small - first) * (more.macs - fewer.macs)


def _scales(fewer: Probe, more: Probe, small: int, large: int) -> bool:
    """Return whether a run on ``large`` samples does the same work per sample as one on ``small``."""
    if len(fewer.steps) != len(more.steps):
        return False
    for before, after in zip(fewer.steps, more.steps, strict=True):
        if before.name != after.name or before.mixed != after.mixed or len(before.made) != len(after.made):
            return False
        for old, new in zip(before.made, after.made, strict=True):
            if math.prod(new) * small not in (math.prod(old) * large, math.prod(old) * small):
                return False
    returns_more = any(old != new for old, new in zip(fewer.returned, more.returned, strict=False))
    return returns_more or more.macs * small == fewer.macs * large > 0
