"""Program slicing of pages: the origins of a plain number, found from the source of the cells.

A quantity has an origin; a plain number, such as a fraction or a speedup, has none. Here its
expression is analysed instead: its names refer to results with an origin, or, through earlier
assignments, to values that the page sets.
"""

import ast
import contextlib
import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlsys.hardware import Device
from mlsys.hardware.catalogue import Catalogue
from mlsys.provenance import Origin, origins_within, recording, unrecorded

_DEPTH = 12
_LONG = 70  # characters of the longest expression that a table shows in full
_SHOWN = 3
_PLAIN = ("math", "mlsys", "numpy")  # modules whose functions add no facts to those of their arguments


@dataclass
class Basis:
    """Origins of an expression of a page.

    Attributes
    ----------
    text
        Source text of the expression.
    origins
        Origins of the results and quantities that it refers to.
    functions
        Functions of the package that it or the assignments behind it call.
    constants
        Constants of the package that it refers to.
    computed
        Whether it refers to a value whose computation is not in the cells.
    literal
        Whether it consists of literals only.
    """

    text: str
    origins: dict[int, Origin] = field(default_factory=dict)
    functions: dict[str, None] = field(default_factory=dict)
    constants: dict[str, None] = field(default_factory=dict)
    computed: bool = False
    literal: bool = False

    def add(self, origins: Iterable[Origin]) -> None:
        """Add origins, without duplicates."""
        for origin in origins:
            self.origins.setdefault(id(origin), origin)  # by identity, as different origins may print alike

    @property
    def facts(self) -> tuple[str, ...]:
        """Names of the facts that the expression depends on."""
        return tuple(dict.fromkeys(fact.name for origin in self.origins.values() for fact in origin.facts()))

    @property
    def compared(self) -> tuple[str, ...]:
        """Names of those facts that were only compared and enter no formula."""
        sets = {fact.name for origin in self.origins.values() for fact in origin.sets()}
        return tuple(name for name in self.facts if name not in sets)

    def formula(self, given: str) -> str | None:
        """Return a description of the origin of the value; None if it cannot be found in the cells.

        Parameters
        ----------
        given
            Description of a value that the page itself sets.
        """
        known = list(dict.fromkeys(origin.expression() for origin in self.origins.values()))
        known += [f"{name}()" for name in self.functions if not any(text.startswith(f"{name}(") for text in known)]
        known += self.constants
        if known:
            rest = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
            return f"{self.text}, of {'; '.join(known[:_SHOWN])}{rest}"
        if self.computed:
            return None
        return given if self.literal else f"{self.text}, of values that the page sets"


def bases_of(frame: types.FrameType | None) -> dict[str, Basis]:
    """Return the basis of each keyword argument of the running call in ``frame``; empty without source code."""
    call, space, statements = _running(frame)
    keywords = call.keywords if call is not None else ()
    return {each.arg: _basis(each.value, space, statements) for each in keywords if each.arg is not None}


def behind_call(frame: types.FrameType | None) -> tuple[Basis, set[str]]:
    """Return the basis of all arguments of the running call in ``frame``, and the page variables behind them."""
    call, space, statements = _running(frame)
    basis, names = Basis(""), set[str]()
    for argument in [*call.args, *(each.value for each in call.keywords)] if call is not None else []:
        _follow(argument, space, statements, basis, names, _DEPTH)
    fixed = (Device, Catalogue, types.ModuleType, type)
    return basis, {name for name in names if not isinstance(space.get(name), fixed)}


def _running(frame: types.FrameType | None) -> tuple[ast.Call | None, dict[str, Any], list[ast.stmt]]:
    """Return the running call in a frame, its namespace, and the statements of the page so far."""
    from executing import Source

    if frame is None:
        return None, {}, []
    try:
        running = Source.executing(frame)
    except Exception:  # no source code, or not analysable by the library
        return None, {}, []
    call = running.node
    if not isinstance(call, ast.Call):
        return None, {}, []
    space = {**frame.f_globals, **frame.f_locals}
    earlier = [tree for tree in map(_tree, _cells(space)) if tree is not None]
    own = getattr(running.source, "tree", None)
    lines = [*earlier, *([own] if isinstance(own, ast.Module) else [])]
    return call, space, [statement for tree in lines for statement in _statements(tree)]


