"""``mlsys tiles``: tiling of a network on a device, with its time and energy."""

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
@network_options("Format of every value; by default the headline format of the device.")
@click.option("--onchip", type=QuantityType("byte"), help='On-chip memory of a teaching profile, such as "8 MiB".')
@click.option("--strategy", help="cpu, gpu, tpu or kpu; by default the strategy that suits the device.")
@click.option("--unfused", is_flag=True, help="Run every activation and normalisation as a separate kernel.")
@click.option("--launch", type=QuantityType("s"), help='Launch time added to each kernel, such as "5 us".')
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line per operator.")
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
    """Tile every operator of MODEL for a device.

    MODEL is any network that `mlsys flops` accepts: the name of a network, a `package.module:factory`, the config.json
    of a transformers model, or an ONNX file.

    Prints time, energy and bytes by memory level, and the slowest operators with their tiles. Nothing is fitted: the
    model counts bytes that tiles read again, partially filled waves, and launches.
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
