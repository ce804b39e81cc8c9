"""Say where the book treats each statement and each topic that it was written against, or why it leaves it out.

``book/coverage/claims.csv`` lists 833 statements of texts on the subject, each with a verdict, and
``book/coverage/items.csv`` the 476 concepts, formulas, examples, figures, tables, questions and invariants
of its plan. Each row names a page and targets on it, or the reason why it is left out. This tool fails on a
row that has neither, and on a page or target that does not exist::

    python tools/coverage.py            a summary by section, and every fault
    python tools/coverage.py --json     the counts alone
"""

import argparse
import ast
import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "book" / "coverage"

TEXTS = {"S4": 578, "S0": 45, "S1": 115, "S2": 14, "S3": 81}
"""Numbers of statements by text."""
SECTIONS = {
    "1": ("Amdahl and the iron law", 29), "2": ("Specialisation and history", 26), "3": ("Compute primitives", 38),
    "3b": ("Tensor cores, sparsity, formats", 28), "4": ("Systolic arrays and energy", 31),
    "5": ("Memory wall and hierarchy", 37), "6": ("Host and interconnect", 26), "7": ("Roofline", 33),
    "8": ("Mapping and search space", 20), "9": ("Dataflow", 17), "10": ("Tensor layouts", 19),
    "11": ("Kernel fusion", 26), "12": ("Tiling", 15), "13": ("Compiler pipeline", 22), "14": ("Runtime", 17),
    "15": ("Scaling over many chips", 10), "16": ("Heterogeneous chips and the edge", 30), "17": ("Economics", 11),
    "18": ("Fallacies and pitfalls", 12), "19": ("Sustainability", 14), "20": ("Feasibility", 15),
}  # fmt: skip
"""Titles and numbers of items by section of the plan."""
KINDS = {"C": "concept", "F": "formula", "W": "worked example", "G": "figure", "T": "table", "Q": "question",
         "I": "invariant"}  # fmt: skip
VERDICTS = ("HOLDS", "WRONG", "IMPRECISE", "UNSOURCED", "UNITS", "NOT-CHECKABLE-CITED", "CONTRADICTS")
UNWRITTEN = "not yet written"
"""Beginning of the reason for what is left out only for now."""

_OPTIONS = {"unit", "precision"}
_MAGIC = re.compile(r"^( *)[%!].*$", flags=re.MULTILINE)
_TEST = re.compile(r"(?P<path>[\w/]+\.py)::(?P<name>test_\w+)$")


@dataclass(frozen=True)
class Row:
    """A row of one of the two files."""

    file: str
    id: str
    page: str
    targets: tuple[str, ...]
    reason: str
    labels: dict[str, str]

    @property
    def present(self) -> bool:
        """Whether the row names a page."""
        return bool(self.page)


@dataclass(frozen=True)
class Page:
    """What a row can point at on a page."""

    names: frozenset[str]
    """Claimed values, labels, ``#headings``, ``check:words``, ``table:titles``, ``ask:questions`` of labs."""
    terms: frozenset[str]
    """Glossary terms that the page links or, in the glossary, defines."""


def read_rows(file: Path) -> list[Row]:
    """Return the rows of a file of the mapping."""
    with file.open(encoding="utf-8", newline="") as lines:
        return [
            Row(
                file.name,
                row.pop("id"),
                row.pop("page"),
                tuple(filter(None, (part.strip() for part in row.pop("target").split(";")))),
                row.pop("reason_left_out"),
                row,
            )
            for row in csv.DictReader(lines)
        ]


@dataclass(frozen=True)
class Fault:
    """What is wrong with a row, or with the rows of a file."""

    file: str
    id: str
    text: str

    def __str__(self) -> str:
        """Return the fault as one line."""
        return f"{self.file}: {self.id}: {self.text}"


def faults(claims: list[Row], items: list[Row], root: Path = ROOT) -> list[Fault]:
    """Return everything that is wrong with the mapping."""
    found = [Fault("claims.csv", *each) for each in _wrong_claims(claims)]
    found += [Fault("items.csv", *each) for each in _wrong_items(items)]
    listed = pages_in_contents(root)
    for row in (*claims, *items):
        found += [Fault(row.file, row.id, text) for text in _wrong_in(row, listed, root)]
    return found


def _wrong_claims(claims: list[Row]) -> Iterator[tuple[str, str]]:
    given = Counter(row.id for row in claims)
    for name in (f"{text}-{number:03}" for text, count in TEXTS.items() for number in range(1, count + 1)):
        if given.pop(name, 0) != 1:
            yield name, "must be there once"
    yield from ((name, "is the id of no statement") for name in given)


def _wrong_items(items: list[Row]) -> Iterator[tuple[str, str]]:
    names = Counter(row.id for row in items)
    yield from ((name, "is there twice") for name, count in names.items() if count > 1)
    counts = Counter(row.labels["section"] for row in items)
    for section, (title, count) in SECTIONS.items():
        if counts.pop(section, 0) != count:
            yield f"section {section} ({title})", f"must have {count} items"
    yield from ((f"section {section}", "is none of the plan") for section in counts)