@functools.lru_cache(maxsize=512)
def _statements(tree: ast.Module) -> tuple[ast.stmt, ...]:
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.stmt))


_run: list[str] = []


def watch_cells(begins: Callable[[str], None]) -> None:
    """Store the source of each cell that the kernel runs from now on, including the current one, and call ``begins``.

    IPython's list ``In`` stays empty under nbval, which keeps no history.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or not hasattr(shell, "kernel"):
        return

    def note(source: str) -> None:
        _run.append(source)
        begins(source)

    with contextlib.suppress(AttributeError, KeyError, LookupError):
        note(shell.kernel.get_parent("shell")["content"]["code"])
    shell.events.register("pre_run_cell", lambda info: note(info.raw_cell))


def names_assigned(cell: str) -> set[str]:
    r"""Return the names that a cell assigns, including functions.

    Examples
    --------
    >>> sorted(names_assigned("a, b = 1, 2\nfor c in (a, b):\n    d = c"))
    ['a', 'b', 'c', 'd']
    """
    tree = _tree(cell)
    nodes = list(ast.walk(tree)) if tree is not None else []
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored | {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def _cells(space: dict[str, Any]) -> Sequence[str]:
    cells = _run or space.get("In")  # the cells that have run so far
    return [cell for cell in cells if isinstance(cell, str)] if isinstance(cells, list) else []


@functools.lru_cache(maxsize=512)
def _tree(cell: str) -> ast.Module | None:
    try:
        return ast.parse(cell)
    except SyntaxError:
        return None


def _basis(expression: ast.expr, space: dict[str, Any], statements: list[ast.stmt]) -> Basis:
    shown: ast.AST = expression
    if isinstance(expression, ast.Name):
        lines = _assigned(expression.id, statements)
        if lines and not any(True for _ in origins_within(space.get(expression.id))):
            shown = lines[-1]
    text = ast.unparse(shown)
    basis = Basis(text if len(text) <= _LONG else f"{text[: _LONG - 1]}…")
    if len(text) > _LONG:
        basis.text = ast.unparse(expression) if len(ast.unparse(expression)) <= _LONG else "an expression of this page"
    basis.literal = not _names(shown)
    _follow(expression, space, statements, basis, set(), _DEPTH)
    return basis


def _names(tree: ast.AST) -> list[str]:
    return list(dict.fromkeys(name for name in _free(tree, frozenset()) if name != "Q_"))


def _free(node: ast.AST, bound: frozenset[str]) -> Iterator[str]:
    """Yield the free variables of an expression or a function."""
    if isinstance(node, ast.Name):
        if node.id not in bound:
            yield node.id
        return
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        bound |= _stored(*(generator.target for generator in node.generators))
    elif isinstance(node, (ast.Lambda, ast.FunctionDef)):
        parameters = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        bound |= parameters | (_stored(*node.body) if isinstance(node, ast.FunctionDef) else frozenset())
    for child in ast.iter_child_nodes(node):
        yield from _free(child, bound)


def _stored(*trees: ast.AST) -> frozenset[str]:
    nodes = (node for tree in trees for node in ast.walk(tree))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def _follow(
    tree: ast.AST, space: dict[str, Any], statements: list[ast.stmt], basis: Basis, seen: set[str], depth: int
) -> None:
    """Add the origins behind the names of an expression to ``basis``, recursively."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = space.get(node.value.id)
            if isinstance(owner, types.ModuleType) and owner.__name__ == "mlsys.constants":
                basis.add(origins_within(getattr(owner, node.attr, None)))
            elif isinstance(owner, types.ModuleType) and _of_the_package(getattr(owner, node.attr, None)):
                basis.functions[f"{node.value.id}.{node.attr}"] = None
    basis.add(_read_from_devices(tree, space))
    for name in _names(tree):
        if name in seen or depth == 0:
            continue
        seen.add(name)
        value = space.get(name)
        origins = list(origins_within(value))
        if origins:
            basis.add(origins)
        elif _of_the_package(value):
            basis.functions[name] = None
        elif isinstance(value, types.ModuleType):
            basis.computed |= value.__name__.partition(".")[0] not in _PLAIN
        elif not isinstance(value, (type, types.BuiltinFunctionType, Device, Catalogue)):
            lines = _assigned(name, statements)
            home = "" if lines else _imported(name, statements)
            if home:
                basis.constants[f"{home}.{name}"] = None
            basis.computed |= name in space and not lines and not home
            for line in lines[-1:] if not isinstance(value, types.FunctionType) else lines:
                _follow(line, space, statements, basis, seen, depth - 1)


