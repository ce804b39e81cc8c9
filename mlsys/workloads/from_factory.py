"""User modules as workloads: ``package.module:factory``, at a batch, a sequence and an image size."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.workloads.argument_checks import checked_shape, checked_size
from mlsys.workloads.factory import module_of
from mlsys.workloads.torch_import.assemble import TORCH_DTYPES
from mlsys.workloads.torch_import.batch_axis import batch_axes, with_batch_axis
from mlsys.workloads.torch_import.build import arguments_of, from_torch, runnable
from mlsys.workloads.torch_import.faults import fault_of
from mlsys.workloads.torch_import.guess import as_placed, guessed_inputs
from mlsys.workloads.torch_import.lengths import compared_axes, image_axes, sequence_axes
from mlsys.workloads.torch_import.module_inputs import Axes, ModuleInputs
from mlsys.workloads.torch_import.probe import PastTableError
from mlsys.workloads.torch_import.untouched import untouched
from mlsys.workloads.torch_models import torch_dtype

if TYPE_CHECKING:
    from mlsys.workloads.workload import Workload

_MOST_AXES = 16
_MOST_COPIED = 2**32  # weight bytes of a module that may be built a second time, on the CPU
NO_BATCH = "no axis of the inputs is a batch: a pass counts as one sample"
NO_SIZES = (
    "the module is captured but cannot be run without data ({why}), so which axes of its inputs are the batch and the "
    "sequence is unknown: a pass counts as one sample"
)


def from_factory(
    model: str,
    given: Mapping[str, int],
    shape: tuple[int, ...] | None,
    precision: str | None,
    option: str,
) -> Workload:
    """Return the module made by ``package.module:factory`` as a workload.

    The batch, sequence and image axes are found by running the module without data; ``sizes`` of the result names those
    that exist.

    Parameters
    ----------
    model
        ``package.module:factory``.
    given
        The given values of ``batch``, ``sequence`` and ``image``.
    shape
        Shape of its only input, or None.
    precision
        Number format of weights and inputs, or None for that of the factory.
    option
        Format in which errors write the name of an argument.

    Raises
    ------
    ArgumentError
        If the module cannot be run, or has no axis for a given size.

    Examples
    --------
    >>> work = from_factory("torch.nn:Identity", {"batch": 3}, (1, 8), None, "`{}`")
    >>> dict(work.sizes)
    {'batch': 3}
    """
    _check_shape(shape, given, option)
    with contextlib.ExitStack() as stack:
        return _counted(model, given, shape, precision, option, stack)


def _counted(
    model: str,
    given: Mapping[str, int],
    shape: tuple[int, ...] | None,
    precision: str | None,
    option: str,
    stack: contextlib.ExitStack,
) -> Workload:
    """Return the workload; the module's state before moving and converting it is restored by the stack."""
    captured_in = None if precision is None else precision if precision in TORCH_DTYPES else "fp32"
    module, inputs, name = _made(model, captured_in, stack)
    if isinstance(inputs, tuple | list | dict) and not inputs:
        raise ArgumentError(
            f"{model!r} returns no example inputs, and a module without inputs cannot be counted. Let forward() accept "
            "a tensor, and return it together with the module"
        )
    if inputs is None:
        inputs = guessed_inputs(module, shape, **given, precision=captured_in or "fp32", option=option)
    elif shape is not None:
        inputs = _of_shape(inputs, shape, option)
    inputs_run = ModuleInputs(module, as_placed(inputs, captured_in, _device(module)))
    if inputs_run.run() is None and "meta" in str(inputs_run.error).lower() and _bytes(module) <= _MOST_COPIED:
        stack.close()
        module, _, _ = module_of(model, meta=False)  # its code creates tensors on the CPU, whatever its inputs
        module = _in_format(stack.enter_context(untouched(_runnable(model, module))), captured_in)
        inputs_run = ModuleInputs(module, as_placed(inputs, captured_in, "cpu"))
    sized = _Sized(model, inputs_run, option)
    sized.set_batch(given.get("batch"), shape)
    sized.set_sequence(given.get("sequence"))
    sized.set_image(given.get("image"))
    args, kwargs = sized.given.arguments()
    if sized.given.run() is None and isinstance(sized.given.error, PastTableError):
        raise ArgumentError(f"{model!r}: {fault_of(module, args, kwargs, sized.given.error)}")
    try:
        workload = from_torch(module, kwargs or args, name=name)
    except ArgumentError as error:
        raise ArgumentError(f"{model!r}: {str(error).removeprefix('from_torch(): ')}") from error
    if precision == captured_in is not None and workload.precision != precision:
        sized.notes.append(f"precision {precision} has no effect: all numbers are whole or complex")
    workload = replace(
        workload,
        recipe=f"factory {model}",
        sizes=FrozenDict(sized.sizes),
        notes=(*sized.notes, *workload.notes),
    )
    return workload if precision == captured_in else workload.stored_as(str(precision))


def _check_shape(shape: tuple[int, ...] | None, given: Mapping[str, int], option: str) -> None:
    if shape is None:
        return
    if len(shape) > _MOST_AXES:
        raise ArgumentError(f"{option.format('shape')} must have at most {_MOST_AXES} sizes, got {len(shape)}")
    for size in shape:
        checked_size(option.format("shape"), size)
    checked_shape(shape)
    for name in ("sequence", "image"):
        if name in given:
            raise ArgumentError(
                f"{option.format(name)} conflicts with {option.format('shape')}, which has all sizes. Give one of them"
            )


