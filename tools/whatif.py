"""Build the book as it would be if facts had other values: make book WHATIF="H100/memory/HBM/bandwidth=1.4".

Pages that read a changed fact run anew; the others keep their committed outputs, which do not depend on it. The
report lists the claims that moved and the checks that no longer hold, and each page that is affected says so at its
top and marks its numbers. The book itself, in ``_build/html``, stays as it is.
"""

import html
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bookplace import BookError
from mlsys.claims import diff
from mlsys.claims.ledgers import Ledger, claims_in_notebook, ledger
from mlsys.errors import UnknownNameError
from mlsys.formatting import NO_LONGER
from mlsys.hardware import Hardware
from mlsys.hardware.whatifs import refuse_unknown_facts
from pages import ROOT

_CLAIM = re.compile(
    r'<span class="mlsys-claim" tabindex="0">(?=[^<]*<span class="mlsys-card" role="tooltip"><code>(\w+) =)'
)
_FAILED = re.compile(rf"^{NO_LONGER}: (.*)$", re.MULTILINE)


@dataclass
class Affected:
    """What a what-if changes on one page.

    Attributes
    ----------
    moved
        Texts of the claims that moved, before and after, by name.
    failed
        Messages of the checks that no longer hold.
    error
        Why the page cannot be computed with the changed facts, or "".
    """

    moved: dict[str, tuple[str, ...]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    error: str = ""

    def sentence(self) -> str:
        """Return the sentence that the page says about itself."""
        if self.error:
            return f"This page cannot be computed with the changed facts, and shows the recorded ones: {self.error}"
        claims, checks = len(self.moved), len(self.failed)
        moved = f"{claims} number{'s' * (claims != 1)} of this page moved"
        held = "one of its checks no longer holds" if checks == 1 else f"{checks} of its checks no longer hold"
        return f"{moved}; {held}." if checks else f"{moved}."


def parsed(text: str) -> dict[str, float]:
    """Return the factors of a what-if by the full name of their fact.

    A fact may be named by any name of its device.

    Raises
    ------
    BookError
        If the text is not of that form, or names a fact that does not exist.

    Examples
    --------
    >>> parsed("H100/memory/HBM/bandwidth=1.4, A100/power/tdp=0.5")
    {'H100_SXM/memory/HBM/bandwidth': 1.4, 'A100_80GB/power/tdp': 0.5}
    """
    factors = {}
    for item in text.split(","):
        name, _, factor = item.strip().rpartition("=")
        try:
            number = float(factor)
            if not (name and 0 < number < float("inf")):
                raise ValueError(item)
        except ValueError:
            raise BookError(
                f"WHATIF must be FACT=FACTOR with a factor above zero, got {item.strip()!r}. "
                'Write e.g. WHATIF="H100/memory/HBM/bandwidth=1.4"'
            ) from None
        factors[_full_name(name)] = number
    return factors


def _full_name(name: str) -> str:
    owner, slash, rest = name.partition("/")
    try:
        full = f"{Hardware[owner].id}/{rest}" if slash else name
    except UnknownNameError:
        full = name  # a constant of no device
    try:
        refuse_unknown_facts([full])
    except ValueError as error:
        raise BookError(str(error).replace("MLSYS_PERTURB", "WHATIF")) from None
    return full


def reading(facts: Iterable[str], pages: Sequence[Path]) -> list[Path]:
    """Return the pages whose committed outputs rest on one of the facts."""
    wanted = set(facts)
    return [page for page in pages if wanted & _facts_of(page)]


def _facts_of(page: Path) -> set[str]:
    records = claims_in_notebook(page.with_suffix(".ipynb").read_text(encoding="utf-8"))
    return {fact["name"] for record in records for fact in record.get("facts", [])}


@contextmanager
def changed_facts(factors: Mapping[str, float]) -> Iterator[None]:
    """Multiply facts by factors in every kernel that starts inside; failing checks are reported there, not raised."""
    changes = {
        "MLSYS_PERTURB": ",".join(f"{name}={factor!r}" for name, factor in factors.items()),
        "MLSYS_CHECKS": "report",
    }
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def compared(page: Path, notebook: Any, folder: Path) -> Affected:
    """Return what moved on a page; ``folder`` takes the notebook that ran, for the ledger."""
    from nbformat import write

    after = folder / page.relative_to(ROOT).with_suffix(".ipynb")
    after.parent.mkdir(parents=True, exist_ok=True)
    write(notebook, after)  # type: ignore[no-untyped-call]
    old, new = _claims(page.with_suffix(".ipynb")), _claims(after)
    texts = {
        move.name: tuple(each.get((move.page, move.name), {}).get("text", "—") for each in (old, new))
        for move in diff(old, new)
    }
    failed = [
        found
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "stream"
        for found in _FAILED.findall(output.text)
    ]
    return Affected(texts, failed)


def _claims(notebook: Path) -> Ledger:
    """Return the claims of a notebook, without its tables and figures, of which only digests are recorded."""
    return {key: each for key, each in ledger([notebook]).items() if not each["formula"].startswith("of ")}


def mark(page: str, affected: Affected, change: str) -> str:
    """Return the HTML of a page with a note below its title, and its moved numbers marked."""

    def with_old(found: re.Match[str]) -> str:
        if found[1] not in affected.moved:
            return found[0]
        old = html.escape(affected.moved[found[1]][0])
        return f'<span class="mlsys-claim mlsys-moved" tabindex="0" data-was="{old}">'

    items = "".join(f"<li>{html.escape(message)}</li>" for message in affected.failed)
    listed = f"<p>No longer true:</p><ul>{items}</ul>" if items else ""
    note = (
        f'<div class="admonition warning mlsys-whatif"><p class="admonition-title">What if {html.escape(change)}?</p>'
        f"<p>{html.escape(affected.sentence())}</p>{listed}</div>"
    )
    return _CLAIM.sub(with_old, page).replace("</h1>", f"</h1>{note}", 1)


def report(found: Mapping[str, Affected], change: str, pages: int) -> str:
    """Return the report: by page the claims that moved, and the checks that no longer hold."""
    lines = [f"What if {change}? {len(found)} of {pages} pages read it."]
    for name, affected in found.items():
        lines.append(f"\n{name}: {affected.sentence()}")
        lines += [f"  {claim}: {old} → {new}" for claim, (old, new) in affected.moved.items()]
        lines += [f"  no longer holds: {message}" for message in affected.failed]
    moved = sum(len(each.moved) for each in found.values())
    failed = sum(len(each.failed) for each in found.values())
    return "\n".join([*lines, f"\n{moved} numbers moved, {failed} checks no longer hold."])