def _read_from_devices(tree: ast.AST, space: dict[str, Any]) -> list[Origin]:
    """Return the facts that an expression reads from devices, such as ``h100.peak("fp16")``."""
    origins: list[Origin] = []
    for names in _bindings(tree, space):
        for node in ast.walk(tree):
            if not isinstance(node, (ast.Attribute, ast.Call)) or not isinstance(names.get(_root(node)), Device):
                continue
            with (
                contextlib.suppress(Exception),
                unrecorded(),
                recording() as seen,
            ):  # a part of an expression may not evaluate on its own
                eval(compile(ast.Expression(node), "<claim>", "eval"), names)
                origins += [quantity._origin for quantity in seen.values()]
    return origins


def _root(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _bindings(tree: ast.AST, space: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the namespaces of an expression: one for each device that a comprehension iterates over."""
    yield space
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension) and isinstance(node.target, ast.Name) and _cheap(node.iter, space):
            with contextlib.suppress(Exception):
                for device in eval(compile(ast.Expression(node.iter), "<claim>", "eval"), dict(space)):
                    if isinstance(device, Device):
                        yield {**space, node.target.id: device}


def _cheap(tree: ast.expr, space: dict[str, Any]) -> bool:
    """Return whether an expression calls only built-ins and methods, such as those of a catalogue.

    A model or a function of the page may take seconds, and does not return devices.
    """
    called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return all(isinstance(function, ast.Attribute) or _root(function) not in space for function in called)


def _imported(name: str, statements: list[ast.stmt]) -> str:
    """Return the module of the package from which a name was imported, or an empty string."""
    for statement in statements:
        if not isinstance(statement, ast.ImportFrom) or not str(statement.module).startswith("mlsys"):
            continue
        if any((alias.asname or alias.name) == name for alias in statement.names):
            return str(statement.module)
    return ""


def _of_the_package(value: Any) -> bool:
    home = str(getattr(value, "__module__", "") or getattr(type(value), "__module__", ""))
    return callable(value) and home.startswith("mlsys.") and not hasattr(value, "magnitude")


def _assigned(name: str, statements: list[ast.stmt]) -> list[ast.AST]:
    """Return the values that statements of the page assign to a name, in order: expressions or functions."""
    return [value for statement in statements for value in _values(name, statement)]


def _values(name: str, statement: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(statement, ast.FunctionDef) and statement.name == name:
        yield statement
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _matched(name, target, statement.value)
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)) and statement.value is not None:
        yield from _matched(name, statement.target, statement.value)
    elif isinstance(statement, ast.For):
        yield from _matched(name, statement.target, statement.iter)


def _matched(name: str, target: ast.expr, value: ast.expr) -> Iterator[ast.AST]:
    if isinstance(target, ast.Name):
        if target.id == name:
            yield value
    elif isinstance(target, ast.Tuple):
        values = value.elts if isinstance(value, ast.Tuple) else []
        if len(values) != len(target.elts):
            values = [value] * len(target.elts)
        for part, its_value in zip(target.elts, values, strict=True):
            yield from _matched(name, part, its_value)
    elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == name:
        yield value
