"""Count kernels: what eager PyTorch dispatches, and what the code that Inductor wrote launches."""

import ast
from collections.abc import Callable, Iterable
from typing import NamedTuple

_NO_KERNELS = ("aten::empty", "aten::new_empty", "aten::empty_like", "aten::empty_strided", "aten::_unsafe_view")
_LIBRARIES = ("extern_kernels", "torch", "aten")
_MAKERS = ("cpp_pybinding", "cpp", "triton")


class Launches(NamedTuple):
    """Kernels that compiled code launches in one call.

    Attributes
    ----------
    generated
        Loops that Inductor wrote itself.
    library
        Calls of a library: products and convolutions.
    """

    generated: int
    library: int


def dispatched(run: Callable[[], object]) -> int:
    """Return how many ATen operators ``run`` dispatches; views and bare allocations are none.

    Examples
    --------
    >>> import torch
    >>> x = torch.ones(4, 4)
    >>> dispatched(lambda: (x @ x).t().relu())
    2
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Count(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            if not func.is_view and func.name().partition(".")[0] not in _NO_KERNELS:
                seen.append(func)
            return func(*args, **(kwargs or {}))

    with Count():  # type: ignore[no-untyped-call]
        run()
    return len(seen)


def count_launches(sources: Iterable[str]) -> Launches:
    """Return the kernels launched by wrappers that Inductor wrote, one source for each graph.

    Examples
    --------
    >>> count_launches(['''
    ... cpp_fused_relu_0 = async_compile.cpp_pybinding(['float*'], "...")
    ... def call(args):
    ...     extern_kernels.mm(a, b, out=c)
    ...     cpp_fused_relu_0(c)
    ... '''])
    Launches(generated=1, library=1)
    """
    generated = library = 0
    for source in sources:
        tree = ast.parse(source)
        written = {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute) and node.value.func.attr in _MAKERS
            for target in node.targets
            if isinstance(target, ast.Name)
        }  # fmt: skip
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and function.name == "call":
                for node in ast.walk(function):
                    if isinstance(node, ast.Call):
                        generated += isinstance(node.func, ast.Name) and node.func.id in written
                        library += _is_library(node.func)
    return Launches(generated, library)


def _is_library(called: ast.expr) -> bool:
    """Tell ``extern_kernels.mm`` and ``torch.ops.mkldnn._linear_pointwise.default`` from anything else."""
    parts = []
    while isinstance(called, ast.Attribute):
        parts.append(called.attr)
        called = called.value
    if not isinstance(called, ast.Name) or called.id not in _LIBRARIES:
        return False
    return called.id != "torch" or (len(parts) >= 3 and parts[-1] == "ops")
