"""The claims ledger: all claims of the book, read from the outputs of its notebooks, and their changes."""

import json
import math
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsys.claims.render import MIME, expanded
from mlsys.faults import short
from mlsys.inputs import read_text

_DAMAGED = "the claims stored in the notebook are damaged. Run it again: make notebooks"
Ledger = dict[tuple[str, str], dict[str, Any]]


def claims_in_notebook(text: str) -> list[dict[str, Any]]:
    """Return the page records found in the outputs of one notebook, given as JSON text.

    Raises
    ------
    ValueError
        If it is not a notebook.
    """
    claims = []
    for cell in cells_of(text):
        for output in cell.get("outputs") or []:
            data = output.get("data") if isinstance(output, dict) else None
            if isinstance(data, dict) and MIME in data:
                claims.append(_record(data[MIME]))
    return claims


def cells_of(text: str) -> list[dict[str, Any]]:
    """Return the cells of a notebook, given as JSON text.

    Raises
    ------
    ValueError
        If it is not a notebook.
    """
    try:
        notebook = json.loads(text)
    except RecursionError:
        raise ValueError("not a notebook: the JSON is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"not a notebook: not readable as JSON: {str(error).partition(';')[0]}") from None
    version = notebook.get("nbformat", 4) if isinstance(notebook, dict) else 4
    if version != 4:
        raise ValueError(f"not a notebook of version 4: its `nbformat` is {short(version)}. Save it again with Jupyter")
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise ValueError("not a notebook: it must be a JSON object with a list of `cells`")
    if not all(isinstance(cell.get("outputs") or [], list) for cell in cells):
        raise ValueError("not a notebook: the `outputs` of a cell must be a list")
    return cells


def _record(page: Any) -> dict[str, Any]:
    """Return the stored record of a page, or raise if it is damaged."""
    claims = page.get("claims") if isinstance(page, dict) else None
    if (
        not isinstance(claims, list)
        or not isinstance(page.get("page"), str)
        or not all(
            isinstance(claim, dict) and isinstance(claim.get("name"), str) and isinstance(claim.get("text", ""), str)
            for claim in claims
        )
    ):
        raise ValueError(_DAMAGED)
    exhibits = page.get("exhibits", [])
    if not isinstance(exhibits, list) or not all(_is_exhibit(each) for each in exhibits):
        raise ValueError(_DAMAGED)
    stated = [*claims, *exhibits]
    listed = {
        kind: {each["name"] for each in stated if isinstance(each.get(kind), list)} for kind in ("facts", "compared")
    }
    for each in stated:
        for kind, known in listed.items():
            facts = each.get(kind, [])
            valid = all(isinstance(fact, str) for fact in facts) if isinstance(facts, list) else _refers(facts, known)
            if not valid:
                raise ValueError(
                    f"the `{kind}` of the claim {short(each['name'])} must be a list of names, got {short(facts)}. "
                    "Run the notebook again: make notebooks"
                )
        value = each.get("value", 0)
        if not isinstance(value, (int, float, str)) or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(
                f"the `value` of the claim {short(each['name'])} must be a finite number or a string, got "
                f"{short(value)}. Run the notebook again: make notebooks"
            )
    record: dict[str, Any] = expanded(page)
    return record


def _is_exhibit(shown: Any) -> bool:
    return isinstance(shown, dict) and all(isinstance(shown.get(key), str) for key in ("name", "digest"))


def _refers(facts: Any, known: set[str]) -> bool:
    """Return whether ``facts`` is a valid reference to the facts of another claim."""
    return isinstance(facts, dict) and set(facts) == {"as"} and isinstance(facts["as"], str) and facts["as"] in known


def _file(texts: Iterable[tuple[str, str]]) -> Ledger:
    ledger: Ledger = {}
    for name, text in texts:
        try:
            pages = claims_in_notebook(text)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        ledger |= {
            (page["page"], stated["name"]): {**stated, "page": page["page"]}
            for page in pages
            for stated in (*page["claims"], *map(_exhibit, page["exhibits"]))
        }
    return ledger


def _exhibit(shown: dict[str, Any]) -> dict[str, Any]:
    """Return a table or figure as a ledger entry, with its digest as the value."""
    digest = shown["digest"]
    return {**shown, "value": digest, "unit": "", "text": digest, "formula": f"of {len(shown['facts']):,} facts"}


def ledger(paths: Iterable[str | Path]) -> Ledger:
    """Return every claim of the notebooks below ``paths``, by (page, name).

    Parameters
    ----------
    paths
        Notebooks, or folders to search for notebooks.
    """
    files: list[Path] = []
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"no notebook or folder at {path}. Give e.g. book/ or book/roofline.ipynb")
        files += sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]
    return _file((str(file), read_text(file)) for file in files if ".ipynb_checkpoints" not in file.parts)


def ledger_at(revision: str, folders: Iterable[str] = ("book", "labs")) -> Ledger:
    """Return the ledger of the notebooks as committed at a git ``revision``.

    Raises
    ------
    ValueError
        If there is no such revision, or git is not available.
    """
    return _file(files_at(revision, folders, ".ipynb"))


def files_at(revision: str, folders: Iterable[str], suffix: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of the files below ``folders`` that end in ``suffix``, at a git ``revision``."""
    if _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}") is None:
        raise ValueError(
            f"there is no git revision {revision!r} here, and no file or folder of that name. Give a commit, a tag or "
            "a branch that `git log` knows, e.g. HEAD~1"
        )
    names = (_git("ls-tree", "-r", "-z", "--name-only", revision, *folders) or "").split("\0")
    for name in names:
        if name.endswith(suffix):
            yield name, _git("show", f"{revision}:{name}") or ""


def _git(*arguments: str) -> str | None:
    """Return the output of git, or None if it fails; raise ValueError without git or a repository."""
    try:
        completed = subprocess.run(["git", *arguments], capture_output=True, text=True, encoding="utf-8", check=False)
    except FileNotFoundError:
        raise ValueError("git is needed to compare with another version, and it is not on the PATH") from None
    if "not a git repository" in completed.stderr:
        raise ValueError(f"git {' '.join(arguments)} failed: {completed.stderr.strip()}")
    return None if completed.returncode else completed.stdout


@dataclass(frozen=True)
class Move:
    """A claim that differs between two versions; ``before`` or ``after`` is None if the claim is missing there."""

    page: str
    name: str
    before: str | None
    after: str | None

    @property
    def change(self) -> str:
        """The relative change in percent, or ``"new"``, ``"gone"`` or ``"changed"``."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "gone"
        old, old_unit = self.before.partition(" ")[::2]
        new, new_unit = self.after.partition(" ")[::2]
        if old_unit != new_unit:
            return "changed"
        try:
            return f"{(float(new) / float(old) - 1) * 100:+.3g}%"
        except (ValueError, ZeroDivisionError):
            return "changed"


def diff(before: Ledger, after: Ledger) -> list[Move]:
    """Return the claims that were added, removed or changed, in page order.

    Examples
    --------
    >>> old = {("roofline", "ridge"): {"value": "153.016", "unit": "FLOP/byte"}}
    >>> new = {("roofline", "ridge"): {"value": "154.546", "unit": "FLOP/byte"}}
    >>> diff(old, new)[0].change
    '+1%'
    """
    moves = []
    for key in sorted(before.keys() | after.keys()):
        old, new = (_stated(side.get(key)) for side in (before, after))
        if old != new:
            moves.append(Move(*key, old, new))
    return moves


def _stated(claim: dict[str, Any] | None) -> str | None:
    return None if claim is None else f"{claim.get('value', '')} {claim.get('unit', '')}".strip()
