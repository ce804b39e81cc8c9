"""``mlsys device``, ``mlsys devices``, ``mlsys check``: queries and checks of the device catalogue."""

from pathlib import Path
from typing import Any

import click

from mlsys.cli.common import WrongUsage, print_csv, say, say_json, say_overrides, speak_plainly
from mlsys.cli.parameters import Input, QuantityType, Whole, complete_device
from mlsys.errors import DeviceFileError


@click.command()
@click.argument("name", shell_complete=complete_device)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, every value with its source.")
@speak_plainly
def device(name: str, as_json: bool) -> None:
    """Print every recorded value of the device NAME, with its source."""
    from mlsys.api.devices import device as known
    from mlsys.models.user_overrides import user_overrides

    twin = known(name)
    overrides = user_overrides([twin])
    if as_json:
        say_json(twin.record(), overrides)
        return
    say(f"{twin.name} ({twin.kind}, {twin.vendor}, {twin.release_year})")
    for quantity in twin.recorded():
        (fact,) = quantity.facts
        label = fact.name.removeprefix(f"{twin.id}/")
        spread = f" ± {fact.uncertainty:g}" if fact.uncertainty else ""
        say(f"  {label:<34} {quantity!s:>16}{spread:<7}  {fact.source} ({fact.date}; {fact.confidence})")
    for level in twin.memory.values():
        if not level.has_capacity:
            say(f"  {f'memory/{level.name}/capacity':<34} {'not recorded':>16}         {level.note}")
    say_overrides(overrides)


@click.command()
@click.argument("names", nargs=-1, shell_complete=complete_device)
@click.option("--text", default="", help="Part of an id, alias, name or architecture.")
@click.option("--kind", help="GPU, TPU, NPU, CPU, MCU or SoC.")
@click.option("--vendor", help="As written in the catalogue.")
@click.option("--precision", help="A precision for which the device has a peak.")
@click.option("--min-peak", type=QuantityType("FLOP/s"), help='Least dense rate, with a unit: "100 TFLOP/s".')
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
    help="Output format.",
)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@speak_plainly
def devices(names: tuple[str, ...], sort: Any, form: str, as_json: bool, **criteria: Any) -> None:
    """List the devices that meet all criteria, or compare those called NAMES."""
    from mlsys.api.devices import devices as known
    from mlsys.models.user_overrides import user_overrides

    if as_json and form == "csv":
        raise WrongUsage("give either --json or --format csv, not both")
    form = "json" if as_json else form
    if names and any(criteria.values()):
        raise WrongUsage("give either NAMES to compare or criteria to filter by, not both")
    chosen = known(*names, sort=sort, **criteria)
    overrides = user_overrides(chosen)
    if form == "json":
        say_json(chosen.record(), overrides)
    elif form == "csv":
        print_csv(chosen.record(), None if len(chosen) else ["id"], overrides)
    else:
        say(chosen.explain())
        say_overrides(overrides)


@click.command()
@click.argument("files", nargs=-1, required=True, type=Input())
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object: each file with its device or system, or its errors."
)
@speak_plainly
def check(files: tuple[Path, ...], as_json: bool) -> None:
    """Check FILES of devices and systems against their schema; every error is listed with file and line."""
    from mlsys.hardware import load_device, load_system
    from mlsys.hardware.catalogue import refuse_second_file
    from mlsys.hardware.loader import is_system_file

    faults = []
    checked: list[dict[str, object]] = []
    first: dict[Path, dict[str, Path]] = {}  # by folder: a copy in another folder may be meant as a replacement
    for path in dict.fromkeys(files):
        try:
            twin = load_system(path) if is_system_file(path) else load_device(path)
            refuse_second_file(twin.id, path, first.setdefault(path.parent, {}))
        except DeviceFileError as error:
            faults.append(str(error))
            checked.append({"file": str(path), "device": None, "faults": str(error).splitlines()})
            continue
        checked.append({"file": str(path), "device": twin.id, "faults": []})
        if not as_json:
            say(f"{path}: {twin!r}")
    if as_json:
        say_json({"files": checked})
    if faults:
        raise click.ClickException("\n".join(faults))
