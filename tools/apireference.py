"""The reference of the library: a Sphinx extension.

``.. api:: mlsys.models`` lists the public names of a module and describes each of them from its docstring. A name that
several modules offer is described once, under the first of ``MODULES`` that has it, which is the shortest to import.
``.. constants::`` and ``.. commands::`` list the constants and what each command prints for ``--help``.

References to Python names resolve by import: any path to a documented object leads to its entry, a name that exists but
has no entry prints as code, and a name that does not exist is an error. Below the cell of a chapter that imports calls
of the library stands a line that leads to their entries.
"""

import ast
import functools
import importlib
import inspect
import itertools
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes  # type: ignore[import-untyped]
from docutils.statemachine import StringList  # type: ignore[import-untyped]
from sphinx import addnodes
from sphinx.domains.python import PythonDomain
from sphinx.ext.napoleon import Config, NumpyDocstring
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

import mlsys

__all__ = ["MODULES", "homes", "located", "members", "setup"]

MODULES = (
    "mlsys",
    "mlsys.units",
    "mlsys.formatting",
    "mlsys.errors",
    "mlsys.hardware",
    "mlsys.formulas",
    "mlsys.numerics",
    "mlsys.workloads",
    "mlsys.workloads.zoo",
    "mlsys.workloads.transformer_config",
    "mlsys.mapping",
    "mlsys.mapping.fusion",
    "mlsys.mapping.parallel",
    "mlsys.models",
    "mlsys.models.serving",
    "mlsys.models.inference",
    "mlsys.models.feasibility",
    "mlsys.models.cost",
    "mlsys.models.carbon",
    "mlsys.models.tornado",
    "mlsys.models.training",
    "mlsys.models.collectives",
    "mlsys.models.overlap",
    "mlsys.models.journey",
    "mlsys.planner.memory",
    "mlsys.planner.mapper",
    "mlsys.planner.placement",
    "mlsys.planner.layout",
    "mlsys.sweep",
    "mlsys.edge",
    "mlsys.measure",
    "mlsys.measure.counters",
    "mlsys.measure.energy",
    "mlsys.measure.backends",
    "mlsys.measure.hypotheses",
    "mlsys.measure.recommend.whatif",
    "mlsys.measure.recommend.platforms",
    "mlsys.measure.recommend.guide",
    "mlsys.measure.recommend.portability",
    "mlsys.measure.recommend.compatibility",
    "mlsys.grading",
    "mlsys.claims",
    "mlsys.provenance",
    "mlsys.viz",
    "mlsys.testing",
)
"""Modules with an entry, those that are shortest to import first."""


def public(module: str) -> Iterator[tuple[str, Any]]:
    """Yield the public functions, classes and values of a module; of a module without ``__all__``, its own."""
    imported = importlib.import_module(module)
    listed = getattr(imported, "__all__", None)
    names = listed if listed is not None else [name for name in vars(imported) if not name.startswith("_")]
    for name in names:
        value = getattr(imported, name)
        own = listed is not None or getattr(value, "__module__", None) == module
        if own and not inspect.ismodule(value) and not name.startswith("__"):
            yield name, value


@functools.cache
def comments(package: str) -> dict[str, str]:
    """Return the texts below assignments of module level, by the name assigned, in all modules of a package."""
    source = inspect.getsourcefile(importlib.import_module(package))
    assert source is not None
    path = Path(source)
    found = {}
    for file in [path] if path.stem != "__init__" else sorted(path.parent.rglob("*.py")):
        for statement, text in itertools.pairwise(ast.parse(file.read_text("utf-8")).body):
            if (
                isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            ):
                targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
                message = inspect.cleandoc(text.value.value)
                found.update({each.id: message for each in targets if isinstance(each, ast.Name)})
    return found


def is_described(value: Any) -> bool:
    """Tell whether an object has a docstring of its own: a function or a class."""
    return inspect.isclass(value) or inspect.isroutine(value)


def summary(module: str, name: str, value: Any) -> str:
    """Return the first paragraph of the docstring of a name, or of the text below its assignment."""
    text = (inspect.getdoc(value) or "") if is_described(value) else comment(module, name)
    return " ".join(text.split("\n\n")[0].split())


def comment(module: str, name: str) -> str:
    """Return the text below the assignment of a value that a module has or offers from elsewhere, or what it holds."""
    home = vars(mlsys)["_HOMES"].get(name, module) if module == "mlsys" else module
    return comments(home).get(name) or contents(getattr(importlib.import_module(module), name))


