"""How claims look: a line under the cell, a hover card in the prose, a table at the end."""

from __future__ import annotations

import html
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from mlsys.tables import html_table

__all__ = ["MIME", "ClaimsTable", "show_claims"]

MIME = "application/vnd.mlsys.claims+json"
_GLUE = "application/papermill.record/"


def show_claims(claims: Iterable[Any], sources: Mapping[str, str]) -> None:
    """Show each claim below the cell and glue it for the prose; outside IPython, print it."""
    claims = list(claims)
    lines = [f"{claim.name} = {claim.text}  ←  {claim.formula}" for claim in claims]
    publish = _display()
    if publish is None:
        print("\n".join(lines))
        return
    for claim in claims:
        bundle = {_GLUE + "text/plain": claim.text, _GLUE + "text/html": _card(claim, sources)}
        publish(bundle, raw=True, metadata={"scrapbook": {"name": claim.name, "mime_prefix": _GLUE}})
    rows = "".join(
        f"<div><code>{html.escape(c.name)}</code> = <strong>{html.escape(c.text)}</strong> "
        f"<span class='mlsys-formula'>← {html.escape(c.formula)}</span></div>"
        for c in claims
    )
    # Print shows the sentence, not this line: Markdown comes before text there, and says nothing.
    named = ", ".join(html.escape(claim.name) for claim in claims)
    shown = f"<details class='mlsys-claims'><summary>claimed: {named}</summary>{rows}</details>"
    publish({"text/plain": "\n".join(lines), "text/html": shown, "text/markdown": "<!-- -->"}, raw=True)


def _display() -> Any:
    if "IPython" not in sys.modules:  # then no kernel runs this: do not load it to find out
        return None
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return None
    shell = get_ipython()
    return display if shell is not None and hasattr(shell, "kernel") else None


def _card(claim: Any, sources: Mapping[str, str]) -> str:
    where = "; ".join(dict.fromkeys(sources.get(name, name) for name in claim.facts))
    note = f"<code>{html.escape(claim.name)} = {html.escape(claim.formula)}</code>{html.escape(where)}"
    return (
        f'<span class="mlsys-claim" tabindex="0">{html.escape(claim.text)}'
        f'<span class="mlsys-card" role="tooltip">{note}</span></span>'
    )


class ClaimsTable:
    """The claims and facts of a page, as text (which the tests pin), HTML and data."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record

    def __repr__(self) -> str:
        lines = [f"Claims of {self.record['page']}: {len(self.record['claims'])}"]
        for claim in self.record["claims"]:
            lines.append(f"  {claim['name']} = {claim['value']} {claim['unit']}".rstrip())
            lines.append(f"      from {claim['formula']}")
            if claim["facts"]:
                lines.append(f"      on {', '.join(claim['facts'])}")
        lines.append(f"Facts read on this page: {len(self.record['facts'])}")
        for fact in self.record["facts"]:
            lines.append(f"  {fact['name']} = {fact['value']} {fact['unit']}".rstrip())
            lines.append(f"      {fact['source']} ({fact['date']}; {fact['confidence']})")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        claims = [
            (c["name"], f"{c['value']} {c['unit']}".strip(), c["formula"], "; ".join(c["facts"]) or "—")
            for c in self.record["claims"]
        ]
        facts = [
            (
                f["name"],
                f"{f['value']} {f['unit']}".strip(),
                f["meaning"],
                f"{f['source']} ({f['date']}; {f['confidence']})",
            )
            for f in self.record["facts"]
        ]
        counts = f"{len(claims)} claims on this page, from {len(facts)} facts"
        return (
            f"<details class='mlsys-tables'><summary>{counts}</summary>"
            + html_table("What this page claims", ("Claim", "Value", "From", "Facts it leans on"), claims)
            + html_table("The facts it read", ("Fact", "Value", "Meaning", "Source (date; confidence)"), facts)
            + "</details>"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {
            "text/plain": repr(self),
            "text/html": self._repr_html_(),
            "text/markdown": self._repr_markdown_(),
            MIME: self.record,
        }

    def _repr_markdown_(self) -> str:
        """Return what print shows: how many claims, and the facts they stand on."""
        lines = [f"{len(self.record['claims'])} claims, each with its sum and its facts, are listed in the HTML book."]
        if self.record["facts"]:
            lines += ["They stand on these facts:", ""]
        for fact in self.record["facts"]:
            source = fact["source"].replace("/", "/\N{ZERO WIDTH SPACE}")  # where a long path may break
            certificate = f"{source} ({fact['date']}; {fact['confidence']})"
            lines.append(f"- `{fact['name']}` = {fact['value']} {fact['unit']}: {certificate}")
        return "\n".join(lines)
