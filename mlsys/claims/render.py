"""Rendering of claims: a line below the cell, a hover card in the text, a table at the end of the page."""

import html
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mlsys.escaping import code, markdown_text
from mlsys.tables import html_table

MIME = "application/vnd.mlsys.claims+json"
_GLUE = "application/papermill.record/"
CITED = 8
"""Maximum number of sources that a hover card lists."""
MANY = 40
"""Number of facts of a claim above which the table does not repeat a list of facts."""
MOST = 300
"""Number of facts above which they are listed by device."""


def show_claims(claims: Iterable[Any], sources: Mapping[str, str]) -> None:
    """Display each claim below the cell and publish it for the text; outside IPython, print it."""
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
    # The printed book prefers Markdown to plain text: an empty comment hides the line there.
    named = ", ".join(html.escape(claim.name) for claim in claims)
    shown = f"<details class='mlsys-claims'><summary>claimed: {named}</summary>{rows}</details>"
    publish({"text/plain": "\n".join(lines), "text/html": shown, "text/markdown": "<!-- -->"}, raw=True)


def _display() -> Any:
    if "IPython" not in sys.modules:  # no kernel is running, so avoid the import
        return None
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return None
    shell = get_ipython()
    return display if shell is not None and hasattr(shell, "kernel") else None


def _card(claim: Any, sources: Mapping[str, str]) -> str:
    cited = list(dict.fromkeys(sources.get(name, name) for name in claim.facts))
    more = [f"and {len(cited) - CITED} more sources, in the table of claims"] if len(cited) > CITED else []
    where = "; ".join([*cited[:CITED], *more])
    note = f"<code>{html.escape(claim.name)} = {html.escape(claim.formula)}</code>{html.escape(where)}"
    return (
        f'<span class="mlsys-claim" tabindex="0">{html.escape(claim.text)}'
        f'<span class="mlsys-card" role="tooltip">{note}</span></span>'
    )


