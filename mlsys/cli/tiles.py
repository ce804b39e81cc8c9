"""``mlsys tiles``: how a device cuts a network into tiles, and what that costs in time and energy."""

from typing import Any

import click

from mlsys.cli.common import one_form, print_csv, print_record, say, say_overrides, speak_plainly
from mlsys.cli.networks import network_arguments, network_options
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
    from mlsys.api.tiles import tiles as tiled
    from mlsys.models.user_overrides import user_overrides

    one_form(as_json, as_csv)
    answer = tiled(
        name,
        model,
        onchip=onchip,
        strategy=strategy,
        fusion=not unfused,
        launch_overhead=launch,
        **network_arguments(options),
    )
    overrides = user_overrides([answer.device])
    if as_json:
        print_record(answer.record(), overrides)
    elif as_csv:
        print_csv(answer.rows(), overrides=overrides)
    else:
        say(answer.explain())
        say_overrides(overrides)
