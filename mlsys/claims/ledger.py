"""All claims of the book, read from the outputs of its notebooks, and what moved between two versions."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsys.claims.render import MIME, expanded

__all__ = ["Move", "claims_in_notebook", "diff", "files_at", "ledger", "ledger_at"]

Ledger = dict[tuple[str, str], dict[str, Any]]


def claims_in_notebook(text: str) -> list[dict[str, Any]]:
    """Return the page records found in the outputs of one notebook, given as JSON text."""
    cells = json.loads(text).get("cells", [])
    outputs = (output for cell in cells for output in cell.get("outputs", []))
    return [expanded(output["data"][MIME]) for output in outputs if MIME in output.get("data", {})]


def _file(texts: Iterable[str]) -> Ledger:
    return {
        (page["page"], claim["name"]): {**claim, "page": page["page"]}
        for text in texts
        for page in claims_in_notebook(text)
        for claim in page["claims"]
    }


def ledger(paths: Iterable[str | Path]) -> Ledger:
    """Return every claim of the notebooks below ``paths``, by (page, name).

    Parameters
    ----------
    paths
        Notebooks, or folders that are searched for them.
    """
    files: list[Path] = []
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"no notebook or folder at {path}. Give e.g. book/ or book/roofline.ipynb")
        files += sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]
    return _file(file.read_text("utf-8") for file in files if ".ipynb_checkpoints" not in file.parts)


def ledger_at(revision: str, folders: Iterable[str] = ("book", "labs")) -> Ledger:
    """Return the ledger of the notebooks as committed at a git ``revision``.

    Raises
    ------
    ValueError
        If there is no such revision, or no git here.
    """
    return _file(text for _, text in files_at(revision, folders, ".ipynb"))


def files_at(revision: str, folders: Iterable[str], suffix: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of the files below ``folders`` that end so, as committed at a git ``revision``."""
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
    """Return what git prints, or None where it refuses; an error where there is no git, or no repository."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, encoding="utf-8", check=False)
    except FileNotFoundError:
        raise ValueError("git is needed to compare with another version, and it is not on the PATH") from None
    if "not a git repository" in done.stderr:
        raise ValueError(f"git {' '.join(arguments)} failed: {done.stderr.strip()}")
    return None if done.returncode else done.stdout


@dataclass(frozen=True)
class Move:
    """A claim that differs between two versions; ``before`` or ``after`` is None if it is absent there."""

    page: str
    name: str
    before: str | None
    after: str | None

    @property
    def change(self) -> str:
        """The relative change in percent, or what happened in words."""
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
    return None if claim is None else f"{claim['value']} {claim['unit']}".strip()
