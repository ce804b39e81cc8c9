"""``mlsys claims``: the claims of the pages, their changes and their dependencies."""

import json
from pathlib import Path
from typing import Any

import click

from mlsys.cli.common import progress, say, say_json, speak_plainly
from mlsys.cli.parameters import Finite, Input


@click.group()
def claims() -> None:
    """List the claims of the book, compare two versions, and show what a claim depends on."""


@claims.command()
@click.argument("paths", nargs=-1, type=Input())
@click.option("--json", "as_json", is_flag=True, help="Print everything, as JSON.")
@speak_plainly
def ledger(paths: tuple[Path, ...], as_json: bool) -> None:
    """List every claim of the notebooks at PATHS (by default book and labs)."""
    from mlsys.claims import ledger as read_ledger

    records = read_ledger(paths or [Path("book"), Path("labs")])
    if as_json:
        say(json.dumps(list(records.values()), indent=1, ensure_ascii=False))
        return
    for (page, name), claim in records.items():
        say(f"{page:<14} {name:<22} {claim.get('text', '—'):>18}  {claim.get('formula', '')}")


@claims.command()
@click.argument("before")
@click.argument("after", required=False)
@click.option("--exit-code", is_flag=True, help="Exit with 1 if anything changed.")
@speak_plainly
def diff(before: str, after: str | None, exit_code: bool) -> None:
    """Print the claims that differ between two versions.

    BEFORE and AFTER are git revisions, folders or notebooks; AFTER defaults to the current notebooks.
    """
    from mlsys.claims import diff as compare

    moves = compare(_version(before), _version(after))
    for move in moves:
        say(f"{move.page}: {move.name}: {move.before or '—'} → {move.after or '—'} ({move.change})")
    say(f"{len(moves)} claim{'' if len(moves) == 1 else 's'} changed")
    if moves and exit_code:
        raise SystemExit(1)


def _version(named: str | None) -> Any:
    from mlsys.claims import ledger as read_ledger
    from mlsys.claims import ledger_at

    if named is None:
        return read_ledger([Path("book"), Path("labs")])
    return read_ledger([named]) if Path(named).exists() else ledger_at(named)


@claims.command()
@click.argument("notebook", type=click.Path(exists=True, path_type=Path))
@click.option("--step", type=Finite(), default=0.01, show_default=True, help="Relative change of each fact.")
@click.option(
    "--seconds",
    type=Finite(min=0.1),
    default=600.0,
    show_default=True,
    help="Time limit; prints the facts done so far.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object: facts, claims, elasticities; null for infinite ones."
)
@speak_plainly
def sensitivity(notebook: Path, step: float, seconds: float, as_json: bool) -> None:
    """Show which facts the claims of NOTEBOOK depend on, and how strongly.

    The number is an elasticity: -1 means that the claim falls by 1 % when the fact rises by 1 %. This runs the code of
    NOTEBOOK once per fact: use it only on notebooks that you trust.
    """
    import math
    import warnings

    from mlsys.claims.sensitivity import sensitivity as measure

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        facts = measure(notebook, step, progress=lambda listed: progress(listed, "Facts tried"), seconds=seconds)
    stopped = [str(warning.message) for warning in warned if str(warning.message).startswith(f"{notebook}: ")]
    if as_json:
        facts_of_step = {
            fact: {name: value if math.isfinite(value) else None for name, value in moved.items()}
            for fact, moved in facts.items()
        }
        say_json({"notebook": str(notebook), "step": step, "complete": not stopped, "facts": facts_of_step})
    else:
        for fact, moved in facts.items():
            say(fact)
            for name, elasticity in sorted(moved.items(), key=lambda item: -abs(item[1])):
                say(f"    {name:<24} {elasticity:+.3g}")
            if not moved:
                say("    changes nothing")
    for text in stopped:
        say(text, err=True)
