"""The inputs of a module as tensors whose sizes can be changed, and the module's runs on them without data."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from mlsys.workloads.argument_checks import checked_shape
from mlsys.workloads.torch_import.build import arguments_of
from mlsys.workloads.torch_import.capture import placed
from mlsys.workloads.torch_import.probe import Probe, Shape, probe

Axes = dict[int, tuple[int, ...]]  # of each tensor by its index among the inputs, the axes that one size sets

_MOST_CHOICES = 4096


@dataclass
class ModuleInputs:
    """The inputs of a module, and its runs on them.

    Attributes
    ----------
    module
        The module.
    inputs
        A tensor, a tuple of arguments, or a dict of them. A tensor given twice stands for two inputs.

    Examples
    --------
    >>> given = ModuleInputs(nn.Linear(8, 4, device="meta"), torch.zeros(2, 8, device="meta"))
    >>> given.shapes, given.run(((3, 8),)).macs
    (((2, 8),), 96)
    """

    module: nn.Module
    inputs: Any
    error: Exception | None = field(default=None, init=False)  # that ended the last run
    _runs: dict[tuple[Shape, ...], Probe | None] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self._leaves, self._spec = pytree.tree_flatten(placed(self.module, arguments_of(self.inputs)))
        self._places = [
            tensor_index for tensor_index, leaf in enumerate(self._leaves) if isinstance(leaf, torch.Tensor)
        ]

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Every tensor among the inputs, in order."""
        return tuple(self._leaves[tensor_index] for tensor_index in self._places)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shape of every tensor among the inputs, in order."""
        return tuple(tuple(tensor.shape) for tensor in self.tensors)

    def described(self) -> str:
        """Return the shapes of the inputs in words."""
        return ", ".join(map(str, self.shapes)) or "no tensor"

    def arguments(self, shapes: Iterable[Shape] | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return positional and named arguments, with tensors of other shapes if these are given."""
        leaves = list(self._leaves)
        for tensor_index, tensor, shape in zip(self._places, self.tensors, shapes or self.shapes, strict=True):
            leaves[tensor_index] = tensor if tuple(tensor.shape) == shape else tensor.new_zeros(checked_shape(shape))
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return args, kwargs

    def with_shapes(self, shapes: Iterable[Shape]) -> ModuleInputs:
        """Return the same inputs with tensors of other shapes."""
        args, kwargs = self.arguments(shapes)
        return ModuleInputs(self.module, kwargs or args)

    def resized(self, axes: Axes, extent: int) -> tuple[Shape, ...]:
        """Return the shapes of the inputs with some axes at another extent."""
        shapes = [list(shape) for shape in self.shapes]
        for tensor_index, chosen in axes.items():
            for axis in chosen:
                shapes[tensor_index][axis] = extent
        return tuple(tuple(shape) for shape in shapes)

    def extent(self, axes: Axes) -> int | None:
        """Return the extent of some axes, or None where there are none or their extents differ."""
        extents = {self.shapes[tensor_index][axis] for tensor_index, chosen in axes.items() for axis in chosen}
        return extents.pop() if len(extents) == 1 else None

    def run(self, shapes: tuple[Shape, ...] | None = None) -> Probe | None:
        """Return which operators the module calls on inputs of these shapes; None where it cannot be run on them."""
        wanted = self.shapes if shapes is None else shapes
        if wanted not in self._runs:
            try:
                self._runs[wanted] = probe(self.module, *self.arguments(wanted))
            except Exception as error:  # whatever the user's code raises
                self._runs[wanted], self.error = None, error
        return self._runs[wanted]

    def likely_samples(self) -> list[int]:
        """Return the places of the tensors, those first that are most likely to hold samples: the most axes."""
        shapes = self.shapes
        return sorted(
            (tensor_index for tensor_index, shape in enumerate(shapes) if shape),
            key=lambda tensor_index: -len(shapes[tensor_index]),
        )

    def together(self, tensor_index: int, choices: Callable[[Shape], list[tuple[int, ...]]]) -> Iterator[Axes]:
        """Yield axes of all other tensors, from the ``choices`` for a shape; tensors of equal shape get the same."""
        by_shape: dict[tuple[Shape, bool], list[int]] = {}
        for other, tensor in enumerate(self.tensors):
            if other != tensor_index:
                by_shape.setdefault((self.shapes[other], tensor.is_floating_point()), []).append(other)
        groups = [(others, choices(shape)) for (shape, _), others in by_shape.items()]
        for chosen in itertools.islice(itertools.product(*(axes for _, axes in groups)), _MOST_CHOICES):
            yield {other: axes for (others, _), axes in zip(groups, chosen, strict=True) if axes for other in others}
