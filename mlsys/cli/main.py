"""The ``mlsys`` command: look up devices, and ask the book's claims what moved and why."""

from __future__ import annotations

import csv
import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from mlsys.errors import DeviceFileError

__all__ = ["main"]


def _speak_plainly(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn the errors of the library into one line on standard error and exit code 1."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except (ValueError, LookupError, OSError, DeviceFileError) as error:
            raise click.ClickException(str(error)) from error

    return wrapped


class _QuantityType(click.ParamType):
    """An amount with its unit, such as ``"100 TFLOP/s"``."""

    name = "quantity"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        from mlsys.units import Q_, UndefinedUnitError

        number, _, unit = str(value).strip().partition(" ")
        try:
            if unit:
                return Q_(float(number.replace(",", "")), unit)
            why = "it has no unit"
        except (ValueError, UndefinedUnitError) as error:
            why = str(error)
        self.fail(f"{value!r} is not an amount with a unit, such as '100 TFLOP/s': {why}", param, ctx)


@click.group()
@click.version_option(package_name="mlsys")
def main() -> None:
    """Hardware acceleration for machine learning, in numbers with a pedigree."""


@main.command()
@click.argument("name")
@_speak_plainly
def device(name: str) -> None:
    """Print what is known of the device NAME, with the source of every value."""
    from mlsys.hardware import Hardware

    twin = Hardware[name]
    click.echo(f"{twin.name} ({twin.kind}, {twin.vendor}, {twin.release_year})")
    for quantity in twin.recorded():
        (fact,) = quantity.facts
        label = fact.name.removeprefix(f"{twin.id}/")
        click.echo(f"  {label:<34} {quantity!s:>16}  {fact.source} ({fact.date}; {fact.confidence})")


@main.command()
@click.argument("names", nargs=-1)
@click.option("--text", default="", help="Part of an id, alias, name or architecture.")
@click.option("--kind", help="GPU, TPU, NPU, CPU, MCU or SoC.")
@click.option("--vendor", help="As written in the catalogue.")
@click.option("--precision", help="A precision that the device has a peak for.")
@click.option("--min-peak", type=_QuantityType(), help='Least dense rate, with its unit: "100 TFLOP/s".')
@click.option("--min-bandwidth", type=_QuantityType(), help='Least bandwidth of the main memory: "1 TB/s".')
@click.option("--since", type=int, help="First year of release.")
@click.option("--until", type=int, help="Last year of release.")
@click.option(
    "--sort", type=click.Choice(["peak", "bandwidth", "capacity", "ridge", "tdp", "year"]), help="Largest first."
)
@click.option("--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@_speak_plainly
def devices(names: tuple[str, ...], sort: str | None, form: str, **criteria: Any) -> None:
    """List the devices that meet every criterion, or set those called NAMES side by side."""
    from mlsys.hardware import Hardware
    from mlsys.hardware.compare import comparison, listing, records

    if names and any(criteria.values()):
        raise ValueError("give either NAMES to compare or criteria to filter by, not both")
    chosen = [Hardware[name] for name in names] or Hardware.find(**criteria)
    if sort == "year":
        chosen.sort(key=lambda twin: -twin.release_year)
    elif sort:
        chosen.sort(key=lambda twin: -_amount(twin.glance()[sort]))
    if form == "json":
        click.echo(json.dumps(records(chosen), indent=1, ensure_ascii=False))
    elif form == "csv":
        rows = records(chosen)
        writer = csv.DictWriter(sys.stdout, rows[0] if rows else ["id"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        click.echo(comparison(chosen) if names else listing(chosen))


def _amount(value: Any) -> float:
    return float("-inf") if value is None else float(value.to_base_units().magnitude)


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@_speak_plainly
def check(files: tuple[Path, ...]) -> None:
    """Check device FILES against the schema; every fault is listed with file and line."""
    from mlsys.hardware import load_device

    faults = []
    for path in files:
        try:
            click.echo(f"{path}: {load_device(path)!r}")
        except DeviceFileError as error:
            faults.append(str(error))
    if faults:
        raise click.ClickException("\n".join(faults))


@main.group()
def claims() -> None:
    """List what the pages state, compare two versions, ask what it leans on."""


@claims.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print everything, as JSON.")
@_speak_plainly
def ledger(paths: tuple[Path, ...], as_json: bool) -> None:
    """List every claim of the notebooks at PATHS (by default book and labs)."""
    from mlsys.claims import ledger as read_ledger

    found = read_ledger(paths or [Path("book"), Path("labs")])
    if as_json:
        click.echo(json.dumps(list(found.values()), indent=1, ensure_ascii=False))
        return
    for (page, name), claim in found.items():
        click.echo(f"{page:<14} {name:<22} {claim['text']:>18}  {claim['formula']}")


@claims.command()
@click.argument("before")
@click.argument("after", required=False)
@click.option("--exit-code", is_flag=True, help="Exit with 1 if any claim moved.")
@_speak_plainly
def diff(before: str, after: str | None, exit_code: bool) -> None:
    """Print the claims that moved between two versions.

    BEFORE and AFTER are git revisions, folders or notebooks; without AFTER, the
    notebooks as they are now.
    """
    from mlsys.claims import diff as compare

    moves = compare(_version(before), _version(after))
    for move in moves:
        click.echo(f"{move.page}: {move.name}: {move.before or '—'} → {move.after or '—'} ({move.change})")
    click.echo(f"{len(moves)} claim{'' if len(moves) == 1 else 's'} moved")
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
@click.option("--step", default=0.01, show_default=True, help="Relative change of each fact.")
@_speak_plainly
def sensitivity(notebook: Path, step: float) -> None:
    """Tell which facts the claims of NOTEBOOK lean on, and how strongly.

    The number is an elasticity: -1 means that the claim falls by 1 % when the fact
    rises by 1 %.
    """
    from mlsys.claims.sensitivity import sensitivity as measure

    for fact, moved in measure(notebook, step, progress=_progress).items():
        click.echo(fact)
        for name, elasticity in sorted(moved.items(), key=lambda item: -abs(item[1])):
            click.echo(f"    {name:<24} {elasticity:+.3g}")
        if not moved:
            click.echo("    moves nothing")


def _progress(facts: list[str]) -> Any:
    return click.progressbar(facts, label="Facts tried", file=sys.stderr)