def _of_shape(inputs: Any, shape: tuple[int, ...], option: str) -> Any:
    """Return the inputs with the shape of their only tensor replaced."""
    args, kwargs = arguments_of(inputs)
    tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    if len(tensors) != 1:
        raise ArgumentError(
            f"{option.format('shape')} applies to modules with one input, but the factory returns {len(tensors)}. "
            f"Change the factory, or give {option.format('batch')}"
        )
    args, kwargs = pytree.tree_map(
        lambda leaf: leaf.new_zeros(shape) if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs)
    )
    return kwargs or args


def _made(model: str, precision: str | None, stack: contextlib.ExitStack) -> tuple[nn.Module, Any, str]:
    """Return module, inputs or None, and name; without allocated weights if the factory supports it."""
    try:
        module, inputs, name = module_of(model, meta=True)
        module = stack.enter_context(untouched(_runnable(model, module)))
        return _in_format(_without_data(module), precision), inputs, name
    except ArgumentError as refused:  # quantisation, for example, needs real weights
        try:
            module, inputs, name = module_of(model, meta=False)
            module = stack.enter_context(untouched(_runnable(model, module)))
        except ArgumentError:
            raise refused from None
        return _in_format(module, precision), inputs, name


def _without_data(module: nn.Module) -> nn.Module:
    """Return the module on the meta device, where tensors that layers share stay one; ``to()`` makes copies of them."""
    tables: list[dict[str, Any]] = [table for part in module.modules() for table in (part._parameters, part._buffers)]
    places = [(table, name, id(tensor)) for table in tables for name, tensor in table.items() if tensor is not None]
    module.to(device="meta")
    moved: dict[int, Any] = {}
    for table, name, tensor in places:
        table[name] = moved.setdefault(tensor, table[name])
    return module


def _runnable(model: str, module: nn.Module) -> nn.Module:
    try:
        return runnable(module)
    except ArgumentError as error:
        raise ArgumentError(f"{model!r}: {str(error).removeprefix('from_torch(): ')}") from error


def _in_format(module: nn.Module, precision: str | None) -> nn.Module:
    return module if precision is None else module.to(dtype=torch_dtype(precision))


def _held(module: nn.Module) -> Iterator[torch.Tensor]:
    return itertools.chain(module.parameters(), module.buffers())


def _device(module: nn.Module) -> str:
    return next((tensor.device.type for tensor in _held(module)), "meta")


def _bytes(module: nn.Module) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in _held(module))


@dataclass
class _Sized:
    """Inputs whose sizes are set one after the other, the sizes that exist, and notes."""

    model: str
    given: ModuleInputs
    option: str
    batch: Axes = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def set_batch(self, size: int | None, shape: tuple[int, ...] | None) -> None:
        self.batch = batch_axes(self.given)
        if not self.batch and size is not None:
            added = with_batch_axis(self.given)
            if added is None:
                raise self._refused("batch", size, "is a batch")
            self.given, self.batch = added
            self.notes.append("the inputs of the factory have no batch axis: one was added")
        extent = self.given.extent(self.batch)
        if shape is not None and size is not None and extent not in (1, size):
            raise ArgumentError(
                f"{self.option.format('shape')} has a batch of {extent}, {self.option.format('batch')} is {size}. "
                "Give one of them"
            )
        if extent == 0:
            raise ArgumentError(f"{self.model!r} has inputs with a batch of 0: {self.given.described()}")
        self._set("batch", self.batch, size)
        if self.given.run() is None and self.given.error is not None:
            self.notes.append(NO_SIZES.format(why=self._fault()))
        elif not self.batch:
            self.notes.append(NO_BATCH)

    def set_sequence(self, size: int | None) -> None:
        axes = sequence_axes(self.given, self.batch)
        compared = compared_axes(self.given, self.batch) if size is not None and not axes else {}
        if compared and not image_axes(self.given):
            raise self._which_length(size, compared)
        self._set("sequence", axes, size, "holds a sequence that can be changed")

    def set_image(self, size: int | None) -> None:
        self._set("image", image_axes(self.given), size, "holds images")

    def _set(self, name: str, axes: Axes, size: int | None, what: str = "") -> None:
        if size is not None:
            if not axes:
                raise self._refused(name, size, what)
            self.given = self.given.with_shapes(self.given.resized(axes, size))
            if self.given.run() is None and self.given.error is not None:
                raise ArgumentError(
                    f"{self.option.format(name)} {size} does not apply to {self.model!r}: {self._fault()}"
                )
        extent = self.given.extent(axes)
        if extent is not None:
            self.sizes[name] = extent

    def _fault(self) -> str:
        """Return the error that ended the last run, in words."""
        assert self.given.error is not None
        return fault_of(self.given.module, *self.given.arguments(), self.given.error)

    def _which_length(self, size: int | None, compared: Axes) -> ArgumentError:
        """Return the error for inputs of several lengths, such as those of queries and keys."""
        places = " and ".join(
            f"axis {axis} of input {tensor_index + 1} ({self.given.shapes[tensor_index][axis]})"
            for tensor_index, axes in compared.items()
            for axis in axes
        )
        return ArgumentError(
            f"{self.option.format('sequence')} {size} does not apply to {self.model!r}: its inputs, "
            f"{self.given.described()}, have independent lengths, {places} among them, and one number is "
            "ambiguous. Return inputs of the intended lengths from the factory, or name the length in Python, such as "
            f"from_torch(module, inputs, dynamic={{'keys': {{'k': 2, 'v': 2}}}}).at(keys={size})"
        )

    def _refused(self, name: str, size: int, what: str) -> ArgumentError:
        if self.given.run() is None and self.given.error is not None:
            return ArgumentError(f"{self.model!r} cannot be run on its inputs: {self._fault()}")
        return ArgumentError(
            f"{self.option.format(name)} {size} does not apply to {self.model!r}: no axis of its inputs, "
            f"{self.given.described()}, {what}. Omit it, or change the inputs that the factory returns"
        )
