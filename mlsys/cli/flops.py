"""``mlsys flops``: the work, the weights and the bytes of a network."""

from typing import Any

import click

from mlsys.cli.common import one_form, print_csv, print_record, say, speak_plainly
from mlsys.cli.networks import asked_network, network_options, sizes_in_words, sizes_used
from mlsys.cli.parameters import complete_model


@click.command()
@click.argument("model", shell_complete=complete_model)
@network_options("Number format of every value; by default fp32, or what a factory, config.json or ONNX file says.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line for each kind of operator.")
@speak_plainly
def flops(model: str, as_json: bool, as_csv: bool, **options: Any) -> None:
    """Count the work, the weights and the traffic of MODEL; nothing is computed, no weight is loaded.

    MODEL is the name of a network, a `package.module:factory` that returns a torch module or
    (module, example_inputs), the config.json of a transformers model, or an ONNX file.

    `flops` are all floating-point work. `product_flops` are those of matrix products, convolutions
    and attention, two for each MAC, as torch.utils.flop_counter counts them.

    Which axis of a module's inputs is the batch, the sequence or the image is found by running it without data; a size
    that the inputs do not have is refused. Notes say how masked attention and products of three tensors are counted.
    """
    one_form(as_json, as_csv)
    work = asked_network(model, options)
    if as_csv:
        print_csv(_kinds(work))
    elif as_json:
        print_record(_report(work))
    else:
        say("\n".join([work.explain(), *_decoder_lines(work), sizes_in_words(work, notes=False)]))


def _decoder_lines(network: Any) -> list[str]:
    if network.decoder is None:
        return []
    active, token, cache = network.active_parameters, network.kv_cache_bytes_per_token, network.kv_cache_bytes
    return [
        f"{active.to_compact():.4g~P} active for a token",
        f"KV cache: {token.to_compact():.6g~P} a token, {cache.to_compact():.6g~P} at this length and batch",
    ]


def _decoder_record(network: Any) -> dict[str, Any]:
    """Return what a decoder language model has beside other networks."""
    if network.decoder is None:
        return {}
    return {
        "active_parameters": int(network.active_parameters.m_as("param")),
        "kv_cache_bytes_per_token": round(network.kv_cache_bytes_per_token.m_as("byte")),
        "kv_cache_bytes": round(network.kv_cache_bytes.m_as("byte")),
        "context": getattr(network.decoder, "context", 0) or None,
        "weight_format": str(network.decoder.quantization or network.precision),
    }


def _kinds(network: Any) -> list[dict[str, Any]]:
    return [
        {
            "kind": row.kind,
            "operators": row.count,
            "macs": int(row.macs.m_as("MAC")),
            "flops": int(row.flops.m_as("FLOP")),
            "product_flops": int(row.product_flops.m_as("FLOP")),
            "elementwise_flops": int(row.elementwise.m_as("FLOP")),
            "bytes": int(row.data.m_as("byte")),
        }
        for row in network.by_kind()
    ]


def _report(network: Any) -> dict[str, Any]:
    kinds = network.by_kind()
    nodes = len(network) + network.views
    return {
        "model": network.name,
        **sizes_used(network),
        "source": network.source,
        "flops": int(network.flops.m_as("FLOP")),
        "product_flops": int(network.product_flops.m_as("FLOP")),
        "macs": int(network.macs.m_as("MAC")),
        "elementwise_flops": int(network.elementwise_flops.m_as("FLOP")),
        "flops_by_kind": {row.kind: int(row.flops.m_as("FLOP")) for row in kinds if row.flops.m_as("FLOP")},
        "product_flops_by_kind": {
            row.kind: int(row.product_flops.m_as("FLOP")) for row in kinds if row.product_flops.m_as("FLOP")
        },
        "elementwise_flops_by_kind": {
            row.kind: int(row.elementwise.m_as("FLOP")) for row in kinds if row.elementwise.m_as("FLOP")
        },
        "operators": {row.kind: row.count for row in kinds},
        "params": int(network.parameters.m_as("param")),
        **_decoder_record(network),
        "bytes": {
            "weights": int(network.weight_bytes.m_as("byte")),
            "buffers": int(network.buffer_bytes.m_as("byte")),
            "inputs": int(network.input_bytes.m_as("byte")),
            "activations": int(network.activation_bytes.m_as("byte")),
            "read": int(network.read.m_as("byte")),
            "written": int(network.written.m_as("byte")),
        },
        "coverage": {"percent": round(100 * network.coverage, 2), "nodes": nodes, "views": network.views},
        "unknown": [
            {"name": name.name, "operator": name.target, "module": name.path, "bytes": int(name.data.m_as("byte"))}
            for name in network.unknown
        ],
    }
