"""Error messages for a module that cannot be run: the layer, the operator, the shapes, and what to do."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

import mlsys
from mlsys.workloads.torch_import.capture import run_without_data
from mlsys.workloads.torch_import.probe import PastTableError

_LONGEST = 160
_NOT_THEIRS = tuple(str(Path(str(package.__file__)).parent) for package in (torch, mlsys))
_VALUES = frozenset({"item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__len__"})
_COMPILED = (
    "torch compiles a part of it, such as torch.cond or flex_attention, and that cannot be recorded. Give the branch "
    "that is taken, or the same in plain operators"
)
_GRADIENTS = frozenset({"backward", "grad"})


def fault_of(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception) -> str:
    """Return in one sentence why a module cannot be run on inputs, and in another what to do.

    The module is run again, without data, to see where it stops.

    Parameters
    ----------
    module, args, kwargs
        What cannot be run.
    error
        What was raised, which is put into words if the module does run.

    Examples
    --------
    >>> wrong = (torch.zeros(2, 9, device="meta"),)
    >>> print(fault_of(nn.Linear(8, 4, device="meta"), wrong, {}, RuntimeError()))
    the operator linear does not fit tensors of (2, 9), (4, 8), (4,). Check the shapes of the inputs
    """
    if isinstance(error, PastTableError):
        return f"{error}. Give a shorter sequence"
    last = _LastCall()
    with _layers(module) as layers:
        try:
            run_without_data(module, args, kwargs, last)
        except Exception as again:
            where = [*(layers.where or ()), *_line_of(again)]
            return ": ".join(filter(None, (", ".join(where), _words(again, last, layers.given))))
    where = _line_of(error)
    return ": ".join(filter(None, (", ".join(where), _untraceable(error))))


def _words(error: Exception, last: _LastCall, given: str) -> str:
    if last.name in _VALUES:
        return (
            f"the work depends on the values of a tensor (.{last.name.strip('_')}()), not only on shapes. Rewrite that "
            "branch, or give the part before it"
        )
    if type(error).__module__.startswith("torch._dynamo"):
        return _COMPILED
    if last.name in _GRADIENTS:
        return (
            f"{last.name}() has nothing to differentiate by: modules are run without gradients. Write the step under "
            "`with torch.enable_grad():`, with a weight or an input that requires a gradient"
        )
    if not _raised_by_torch(error):
        return f"its code raises {type(error).__name__}{_message(error)}. Check that it takes inputs of {given}"
    if last.name and len(last.devices) > 1:
        return (
            f"the operator {last.name} gets tensors of two devices. Make tensors in forward() on the device of an "
            "input, e.g. device=x.device"
        )
    if last.name and len(last.formats) > 1:
        return (
            f"the operator {last.name} gets tensors of {' and '.join(last.formats)}. Give inputs in the format of the "
            "weights: token numbers as torch.long"
        )
    if last.name == "embedding" and last.real:
        return "the operator embedding takes whole numbers. Give token numbers as torch.long"
    if last.name and last.shapes:
        return f"the operator {last.name} does not fit tensors of {last.shapes}. Check the shapes of the inputs"
    return f"it does not take inputs of {given}. Check their number and shapes"


def _untraceable(error: Exception) -> str:
    if type(error).__module__.startswith("torch._dynamo"):
        return _COMPILED
    text = str(error).lower()
    if "data-dependent" in text or "data dependent" in text or ".item" in text:
        return (
            "the work depends on the values of a tensor, not only on shapes. Rewrite that branch, or give the part "
            "before it"
        )
    return (
        f"its operators cannot be recorded ({type(error).__name__} in torch.export). Give a part of it, without hooks, "
        "threads and calls of other libraries"
    )


def _raised_by_torch(error: BaseException) -> bool:
    """Return whether torch, not the user's own code, raised an error."""
    frames = traceback.extract_tb(error.__traceback__)
    if frames and not frames[-1].filename.startswith(_NOT_THEIRS):
        return isinstance(error, RuntimeError) and "raise" not in (frames[-1].line or "")
    return True


def _line_of(error: BaseException) -> list[str]:
    """Return file and line of the user's code that raised an error; empty if only torch's code ran."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith((*_NOT_THEIRS, "<")) and "contextlib" not in frame.filename:
            return [f"{Path(frame.filename).name}:{frame.lineno}"]
    return []


def _message(error: Exception) -> str:
    text = " ".join(str(error).split())
    shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return f": {shown.rstrip('.')}" if shown else ""


class _Layers:
    def __init__(self) -> None:
        self.stack: list[tuple[str, str, str]] = []

    @property
    def where(self) -> tuple[str, ...]:
        """The innermost running layer, by name and kind; empty for the module itself."""
        path, kind, _ = self.stack[-1] if self.stack else ("", "", "")
        return (f"layer {path!r} ({kind})",) if path else ()

    @property
    def given(self) -> str:
        """The shapes that the innermost layer was given."""
        return self.stack[-1][2] if self.stack else "no shape"


@contextmanager
def _layers(module: nn.Module) -> Iterator[_Layers]:
    """Yield the running layers, including those left by an error."""
    names = {part: name for name, part in module.named_modules()}
    layers = _Layers()

    def enter(part: nn.Module, given: Any) -> None:
        layers.stack.append((names.get(part, ""), type(part).__name__, _shapes(given)))

    def leave(part: nn.Module, _: Any, __: Any) -> None:
        layers.stack.pop()

    before, after = register_module_forward_pre_hook(enter), register_module_forward_hook(leave)
    try:
        yield layers
    finally:
        before.remove()
        after.remove()


class _LastCall(TorchFunctionMode):
    """Record the operator that failed, and its arguments."""

    name = shapes = ""
    formats: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    real = False  # whether the first tensor holds floating-point numbers

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            return function(*args, **(kwargs or {}))
        except Exception:
            if not self.name:
                tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
                self.name, self.shapes = getattr(function, "__name__", ""), _shapes(tensors)
                floating = [tensor for tensor in tensors if tensor.is_floating_point()]
                counted = floating if len(floating) > 1 else tensors
                self.formats = tuple(sorted({str(tensor.dtype).removeprefix("torch.") for tensor in counted}))
                self.real = bool(floating) and floating[0] is tensors[0]
                self.devices = tuple(sorted({str(tensor.device) for tensor in tensors if tensor.dim()}))
            raise


def _shapes(values: Any) -> str:
    shapes = [tuple(leaf.shape) for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]
    return ", ".join(map(str, shapes)) or "no shape"
