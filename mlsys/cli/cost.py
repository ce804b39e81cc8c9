"""``mlsys cost``: what a machine costs to rent and to buy, the energy that it uses, and its emissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click

from mlsys.choices import Commitment
from mlsys.cli.common import one_form, print_csv, print_record, say, say_overrides, speak_plainly
from mlsys.cli.parameters import Finite, QuantityType, Whole, complete_device

if TYPE_CHECKING:
    from mlsys.units import Quantity


def _complete_machine(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of systems and devices that begin so, for the shell to complete."""
    from mlsys.hardware import systems

    names = [each.id for each in systems if each.id.lower().startswith(incomplete.lower())]
    return [*names, *complete_device(ctx, param, incomplete)]


@click.command()
@click.argument("machine", shell_complete=_complete_machine)
@click.option(
    "--hours",
    type=Finite(min=0, min_open=True),
    default=1000,
    show_default=True,
    help="Hours for which the machine is held, idle or not.",
)
@click.option("--nodes", type=Whole(min=1), help="Number of nodes; by default that of the system.")
@click.option(
    "--utilisation",
    type=Finite(min=0, min_open=True, max=1),
    default=1.0,
    show_default=True,
    help="Fraction of the hours under load; for the rest the machine is off and not rented.",
)
@click.option("--grid", default="World", show_default=True, help="Country whose electricity it uses: France, USA, …")
@click.option("--year", type=Whole(min=1), help="Latest year of prices, and year of the grid; by default the latest.")
@click.option("--provider", help="Provider of the rent: AWS, Azure, …; by default the median of all.")
@click.option(
    "--commitment",
    type=click.Choice(get_args(Commitment)),
    default="on-demand",
    show_default=True,
    help="Terms of the rent.",
)
@click.option("--rent", type=QuantityType("USD/hour"), help="Rent of the whole machine, such as '2 USD/hour'.")
@click.option("--price", type=QuantityType("USD"), help="Price of the whole machine, such as '25000 USD'.")
@click.option("--electricity", type=QuantityType("USD/kWh"), help="Price of electricity, such as '0.12 USD/kWh'.")
@click.option(
    "--pue",
    type=Finite(min=1),
    help="Energy of the data centre per energy of its machines; by default a survey's mean.",
)
@click.option("--power", type=QuantityType("W"), help="Power of the whole machine under load; by default as recorded.")
@click.option("--lifetime", type=QuantityType("year"), help="Time in service; by default '4 year'.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line per quantity.")
@speak_plainly
def cost(machine: str, hours: float, lifetime: Quantity | None, as_json: bool, as_csv: bool, **options: Any) -> None:
    """Estimate what MACHINE costs to rent and to buy, its energy and its emissions.

    MACHINE is a device such as A100, a system such as DGX_H100, or the file of one. Prices are from the latest
    recorded year, with their dates; a range is that of the quotations of that year.

    \b
        mlsys cost A100 --hours 1000 --grid France
        mlsys cost DGX_H100 --utilisation 0.6 --provider Lambda --electricity '0.12 USD/kWh'
    """  # noqa: D301
    from mlsys.api.cost import cost as costs
    from mlsys.models.prices import device_and_chips
    from mlsys.models.user_overrides import user_overrides
    from mlsys.units import Q_

    one_form(as_json, as_csv)
    kept: dict[str, Any] = {} if lifetime is None else {"lifetime": lifetime}
    answer = costs(machine, Q_(hours, "hour"), **kept, **options)
    overrides = user_overrides([device_and_chips("cost", answer.machine)[0]])
    if as_json:
        print_record(answer.record(), overrides)
    elif as_csv:
        print_csv(answer.rows(), overrides=overrides)
    else:
        say(answer.explain())
        say_overrides(overrides)
