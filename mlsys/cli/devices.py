"""``mlsys device``, ``mlsys devices``, ``mlsys check``: look things up in the catalogue."""

from pathlib import Path
from typing import Any

import click

from mlsys.cli.common import WrongUsage, print_csv, say, say_json, say_own, speak_plainly
from mlsys.cli.parameters import QuantityType, Whole, complete_device
from mlsys.errors import DeviceFileError


@click.command()
@click.argument("name", shell_complete=complete_device)
@speak_plainly
def device(name: str) -> None:
    """Print what is known of the device NAME, with the source of every value."""
    from mlsys.hardware import Hardware
    from mlsys.models.own import own_numbers

    twin = Hardware[name]
    say(f"{twin.name} ({twin.kind}, {twin.vendor}, {twin.release_year})")
    for quantity in twin.recorded():
        (fact,) = quantity.facts
        label = fact.name.removeprefix(f"{twin.id}/")
        spread = f" ± {fact.uncertainty:g}" if fact.uncertainty else ""
        say(f"  {label:<34} {quantity!s:>16}{spread:<7}  {fact.source} ({fact.date}; {fact.confidence})")
    for level in twin.memory.values():
        if level._capacity is None:
            say(f"  {f'memory/{level.name}/capacity':<34} {'not recorded':>16}         {level.note}")
    say_own(own_numbers([twin]))


@click.command()
@click.argument("names", nargs=-1, shell_complete=complete_device)
@click.option("--text", default="", help="Part of an id, alias, name or architecture.")
@click.option("--kind", help="GPU, TPU, NPU, CPU, MCU or SoC.")
@click.option("--vendor", help="As written in the catalogue.")
@click.option("--precision", help="A precision that the device has a peak for.")
@click.option("--min-peak", type=QuantityType("FLOP/s"), help='Least dense rate, with its unit: "100 TFLOP/s".')
@click.option("--min-bandwidth", type=QuantityType("byte/s"), help='Least bandwidth of the main memory: "1 TB/s".')
@click.option("--since", type=Whole(), help="First year of release.")
@click.option("--until", type=Whole(), help="Last year of release.")
@click.option(
    "--sort", type=click.Choice(["peak", "bandwidth", "capacity", "ridge", "tdp", "year"]), help="Largest first."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="Of what is printed.",
)
@speak_plainly
def devices(names: tuple[str, ...], sort: str | None, form: str, **criteria: Any) -> None:
    """List the devices that meet every criterion, or set those called NAMES side by side."""
    from mlsys.hardware import Hardware
    from mlsys.hardware.compare import comparison, listing, records
    from mlsys.models.own import own_numbers

    if names and any(criteria.values()):
        raise WrongUsage("give either NAMES to compare or criteria to filter by, not both")
    chosen = [Hardware[name] for name in names] or Hardware.find(**criteria)
    if sort == "year":
        chosen.sort(key=lambda twin: -twin.release_year)
    elif sort:
        chosen.sort(key=lambda twin: -_amount(twin.glance()[sort]))
    own = own_numbers(chosen)
    if form == "json":
        say_json(records(chosen), own)
    elif form == "csv":
        print_csv(records(chosen), None if chosen else ["id"], own)
    else:
        say(comparison(chosen) if names else listing(chosen))
        say_own(own)


def _amount(value: Any) -> float:
    return float("-inf") if value is None else float(value.to_base_units().magnitude)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@speak_plainly
def check(files: tuple[Path, ...]) -> None:
    """Check device FILES against the schema; every fault is listed with file and line."""
    from mlsys.hardware import load_device
    from mlsys.hardware.catalogue import refuse_second_file

    faults = []
    first: dict[Path, dict[str, Path]] = {}  # by folder: a copy elsewhere may be meant to replace a device
    for path in dict.fromkeys(files):
        try:
            device = load_device(path)
            refuse_second_file(device.id, path, first.setdefault(path.parent, {}))
            say(f"{path}: {device!r}")
        except DeviceFileError as error:
            faults.append(str(error))
    if faults:
        raise click.ClickException("\n".join(faults))
