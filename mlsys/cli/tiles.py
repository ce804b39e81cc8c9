"""``mlsys tiles``: how a device cuts a network into tiles, and what that costs in time and energy."""

from typing import Any

import click

from mlsys.cli.common import one_form, print_csv, print_record, say, say_own, speak_plainly
from mlsys.cli.networks import as_kernels_if, asked_network, network_options, sizes_in_words, sizes_used
from mlsys.cli.parameters import QuantityType, complete_device, complete_model


@click.command()
@click.argument("model", shell_complete=complete_model)
@click.option(
    "--device", "name", required=True, help="A device, such as A100 or GenericKPU.", shell_complete=complete_device
)
@network_options("Of every value; by default the headline format of the device.")
@click.option("--onchip", type=QuantityType("byte"), help='Memory on the chip of a teaching profile, such as "8 MiB".')
@click.option("--strategy", help="cpu, gpu, tpu or kpu; by default what suits the device.")
@click.option("--unfused", is_flag=True, help="Every activation and normalisation as a kernel of its own.")
@click.option("--launch", type=QuantityType("s"), help='Time each kernel costs beside its work, such as "5 us".')
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line for each operator.")
@speak_plainly
def tiles(
    model: str,
    name: str,
    onchip: Any,
    strategy: Any,
    unfused: bool,
    launch: Any,
    as_json: bool,
    as_csv: bool,
    **options: Any,
) -> None:
    """Cut every operator of MODEL into the tiles that suit a device.

    MODEL is what `mlsys flops` takes: the name of a network, a `package.module:factory`, the config.json
    of a transformers model, or an ONNX file.

    Prints time, energy and bytes by memory level, and the operators that take longest with their tiles.
    Nothing is fitted: what is counted are bytes that tiles read again, waves that are not full, and launches.
    """
    from mlsys.hardware import Hardware
    from mlsys.models.architecture import architecture
    from mlsys.models.own import own_numbers

    one_form(as_json, as_csv)
    device = Hardware[name]
    if onchip is not None:
        device = device.with_onchip(onchip)
    work = asked_network(model, options, device.headline)
    kernels = as_kernels_if(not unfused, work)
    result = architecture(device, kernels, strategy=strategy, launch_overhead=launch)
    own = own_numbers([device])
    if as_json:
        print_record({**result.record(), **_sizes(work)}, own)
    elif as_csv:
        print_csv(_rows(result), own=own)
    else:
        say(result.explain())
        say(_longest(result))
        say(sizes_in_words(work))
        say_own(own)


def _sizes(work: Any) -> dict[str, Any]:
    """Return the sizes that a network was made with, and its work."""
    return {
        **sizes_used(work),
        "flops": work.flops.m_as("FLOP"),
        "product_flops": work.product_flops.m_as("FLOP"),
    }


def _rows(result: Any) -> list[dict[str, Any]]:
    return [
        {
            "operator": child.workload,
            "tile": "x".join(map(str, child.plan.tile)),
            "tiles": child.plan.count,
            "level": child.plan.level,
            "buffer_bytes": child.plan.buffer.m_as("byte"),
            "block": "x".join(map(str, child.plan.block)),
            "block_level": child.plan.block_level,
            "read_bytes": child.plan.read.m_as("byte"),
            "written_bytes": child.plan.written.m_as("byte"),
            "loads": child.plan.loads,
            "waves": child.plan.waves,
            "utilisation": child.plan.utilisation,
            "seconds": child.time.m_as("s"),
            "joules": child.spent.m_as("J"),
            "bound_by": child.bound_by,
        }
        for child in result.children
    ]


def _longest(result: Any, shown: int = 10) -> Any:
    """Return the operators that take longest, equal ones taken together."""
    from mlsys.tables import Table

    alike: dict[tuple[str, float], list[Any]] = {}
    for child in result.children:
        alike.setdefault((child.workload, child.time.m_as("s")), []).append(child)
    order = sorted(alike.values(), key=lambda members: -len(members) * members[0].time.m_as("s"))
    lines = [
        (
            members[0].workload,
            len(members),
            f"{(len(members) * members[0].time / result.time).m_as(''):.1%}",
            "×".join(map(str, members[0].plan.tile)),
            f"{members[0].plan.count:,}",
            f"{members[0].plan.utilisation:.0%}",
            members[0].bound_by,
        )
        for members in order[:shown]
    ]
    return Table("Longest operators", ("operator", "times", "share", "tile", "tiles", "of peak", "bound by"), lines)
