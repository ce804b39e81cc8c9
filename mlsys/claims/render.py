"""How claims look: a line under the cell, a hover card in the prose, a table at the end."""

import html
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mlsys.escaping import code, markdown_text
from mlsys.tables import html_table

MIME = "application/vnd.mlsys.claims+json"
_GLUE = "application/papermill.record/"
CITED = 8
"""Sources that a hover card names."""
MANY = 40
"""Facts of one claim from which on the table does not list them a second time."""
MOST = 300
"""Facts of a page from which on they are told device by device."""


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
    cited = list(dict.fromkeys(sources.get(name, name) for name in claim.facts))
    more = [f"and {len(cited) - CITED} more sources, in the table of claims"] if len(cited) > CITED else []
    where = "; ".join([*cited[:CITED], *more])
    note = f"<code>{html.escape(claim.name)} = {html.escape(claim.formula)}</code>{html.escape(where)}"
    return (
        f'<span class="mlsys-claim" tabindex="0">{html.escape(claim.text)}'
        f'<span class="mlsys-card" role="tooltip">{note}</span></span>'
    )


class ClaimsTable:
    """The claims and facts of a page, as text (which the tests pin), HTML and data."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = {"exhibits": [], **record}

    def __repr__(self) -> str:
        lines = [f"Claims of {self.record['page']}: {len(self.record['claims'])}"]
        for claim in self.record["claims"]:
            lines.append(f"  {claim['name']} = {claim['value']} {claim['unit']}".rstrip())
            lines.append(f"      from {claim['formula']}")
            lines += self._told(claim)
        lines += [f"Tables and pictures: {len(self.record['exhibits'])}"] if self.record["exhibits"] else []
        for shown in self.record["exhibits"]:
            lines.append(f"  {shown['name']} = {shown['digest']}")
            lines += self._told(shown)
        lines.append(f"Facts read on this page: {len(self.record['facts'])}")
        for fact in self.record["facts"]:
            beside = ", compared" if fact.get("compared") else ""
            lines.append(f"  {fact['name']} = {fact['value']} {fact['unit']}".rstrip() + beside)
            if len(self.record["facts"]) <= MOST:
                lines.append(f"      {_certificate(fact)}")
        return "\n".join(lines)

    def _told(self, claim: Mapping[str, Any]) -> list[str]:
        """Return the lines that name the facts of a claim: those in its sum, and those it was compared with."""
        compared = claim.get("compared", [])
        own = self._leans(claim, ", ") if len(compared) < len(claim["facts"]) else ""
        return [f"      on {own}"] * bool(own) + [f"      compared with {', '.join(_short(compared))}"] * bool(compared)

    def _leans(self, claim: Mapping[str, Any], between: str) -> str:
        """Return the facts of a claim in words; many that an earlier claim leans on too are not listed again."""
        facts = _in_sum(claim)
        stated = (*self.record["claims"], *self.record["exhibits"])
        first = next(each["name"] for each in stated if _in_sum(each) == facts)
        if len(facts) > MANY and first != claim["name"]:
            return f"the same {len(facts):,} facts as {first}"
        return between.join(_short(facts))

    def _facts_html(self) -> str:
        facts = self.record["facts"]
        if len(facts) <= MOST:
            rows = [(f["name"], f"{f['value']} {f['unit']}".strip(), f["meaning"], _certificate(f)) for f in facts]
            return html_table("The facts it read", ("Fact", "Value", "Meaning", "Source (date; confidence)"), rows)
        told: dict[str, list[str]] = {}
        for fact in facts:
            owner, _, name = fact["name"].partition("/")
            told.setdefault(owner, []).append(f"{name or owner} = {fact['value']} {fact['unit']}".strip())
        lines = [(owner, str(len(values)), "; ".join(values)) for owner, values in told.items()]
        return html_table("The facts it read, device by device", ("Of", "Facts", "Values"), lines)

    def _row(self, claim: Mapping[str, Any]) -> str:
        compared = claim.get("compared", [])
        beside = f" (compared with: {'; '.join(_short(compared))})" if compared else ""
        return (self._leans(claim, "; ") + beside).strip() or "—"

    def _repr_html_(self) -> str:
        claims = [
            (c["name"], f"{c['value']} {c['unit']}".strip(), c["formula"], self._row(c)) for c in self.record["claims"]
        ]
        facts = len(self.record["facts"])
        counts = f"{len(claims)} claims on this page" + (f", from {facts:,} facts" if facts else "")
        exhibits = [(shown["name"], self._row(shown)) for shown in self.record["exhibits"]]
        return (
            f"<details class='mlsys-tables'><summary>{counts}</summary>"
            + html_table("What this page claims", ("Claim", "Value", "From", "Facts it leans on"), claims)
            + (html_table("Its tables and pictures", ("Shown", "Facts it leans on"), exhibits) if exhibits else "")
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
        """Return what print shows: how many claims, and the facts they stand on."""
        lines = [f"{len(self.record['claims'])} claims, each with its sum and its facts, are listed in the HTML book."]
        if len(self.record["facts"]) > MOST:
            owners = len({fact["name"].partition("/")[0] for fact in self.record["facts"]})
            told = f"They stand on {len(self.record['facts']):,} facts of {owners} devices and topics"
            return "\n".join([*lines, f"{told}, which the HTML book lists too."])
        if self.record["facts"]:
            lines += ["They stand on these facts:", ""]
        for fact in self.record["facts"]:
            value, source = markdown_text(f"{fact['value']} {fact['unit']}"), markdown_text(_certificate(fact))
            source = source.replace("/", "/\N{ZERO WIDTH SPACE}")  # where a long path may break
            lines.append(f"- {code(fact['name'])} = {value}: {source}")
        return "\n".join(lines)


def _certificate(fact: Mapping[str, str]) -> str:
    return f"{fact['source']} ({fact['date']}; {fact['confidence']})"


def _in_sum(claim: Mapping[str, Any]) -> list[str]:
    """Return the facts that set a claim, without those it was only compared with."""
    beside = set(claim.get("compared", ()))
    return [name for name in claim["facts"] if name not in beside]


def _short(facts: Sequence[str]) -> Sequence[str]:
    return _by_owner(facts) if len(facts) > MOST else facts


def _by_owner(facts: Iterable[str]) -> list[str]:
    """Count facts by the device or topic they belong to."""
    counts: dict[str, int] = {}
    for name in facts:
        owner = name.partition("/")[0]
        counts[owner] = counts.get(owner, 0) + 1
    return [f"{owner} ({count})" if count > 1 else owner for owner, count in counts.items()]


def _compact(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record with long lists of facts that something earlier has too replaced by the name of that."""
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
    """Return a page's data as :class:`ClaimsTable` publishes it with every claim's facts listed.

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
