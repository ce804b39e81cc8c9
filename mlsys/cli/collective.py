"""``mlsys collective``: time of a collective operation on a system, by algorithm."""

import re
from typing import TYPE_CHECKING, get_args

import click

from mlsys.choices import Collective, CollectiveAlgorithm, CollectiveLibrary
from mlsys.cli.common import one_form, print_csv, print_record, say, speak_plainly
from mlsys.cli.parameters import QuantityType, Whole, complete_system

if TYPE_CHECKING:
    from mlsys.units import Quantity


class SizeType(QuantityType):
    """Bytes with their unit, with or without a space between: ``"1 GB"``, ``"1GB"``."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> "Quantity":
        """Return the quantity that ``value`` writes, or fail in one line."""
        return super().convert(re.sub(r"^([0-9.,]*[0-9])([A-Za-z]+)$", r"\1 \2", str(value)), param, ctx)


@click.command()
@click.argument("operation", type=click.Choice(get_args(Collective)))
@click.argument("size", type=SizeType("byte"))
@click.option(
    "--on", "system", required=True, shell_complete=complete_system, help="A system, a device, or a system's YAML file."
)
@click.option("--chips", type=Whole(), help="Chips that take part; by default all of the system.")
@click.option("--nodes", type=Whole(), help="Nodes of the system; by default one.")
@click.option("--algorithm", type=click.Choice(get_args(CollectiveAlgorithm)), help="Estimate this algorithm alone.")
@click.option(
    "--library",
    type=click.Choice(get_args(CollectiveLibrary)),
    help="nccl: the protocols of NCCL; ideal: closed forms at full bandwidth. By default nccl on NVIDIA GPUs.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, one row per algorithm.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@speak_plainly
def collective(
    operation: Collective,
    size: "Quantity",
    system: str,
    chips: int | None,
    nodes: int | None,
    algorithm: CollectiveAlgorithm | None,
    library: CollectiveLibrary | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Estimate an OPERATION of SIZE bytes among the chips of a system, by algorithm.

    Bandwidths are those of nccl-tests: SIZE divided by the time (algorithm), and that multiplied by the bytes that each
    chip must send per byte of SIZE (bus). SIZE is that of the array of each chip; for an all-gather and a
    reduce-scatter, that of the whole array.
    """
    from mlsys.api.collective import collective as estimated

    one_form(as_json, as_csv)
    answer = estimated(operation, size, system, chips=chips, nodes=nodes, algorithm=algorithm, library=library)
    if as_json:
        print_record(answer.record())
    elif as_csv:
        print_csv(answer.rows(), ["algorithm"])
    else:
        say(answer.explain())
