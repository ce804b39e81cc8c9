"""A count of any NumPy type gives the answer of the same count as a Python integer: nothing overflows in silence.

The examples in the docstrings are the oracle: each is run again with its whole numbers as NumPy integers.
"""

import ast
import doctest
import importlib
import inspect
import io
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mlsys
from mlsys import Q_, formulas
from mlsys.errors import ArgumentError
from mlsys.hardware import Hardware
from mlsys.models import roofline
from mlsys.workloads import (
    Operator,
    attention,
    conv2d,
    decode_step,
    dense,
    depthwise_conv2d,
    elementwise,
    gemm,
    layer_norm,
    relu,
    softmax,
)

TYPES = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
OPTIONAL = ("widgets", "torch_import", "torch_models", "mlsys.bench", "mlsys.explain", "__main__")
# Examples that show a number as it was given, or the type of it.
SHOWN_AS_GIVEN = {"label_of"}


class Narrowed(ast.NodeTransformer):
    """Write the whole numbers given to functions of the package as NumPy integers, where they fit."""

    def __init__(self, names: dict[str, Any], dtype: type[np.integer[Any]]) -> None:
        self.names, self.dtype, self.changed = names, dtype, 0

    def _number(self, node: ast.expr) -> ast.expr:
        whole = isinstance(node, ast.Constant) and type(node.value) is int
        if not whole or node.value > np.iinfo(self.dtype).max:  # type: ignore[attr-defined]
            return node
        self.changed += 1
        kind = ast.Attribute(ast.Name("np", ast.Load()), self.dtype.__name__, ast.Load())
        return ast.Call(kind, [node], [])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        owner = node.func
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        called = self.names.get(owner.id) if isinstance(owner, ast.Name) else None
        if str(getattr(called, "__module__", "")).startswith("mlsys"):
            node.args = [self._number(argument) for argument in node.args]
            for named in node.keywords:
                named.value = self._number(named.value)
        return node


def public() -> Iterator[tuple[str, Any]]:
    """Yield what the packages export, and the public methods of their classes."""
    seen = set()
    for info in pkgutil.walk_packages(mlsys.__path__, "mlsys."):
        if any(part in info.name for part in OPTIONAL):
            continue
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if id(value) in seen or not callable(value) or name in SHOWN_AS_GIVEN:
                continue
            seen.add(id(value))
            yield name, value
            if inspect.isclass(value):
                yield from ((f"{name}.{key}", method) for key, method in vars(value).items() if key[0] != "_")


def narrowed(name: str, value: Any, dtype: type[np.integer[Any]]) -> doctest.DocTest | None:
    """The example of a function with NumPy integers; None where it has no whole number."""
    text = inspect.getdoc(value) or ""
    home = sys.modules.get(getattr(value, "__module__", None) or "")
    names = {**(vars(home) if home else {}), "np": np}
    changed, examples = 0, []
    for example in doctest.DocTestParser().get_examples(text):
        tree = ast.parse(example.source)
        for line in tree.body:
            if isinstance(line, (ast.Import, ast.ImportFrom)):
                exec(compile(ast.Module([line], []), name, "exec"), names)
        writer = Narrowed(names, dtype)
        tree = ast.fix_missing_locations(writer.visit(tree))
        changed += writer.changed
        examples.append(doctest.Example(f"{ast.unparse(tree)}\n", example.want, example.exc_msg))
    return doctest.DocTest(examples, names, name, None, 0, None) if changed else None


@pytest.mark.parametrize("dtype", [np.int8, np.uint16])
def test_every_documented_example_holds_with_numpy_integers(dtype: type[np.integer[Any]]) -> None:
    wrong, run = [], 0
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in public():
            test = narrowed(name, value, dtype)
            if test is None:
                continue
            run += 1
            stream = io.StringIO()
            if doctest.DocTestRunner(optionflags=options, verbose=False).run(test, out=stream.write).failed:
                wrong.append(f"{name}: {stream.getvalue()[-600:]}")
    assert not wrong, "\n".join(wrong)
    assert run > 80


