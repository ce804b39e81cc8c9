"""Detection of the sequence axes of a module's inputs, and of the height and width of images."""

import itertools
from collections.abc import Iterator

from mlsys.workloads.torch_import.module_inputs import Axes, ModuleInputs
from mlsys.workloads.torch_import.probe import Probe, Shape

_MOST_RUNS = 16  # for one axis; each costs a pass without data
_CHANNELS = (1, 3, 4)  # of images that no convolution sees as they are


def image_axes(given: ModuleInputs) -> Axes:
    """Return the axes of height and width of each tensor of images; nothing where there is none.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> image_axes(ModuleInputs(nn.Conv2d(3, 8, 3, device="meta"), torch.zeros(2, 3, 32, 32, device="meta")))
    {0: (2, 3)}
    """
    base = given.run()
    if base is None:
        return {}
    windows, volumes = base.windows(2), base.windows(3)
    alone = len(given.tensors) == 1 and not windows and not volumes  # patches cut by reshaping
    axes: Axes = {}
    for tensor_index, (shape, tensor) in enumerate(zip(given.shapes, given.tensors, strict=True)):
        count = len(shape)
        if not tensor.is_floating_point() or count < 3:
            continue
        if shape[-2:] in windows or shape[-3:] in volumes or (alone and _is_image(shape[1:])):
            axes[tensor_index] = (count - 2, count - 1)
        elif count == 4 and (shape[1:3] in windows or (alone and _is_image((shape[3], *shape[1:3])))):
            axes[tensor_index] = (1, 2)
    return axes


def _is_image(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 and shape[0] in _CHANNELS and shape[1] == shape[2]


def sequence_axes(given: ModuleInputs, batch: Axes) -> Axes:
    """Return the axes that hold tokens or time steps, by tensor; nothing where the inputs have no sequence.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> lstm = ModuleInputs(nn.LSTM(8, 4, device="meta"), torch.zeros(5, 2, 8, device="meta"))
    >>> sequence_axes(lstm, {0: (1,)})
    {0: (0,)}
    """
    base = given.run()
    if base is None or image_axes(given):
        return {}
    learned = next(given.module.parameters(), None) is not None
    for tensor_index in given.likely_samples():
        free: dict[int, tuple[Axes, int, Probe]] = {}
        whole = not given.tensors[tensor_index].is_floating_point()
        if whole and len(given.shapes[tensor_index]) > 2:
            continue
        for axis in range(len(given.shapes[tensor_index])):
            if axis not in batch.get(tensor_index, ()):
                changed = _changed(given, tensor_index, axis, batch)
                if changed is not None:
                    free[axis] = changed
        if not learned and not any(_order_matters(base, run) for _, _, run in free.values()):
            continue
        chosen = _sequence_among(free, base, len(given.shapes[tensor_index]), whole, batch.get(tensor_index, (0,))[0])
        if chosen is not None:
            return free[chosen][0]
    return {}


def compared_axes(given: ModuleInputs, batch: Axes) -> Axes:
    """Return, by tensor, the axes along which values are compared or windowed: one for each separate sequence.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> class Attention(nn.Module):
    ...     def forward(self, q, k, v):
    ...         return nn.functional.scaled_dot_product_attention(q, k, v)
    >>> shapes = (1, 2, 4, 8), (1, 2, 10, 8), (1, 2, 10, 16)
    >>> given = ModuleInputs(Attention(), tuple(torch.zeros(shape, device="meta") for shape in shapes))
    >>> compared_axes(given, {index: (0,) for index in range(3)})
    {1: (2,), 2: (2,)}
    """
    base = given.run()
    found: dict[int, set[int]] = {}
    for tensor_index, shape in enumerate(given.shapes if base else ()):
        for axis in set(range(len(shape))).difference(batch.get(tensor_index, ())):
            changed = _changed(given, tensor_index, axis, batch)
            if base and changed and _order_matters(base, changed[2]):
                for other, axes in changed[0].items():
                    found.setdefault(other, set()).update(axes)
    return {tensor_index: tuple(sorted(axes)) for tensor_index, axes in sorted(found.items())}


def _changed(given: ModuleInputs, tensor_index: int, axis: int, batch: Axes) -> tuple[Axes, int, Probe] | None:
    """Return the axes that change with one, the factor by which they were changed, and the run; None if it is fixed."""
    old = given.shapes[tensor_index][axis]
    for new in (2 * old, old // 2):
        for axes in itertools.islice(_with_companions(given, tensor_index, axis, batch), _MOST_RUNS):
            run = given.run(given.resized(axes, new)) if new else None
            if run is not None and run != given.run():
                return axes, 2 if new > old else -2, run
    return None


def _with_companions(given: ModuleInputs, tensor_index: int, axis: int, batch: Axes) -> Iterator[Axes]:
    """Yield the axis with those of other tensors that may be as long by necessity: all of them first."""
    extent = given.shapes[tensor_index][axis]
    taken = {given.shapes[other]: axes for other, axes in batch.items()}

    def choices(shape: Shape) -> list[tuple[int, ...]]:
        same_size = tuple(
            each for each, size in enumerate(shape) if size == extent and each not in taken.get(shape, ())
        )
        return list(dict.fromkeys([same_size, *((each,) for each in same_size), ()]))

    for others in given.together(tensor_index, choices):
        yield {tensor_index: (axis,), **others}


def _sequence_among(
    free: dict[int, tuple[Axes, int, Probe]], base: Probe, axes: int, whole: bool, batch: int
) -> int | None:
    """Return the free axis that holds the sequence, or None."""
    if whole or not free:
        return next(iter(free), None)
    mixing = [axis for axis, (_, _, run) in free.items() if _order_matters(base, run)]
    if axes < 3:  # rows of numbers are a sequence if something slides over them, steps along them or compares them
        return mixing[0] if len(mixing) == 1 else None
    if len(free) == 1:
        return next(iter(free))
    quadratic = [
        axis
        for axis, (_, factor, run) in free.items()
        if (run.macs > 2 * base.macs if factor > 0 else 2 * run.macs < base.macs)
    ]
    if len(quadratic) == 1:
        return quadratic[0]
    usual = 1 - batch if batch < 2 else 1
    return usual if axes == 3 and usual in free else None


def _order_matters(base: Probe, run: Probe) -> bool:
    """Return whether a run on a longer axis compares values along it, windows over them, or calls other operators."""
    return base.along() != run.along()