def contents(value: Any) -> str:
    """Return what a value without a text of its own holds: its names, its type, or what its class says."""
    if isinstance(value, tuple | Mapping) and all(isinstance(each, str) for each in value):
        return ", ".join(f"``{each}``" for each in value) + "."
    if typing.get_args(value):
        return f"``{' | '.join(getattr(each, '__name__', None) or repr(each) for each in typing.get_args(value))}``."
    ours = type(value).__module__.startswith("mlsys.")
    return (inspect.getdoc(type(value)) or "").split("\n\n")[0] if ours else ""


@functools.cache
def _entries() -> dict[str, dict[str, Any]]:
    entries: dict[str, dict[str, Any]] = {}
    seen: set[int] = set()
    for module in MODULES:
        entries[module] = {name: value for name, value in public(module) if id(value) not in seen}
        seen |= {id(value) for value in entries[module].values() if not isinstance(value, int | float | str | tuple)}
    return entries


def members(module: str) -> dict[str, Any]:
    """Return the public names of a module that are described under it, with their objects."""
    return _entries()[module]


@functools.cache
def homes() -> dict[int, str]:
    """Return the documented name of each object by its identity; numbers and texts, which may be shared, have none."""
    return {
        id(value): f"{module}.{name}"
        for module in MODULES
        for name, value in members(module).items()
        if callable(value)
    }


@functools.cache
def located(path: str) -> tuple[Any, bool]:
    """Return the object at a dotted path, and whether there is one."""
    parts = path.split(".")
    if not all(parts):
        return None, False
    for length in range(1, len(parts) + 1):  # what a package names goes before a module of the same name
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            break
        for name in parts[length:]:
            if not hasattr(found, name) and name not in getattr(found, "__annotations__", {}):
                break
            found = getattr(found, name, None)
        else:
            return found, True
    return None, False


def entry(module: str, name: str, value: Any) -> list[str]:
    """Return the lines that describe a name."""
    if inspect.isclass(value):
        return [f".. autoclass:: {module}::{name}", "   :members:", "   :member-order: bysource", ""]
    if is_described(value):
        return [f".. autofunction:: {module}::{name}", ""]
    lines = [f".. py:data:: {module}.{name}", f"   :type: {type(value).__name__}", ""]
    return [*lines, *(f"   {line}" for line in comment(module, name).splitlines()), ""]


class Api(SphinxDirective):
    """Describe the public names of a module: a table of them, then one entry each."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table and the entries."""
        module = self.arguments[0]
        listed = members(module)
        lines = [f".. py:module:: {module}", "", ".. list-table::", "   :class: mlsys-names", "   :widths: 30 70", ""]
        for name, value in listed.items():
            lines += [f"   * - :py:obj:`~{module}.{name}`", f"     - {summary(module, name, value)}"]
        lines.append("")
        for name, value in listed.items():
            lines += entry(module, name, value)
        return self.parsed(lines)

    def parsed(self, lines: list[str]) -> list[nodes.Node]:
        """Return the nodes of reStructuredText."""
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, source=self.env.doc2path(self.env.docname)), 0, holder)
        for name in holder.findall(nodes.field_name):
            if name.astext() == "Variables":  # Sphinx's word for them
                name.clear()
                name += nodes.Text("Attributes")
        return list(holder.children)


class Constants(Api):
    """List the constants that have a source, with value and meaning."""

    required_arguments = 0

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        from mlsys import constants

        lines = [".. py:module:: mlsys.constants", "", ".. list-table::", "   :header-rows: 1", ""]
        lines += ["   * - Name", "     - Value", "     - Meaning"]
        for name, fact in constants.facts().items():
            lines += [f"   * - ``{name}``", f"     - {fact:~P}", f"     - {getattr(fact.origin, 'meaning', '')}"]
        return self.parsed(lines)


class Commands(SphinxDirective):
    """Show what each command prints for ``--help``, a section each."""

    required_arguments = 0
    WIDTH: ClassVar[int] = 78

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        return [self.section(name, text) for name, text in helps(self.WIDTH)]

    def section(self, name: str, text: str) -> nodes.section:
        """Return the section of one command."""
        section = nodes.section(ids=[nodes.make_id(name)], names=[name])
        section += nodes.title("", name)
        section += nodes.literal_block(text, text, language="text")
        self.state.document.note_explicit_target(section)
        return section