SIZES = st.integers(1, 127)
MAKERS: dict[str, tuple[Callable[..., Any], int]] = {
    "gemm": (gemm, 3),
    "dense": (dense, 3),
    "conv2d": (lambda b, i, o, size: conv2d(b, i, o, size, 3), 4),
    "strided conv2d": (lambda b, i, o, s: conv2d(b, i, o, size=100, kernel=3, stride=s, padding=1), 4),
    "depthwise_conv2d": (depthwise_conv2d, 3),
    "elementwise": (elementwise, 4),
    "relu": (relu, 1),
    "layer_norm": (layer_norm, 2),
    "softmax": (softmax, 2),
    "attention": (attention, 5),
    "decode_step": (lambda batch: decode_step(Q_(1.5, "Gparam"), batch), 1),
    "gemm_macs": (formulas.gemm_macs, 3),
    "attention_macs": (formulas.attention_macs, 5),
    "conv2d_macs": (lambda *sizes: formulas.conv2d_macs(*sizes, 3, 3), 5),
}


@pytest.mark.parametrize("maker", MAKERS)
@given(data=st.data())
def test_an_operator_of_numpy_integers_is_that_of_python_integers(maker: str, data: st.DataObject) -> None:
    function, counts = MAKERS[maker]
    sizes = data.draw(st.lists(SIZES, min_size=counts, max_size=counts))
    given_as = [data.draw(st.sampled_from(TYPES))(size) for size in sizes]
    assert _parts(function(*given_as)) == _parts(function(*sizes))


@given(st.sampled_from([np.int64, np.uint64, np.int32]), st.integers(2**20, 2**31 - 1))
def test_large_counts_do_not_wrap_around(dtype: Any, size: int) -> None:
    assert formulas.gemm_macs(dtype(size), dtype(size), dtype(size)).m_as("MAC") == size**3
    assert gemm(dtype(size), dtype(size), dtype(size)).flops.m_as("FLOP") == 2 * size**3


def _parts(answer: Any) -> Any:
    if isinstance(answer, Operator):
        assert all(type(size) in (int, float) for size in (*answer.shape.values(), answer.parameters))
        return repr(answer), answer.shape, answer.flops, answer.data, answer.weights, answer.products
    return answer


def test_a_product_of_numpy_integers_is_bound_by_compute() -> None:
    n = np.int32(4096)
    answer = roofline(Hardware["A100_80GB"], gemm(n, n, n))
    assert answer.time.m_as("us") == pytest.approx(2 * 4096**3 / 312e6, rel=1e-3)


@given(st.sampled_from([*TYPES, np.float16, np.float32]), st.integers(1, 127))
def test_a_quantity_holds_python_numbers(dtype: Any, size: int) -> None:
    bits = size * 8192
    assert Q_(dtype(size), "KiB").to("bit").m == bits
    assert Q_(np.array(size, dtype), "KiB").to("bit").m == bits
    for several in (np.array([size], dtype), [dtype(size)], (dtype(size),), [np.array(size, dtype)]):
        assert Q_(several, "KiB").to("bit").m.tolist() == [bits]
    assert Q_([[dtype(size)]], "KiB").to("bit").m.tolist() == [[bits]]
    for product in (dtype(size) * Q_(1000, "KiB"), Q_(1000, "KiB") * dtype(size)):
        assert product.m_as("KiB") == 1000 * size
    assert (np.array([size], dtype) * Q_(1000, "KiB")).m.tolist() == [1000 * size]
    assert (np.multiply(np.array([size], dtype), Q_(1000, "KiB"))).m.tolist() == [1000 * size]


@pytest.mark.parametrize("bad", [np.array([[64]]), np.array([64]), np.bool_(True), True, np.array([]), "64", None])
def test_what_is_no_count_is_refused(bad: Any) -> None:
    for call in (lambda: gemm(bad, 64, 64), lambda: relu(bad), lambda: attention(1, bad, 8, 8, 8)):
        with pytest.raises((ArgumentError, TypeError)):
            call()


def test_an_empty_array_has_no_ridge_point() -> None:
    empty = Q_(np.array([]), "FLOP/s")
    with pytest.raises(ArgumentError, match="ridge_point"):
        formulas.ridge_point(empty, Q_(1.0, "TB/s"))


def test_a_refusal_shows_the_number_not_its_type() -> None:
    with pytest.raises(ArgumentError, match=r"got 0\. Write e\.g\. batch=1"):
        attention(np.int32(0), 8, 8, 8, 8)
