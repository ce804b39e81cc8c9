"""``mlsys flops``: operations, weights and memory traffic of a network."""

from typing import Any

import click

from mlsys.cli.common import one_form, print_csv, print_record, say, speak_plainly
from mlsys.cli.networks import format_options, network_arguments, network_options
from mlsys.cli.parameters import complete_model


@click.command()
@click.argument("model", shell_complete=complete_model)
@network_options("Number format of every value; by default fp32, or that of a factory, config.json or ONNX file.")
@format_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line per kind of operator.")
@speak_plainly
def flops(model: str, as_json: bool, as_csv: bool, **options: Any) -> None:
    """Count operations, weights and memory traffic of MODEL, without running it or loading weights.

    MODEL is the name of a network, a `package.module:factory` that returns a torch module or
    (module, example_inputs), the config.json of a transformers model, or an ONNX file.

    `flops` counts all floating-point operations; `product_flops` counts those of matrix products, convolutions and
    attention, two per MAC, as torch.utils.flop_counter does.

    The batch, sequence and image axes of a module's inputs are found by running it without data; a size that the inputs
    do not have is refused. Notes explain the counting of masked attention and of products of three tensors.
    """
    from mlsys.api.flops import flops as counted

    one_form(as_json, as_csv)
    count = counted(model, **network_arguments(options))
    if as_csv:
        print_csv(count.rows())
    elif as_json:
        print_record(count.record())
    else:
        say(count.explain())