def _wrong_in(row: Row, listed: frozenset[str], root: Path) -> Iterator[str]:
    if not row.labels.get("restatement", row.labels.get("name", "")):
        yield "say in words what it is"
    if row.labels.get("verdict", VERDICTS[0]).split(" ")[0] not in VERDICTS:
        yield f"the verdict {row.labels['verdict']} is none of {', '.join(VERDICTS)}"
    if row.labels.get("kind", "C") not in KINDS:
        yield f"the kind {row.labels['kind']} is none of {', '.join(KINDS)}"
    if bool(row.page) == bool(row.reason):
        yield "give a page or a reason why it is left out, and not both"
    if row.page and not row.targets:
        yield f"name a target on {row.page}"
    for target in row.targets if row.page else ():
        name, _, other = target.partition("@")
        where = other or row.page
        if where not in listed:
            yield f"the page {where} is not in _toc.yml"
        elif not exists(name, where, root):
            yield f"there is no target {name!r} on {where}"


def exists(target: str, page: str, root: Path = ROOT) -> bool:
    """Return whether a page, or the repository for tests and devices, has a target."""
    kind, _, name = target.partition(":")
    if kind == "test":
        found = _TEST.fullmatch(name)
        return found is not None and found["name"] in _tests_of(root / found["path"])
    if kind == "device":
        return page == "book/catalogue" and name in _devices(root)
    index = index_page(root / f"{page}.md")
    return name in index.terms if kind == "term" else target in index.names


@cache
def pages_in_contents(root: Path = ROOT) -> frozenset[str]:
    """Return the pages of the table of contents, such as ``book/amdahl``."""
    contents = (root / "_toc.yml").read_text(encoding="utf-8")
    return frozenset(re.findall(r"(?:file|root): *(\S+)", contents))


@cache
def index_page(path: Path) -> Page:
    """Return what a row can point at on a page; see :class:`Page`."""
    from pageparse import parse

    page, text = parse(path), path.read_text(encoding="utf-8")
    names = {line.text for line in page.labels}
    names |= {f"#{slug(line.text)}" for line in page.prose if line.text.startswith("#")}
    for cell in page.cells:
        names |= set(_named_in(cell.source))
    linked = re.findall(r"\{term\}`(?:[^`<]*<)?([^`>]+)>?`", text)
    if path.stem == "glossary":
        linked += re.findall(r"^(\w[^\n]*)\n  \S", text, flags=re.MULTILINE)
    return Page(frozenset(names), frozenset(linked))


def slug(heading: str) -> str:
    """Return the anchor of a heading.

    Examples
    --------
    >>> slug("## The law, turned *round*")
    'the-law-turned-round'
    """
    return "-".join(re.findall(r"[^\W_]+", heading.casefold()))


def _named_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(_MAGIC.sub(r"\1pass", source))):
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if called in ("claim", "given"):
            yield from (word.arg for word in node.keywords if word.arg and word.arg not in _OPTIONS)
        at = {"check": 1, "Table": 0, "ask": 0}.get(called)
        if at is not None and len(node.args) > at:
            text = node.args[at]
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield f"{called.casefold()}:{text.value}"


@cache
def _tests_of(path: Path) -> frozenset[str]:
    if not path.is_file():
        return frozenset()
    return frozenset(re.findall(r"^ *def (test_\w+)\(", path.read_text(encoding="utf-8"), flags=re.MULTILINE))


@cache
def _devices(root: Path) -> frozenset[str]:
    return frozenset(file.stem for file in (root / "mlsys" / "hardware" / "data").glob("*/*.yaml"))


def counts(claims: list[Row], items: list[Row], wrong: list[Fault]) -> dict[str, dict[str, int]]:
    """Return how many rows are accounted for, present and left out, without those at fault."""
    at_fault = {fault.id for fault in wrong}
    sound = [row for row in items if row.id not in at_fault]
    return {
        "claims": {
            "accounted": sum(row.id not in at_fault for row in claims),
            "total": sum(TEXTS.values()),
        },
        "items": {
            "present": sum(row.present for row in sound),
            "left_out": sum(not row.present for row in sound),
            "total": sum(count for _, count in SECTIONS.values()),
        },
    }


def summary(claims: list[Row], items: list[Row]) -> str:
    """Return the counts as text, with a line for each section of the items."""

    def line(title: str, rows: list[Row]) -> str:
        out = [row for row in rows if not row.present]
        later = sum(row.reason.startswith(UNWRITTEN) for row in out)
        result = f"{title:38}{len(rows):5} {len(rows) - len(out):8} {len(out):9}"
        return f"{result} {later:16}" if later else result

    lines = [f"{'':38}{'rows':>5} {'present':>8} {'left out':>9} {UNWRITTEN:>16}", line("statements", claims)]
    lines.append(line("items", items))
    for section, (title, _) in SECTIONS.items():
        own = [row for row in items if row.labels["section"] == section]
        lines.append(line(f"  {section:>2} {title}", own))
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Print the counts, and the faults on standard error; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the counts alone, as JSON")
    options = parser.parse_args(arguments)
    claims, items = read_rows(FOLDER / "claims.csv"), read_rows(FOLDER / "items.csv")
    wrong = faults(claims, items)
    print(json.dumps(counts(claims, items, wrong)) if options.json else summary(claims, items))
    for fault in wrong:
        print(fault, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