class ClaimsTable:
    """The claims and facts of a page, as text (which the tests compare), HTML and data."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = {"exhibits": [], **record}

    def __repr__(self) -> str:
        lines = [f"Claims of {self.record['page']}: {len(self.record['claims'])}"]
        for claim in self.record["claims"]:
            lines.append(f"  {claim['name']} = {claim['value']} {claim['unit']}".rstrip())
            lines.append(f"      from {claim['formula']}")
            lines += self._fact_lines(claim)
        lines += [f"Tables and pictures: {len(self.record['exhibits'])}"] if self.record["exhibits"] else []
        for shown in self.record["exhibits"]:
            lines.append(f"  {shown['name']} = {shown['digest']}")
            lines += self._fact_lines(shown)
        lines.append(f"Facts read on this page: {len(self.record['facts'])}")
        for fact in self.record["facts"]:
            beside = ", compared" if fact.get("compared") else ""
            lines.append(f"  {fact['name']} = {fact['value']} {fact['unit']}".rstrip() + beside)
            if len(self.record["facts"]) <= MOST:
                lines.append(f"      {_certificate(fact)}")
        return "\n".join(lines)

    def _fact_lines(self, claim: Mapping[str, Any]) -> list[str]:
        """Return the lines that list the facts of a claim: those in its formula, and the compared ones."""
        compared = claim.get("compared", [])
        own = self._facts_text(claim, ", ") if len(compared) < len(claim["facts"]) else ""
        return [f"      on {own}"] * bool(own) + [f"      compared with {', '.join(_short(compared))}"] * bool(compared)

    def _facts_text(self, claim: Mapping[str, Any], between: str) -> str:
        """Return the facts of a claim as text; a long list that an earlier claim shares is not repeated."""
        facts = _in_formula(claim)
        stated = (*self.record["claims"], *self.record["exhibits"])
        first = next(each["name"] for each in stated if _in_formula(each) == facts)
        if len(facts) > MANY and first != claim["name"]:
            return f"the same {len(facts):,} facts as {first}"
        return between.join(_short(facts))

    def _facts_html(self) -> str:
        facts = self.record["facts"]
        if len(facts) <= MOST:
            rows = [(f["name"], f"{f['value']} {f['unit']}".strip(), f["meaning"], _certificate(f)) for f in facts]
            return html_table("Facts used", ("Fact", "Value", "Meaning", "Source (date; confidence)"), rows)
        by_owner: dict[str, list[str]] = {}
        for fact in facts:
            owner, _, name = fact["name"].partition("/")
            by_owner.setdefault(owner, []).append(f"{name or owner} = {fact['value']} {fact['unit']}".strip())
        lines = [(owner, str(len(values)), "; ".join(values)) for owner, values in by_owner.items()]
        return html_table("Facts used, by device", ("Device or topic", "Facts", "Values"), lines)

    def _row(self, claim: Mapping[str, Any]) -> str:
        compared = claim.get("compared", [])
        beside = f" (compared with: {'; '.join(_short(compared))})" if compared else ""
        return (self._facts_text(claim, "; ") + beside).strip() or "—"

    def _repr_html_(self) -> str:
        claims = [
            (c["name"], f"{c['value']} {c['unit']}".strip(), c["formula"], self._row(c)) for c in self.record["claims"]
        ]
        facts = len(self.record["facts"])
        counts = f"{len(claims)} claims on this page" + (f", from {facts:,} facts" if facts else "")
        exhibits = [(shown["name"], self._row(shown)) for shown in self.record["exhibits"]]
        return (
            f"<details class='mlsys-tables'><summary>{counts}</summary>"
            + html_table("Claims of this page", ("Claim", "Value", "Formula", "Facts it depends on"), claims)
            + (
                html_table("Tables and figures of this page", ("Name", "Facts it depends on"), exhibits)
                if exhibits
                else ""
            )
            + self._facts_html()
            + "</details>"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {
            "text/plain": repr(self),
            "text/html": self._repr_html_(),
            "text/markdown": self._repr_markdown_(),
            MIME: _compact(self.record),
        }

    def _repr_markdown_(self) -> str:
        """Return the Markdown for the printed book: the number of claims, and the facts behind them."""
        lines = [f"{len(self.record['claims'])} claims, each with its formula and facts, are listed in the HTML book."]
        if len(self.record["facts"]) > MOST:
            owners = len({fact["name"].partition("/")[0] for fact in self.record["facts"]})
            summary = f"They depend on {len(self.record['facts']):,} facts of {owners} devices and topics"
            return "\n".join([*lines, f"{summary}, which the HTML book lists too."])
        if self.record["facts"]:
            lines += ["They depend on these facts:", ""]
        for fact in self.record["facts"]:
            value, source = markdown_text(f"{fact['value']} {fact['unit']}"), markdown_text(_certificate(fact))
            source = source.replace("/", "/\N{ZERO WIDTH SPACE}")  # allows line breaks in long paths
            lines.append(f"- {code(fact['name'])} = {value}: {source}")
        return "\n".join(lines)


def _certificate(fact: Mapping[str, str]) -> str:
    return f"{fact['source']} ({fact['date']}; {fact['confidence']})"


def _in_formula(claim: Mapping[str, Any]) -> list[str]:
    """Return the facts in the formula of a claim, without the compared ones."""
    beside = set(claim.get("compared", ()))
    return [name for name in claim["facts"] if name not in beside]


def _short(facts: Sequence[str]) -> Sequence[str]:
    return _by_owner(facts) if len(facts) > MOST else facts


def _by_owner(facts: Iterable[str]) -> list[str]:
    """Return the devices and topics of facts, each with its number of facts."""
    counts: dict[str, int] = {}
    for name in facts:
        owner = name.partition("/")[0]
        counts[owner] = counts.get(owner, 0) + 1
    return [f"{owner} ({count})" if count > 1 else owner for owner, count in counts.items()]


def _compact(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record with each repeated long list of facts replaced by a reference to its first entry."""
    known: dict[tuple[str, tuple[str, ...]], str] = {}

    def short(stated: dict[str, Any]) -> dict[str, Any]:
        compact = dict(stated)
        for kind in ("facts", "compared"):
            facts = tuple(stated.get(kind, ()))
            first = known.setdefault((kind, facts), stated["name"])
            if len(facts) > MANY and first != stated["name"]:
                compact[kind] = {"as": first}
        return compact

    return {**record, "claims": [*map(short, record["claims"])], "exhibits": [*map(short, record.get("exhibits", ()))]}


def expanded(record: dict[str, Any]) -> dict[str, Any]:
    """Return the published data of a page with the references to repeated lists of facts resolved.

    Examples
    --------
    >>> short = {"page": "p", "claims": [{"name": "a", "facts": ["x"]}, {"name": "b", "facts": {"as": "a"}}]}
    >>> expanded(short)["claims"][1]["facts"]
    ['x']
    """
    stated = [*record["claims"], *record.get("exhibits", ())]
    by_name = {each["name"]: each for each in reversed(stated)}

    def full(each: dict[str, Any]) -> dict[str, Any]:
        short = {kind: given["as"] for kind in ("facts", "compared") if isinstance(given := each.get(kind), dict)}
        return {**each, **{kind: by_name[first][kind] for kind, first in short.items()}}

    exhibits = [*map(full, record.get("exhibits", ()))]
    return {**record, "claims": [*map(full, record["claims"])], "exhibits": exhibits}