def helps(width: int) -> Iterator[tuple[str, str]]:
    """Yield each command, subcommands included, with its help."""
    import click

    from mlsys.cli import main

    def walk(command: click.Command, name: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
        context = click.Context(command, info_name=name.rpartition(" ")[2], parent=parent, terminal_width=width)
        yield name, command.get_help(context)
        if isinstance(command, click.Group):
            for sub in command.list_commands(context):
                inner = command.get_command(context, sub)
                if inner is not None and not inner.hidden:
                    yield from walk(inner, f"{name} {sub}", context)

    yield from walk(main, "mlsys", None)


NUMPY_STYLE = Config(napoleon_use_ivar=True, napoleon_use_rtype=False)
_SEVERAL = re.compile(r"(\w+(?:, \w+)+)( : .*)?$")


def read_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Turn the sections of a docstring into reStructuredText, those of a property like those of a method."""
    style = "method" if what == "property" else what
    lines[:] = NumpyDocstring(one_attribute_each(lines), NUMPY_STYLE, app, style, name, obj, options).lines()


def one_attribute_each(lines: list[str]) -> list[str]:
    """Return the lines of a docstring with attributes that share a text listed one by one."""
    if "Attributes" not in lines:
        return lines
    start = lines.index("Attributes") + 2
    made, at = lines[:start], start
    while at < len(lines):
        end = at + 1
        while end < len(lines) and (not lines[end] or lines[end].startswith(" ")):
            end += 1
        several = _SEVERAL.match(lines[at])
        heads = [name + (several[2] or "") for name in several[1].split(", ")] if several else [lines[at]]
        for head in heads:
            made += [head, *lines[at + 1 : end]]
        at = end
    return made


def resolve(app: Any, env: Any, node: nodes.Element, contnode: nodes.Node) -> nodes.Node | None:
    """Resolve a reference to a Python name by import: to its entry, to code, or, where nothing has the name, not."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    module, within = node.get("py:module") or "", node.get("py:class") or ""
    holder, _ = located(f"{module}.{within}")
    scopes = [module, f"{module}.{within}", getattr(holder, "__module__", ""), *MODULES, "mlsys.deadline", "builtins"]
    for path in [target, *(f"{scope}.{target}" for scope in scopes if scope)]:
        found, exists = located(path)
        if not exists:
            continue
        home = homes().get(id(found))
        domain: PythonDomain = env.get_domain("py")
        entry = domain.objects.get(home) if home else None
        if entry is None:
            return contnode
        refuri = app.builder.get_relative_uri(node.get("refdoc", env.docname), entry.docname)
        return nodes.reference("", "", contnode, internal=True, refuri=f"{refuri}#{entry.node_id}", reftitle=home)
    return contnode if node.get("reftype") == "class" and in_annotation(node) else None


def in_annotation(node: nodes.Element) -> bool:
    """Tell whether a reference was made of the type in a signature, where aliases and variables stand, too."""
    parent: Any = node.parent
    while parent is not None:
        if isinstance(parent, addnodes.desc_signature | nodes.field):
            return True
        parent = parent.parent
    return False


def calls_of(source: str) -> dict[str, str]:
    """Return the documented names that a cell imports: the local name and that of the entry."""
    try:
        tree = ast.parse(re.sub(r"^%.*", "", source, flags=re.MULTILINE))
    except SyntaxError:
        return {}
    found = {}
    for statement in ast.walk(tree):
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").partition(".")[0] == "mlsys":
            for alias in statement.names:
                value, _ = located(f"{statement.module}.{alias.name}")
                if home := homes().get(id(value)):
                    found[alias.name] = home
    return found


EVERY_PAGE = frozenset({"Q_", "check", "claim", "claims_table", "end_chapter", "given", "start_chapter"})
"""Names that every page imports for its claims; links to them would stand below the first cell of each."""


class LinkCalls(SphinxPostTransform):
    """Add the line of links below a cell that imports calls of the library."""

    default_priority = 5  # before references are resolved
    formats = ("html",)

    def run(self, **_: Any) -> None:
        """Change the page."""
        known = self.env.get_domain("py").objects
        linked: set[str] = set()
        for cell in list(self.document.findall(nodes.container)):
            if "cell" not in cell.get("classes", ()):
                continue
            sources = [part.astext() for part in cell.findall(nodes.literal_block) if part.get("language") != "none"]
            calls = calls_of("\n".join(sources[:1]))
            calls = {name: home for name, home in calls.items() if name not in EVERY_PAGE}
            new = {name: home for name, home in calls.items() if home in known and home not in linked}
            if new:
                linked |= set(new.values())
                cell.parent.insert(cell.parent.index(cell) + 1, self.line(new))

    def line(self, calls: dict[str, str]) -> nodes.paragraph:
        """Return the line for names and their entries."""
        line = nodes.paragraph(classes=["mlsys-calls"])
        line += nodes.Text("In the reference: ")
        for place, (name, home) in enumerate(calls.items()):
            line += nodes.Text(", ") if place else nodes.Text("")
            where = {"refdomain": "py", "reftype": "obj", "reftarget": home, "refdoc": self.env.docname}
            reference = addnodes.pending_xref("", refexplicit=True, refwarn=True, **where)
            reference += nodes.literal("", name)
            line += reference
        return line


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.add_directive("api", Api)
    app.add_directive("constants", Constants)
    app.add_directive("commands", Commands)
    app.add_post_transform(LinkCalls)
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
