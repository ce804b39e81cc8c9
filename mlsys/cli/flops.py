"""``mlsys flops``: the work, the weights and the bytes of a network."""

from __future__ import annotations

import json
from typing import Any

import click

from mlsys.cli.common import complete_model, speak_plainly, write_csv

__all__ = ["flops"]


@click.command()
@click.argument("model", shell_complete=complete_model)
@click.option("--batch", type=int, help="Images or sequences; by default 1.")
@click.option("--sequence", type=int, help="Tokens; by default what is usual for the network.")
@click.option("--image", type=int, help="Side of a square image.")
@click.option("--shape", help="Shape of the one input of a factory's module: 1,3,224,224.")
@click.option("--precision", help="fp64, fp32, fp16 or bf16; by default fp32.")
@click.option("--size", "sizes", multiple=True, metavar="NAME=NUMBER", help="A size that an ONNX model leaves open.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line for each kind of operator.")
@speak_plainly
def flops(model: str, as_json: bool, as_csv: bool, sizes: tuple[str, ...], **options: Any) -> None:
    """Count the work, the weights and the traffic of MODEL; nothing is computed, no weight is loaded.

    MODEL is the name of a network, a `package.module:factory` that returns a torch module or
    (module, example_inputs), the config.json of a transformers model, or an ONNX file.

    `flops` are those of matrix products, convolutions and attention, two for each MAC, as
    torch.utils.flop_counter counts them; work on single elements stands beside it.
    """
    from mlsys.workloads.resolve import captured

    if as_json and as_csv:
        raise ValueError("give either --json or --csv, not both")
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("batch", "sequence", "image"):
        if name in given and given[name] < 1:
            raise ValueError(f"--{name} must be a whole number above zero, got {given[name]}")
    work = captured(model, given, sizes)
    if as_csv:
        write_csv(_kinds(work))
    else:
        click.echo(json.dumps(_report(work), indent=1, ensure_ascii=False) if as_json else work.explain())


def _kinds(found: Any) -> list[dict[str, Any]]:
    return [
        {
            "kind": row.kind,
            "operators": row.count,
            "macs": int(row.macs.m_as("MAC")),
            "flops": int(row.flops.m_as("FLOP")),
            "elementwise_flops": int(row.elementwise.m_as("FLOP")),
            "bytes": int(row.data.m_as("byte")),
        }
        for row in found.by_kind()
    ]


def _report(found: Any) -> dict[str, Any]:
    kinds = found.by_kind()
    nodes = len(found) + found.views
    return {
        "model": found.name,
        "source": found.source,
        "flops": int(found.flops.m_as("FLOP")),
        "macs": int(found.macs.m_as("MAC")),
        "elementwise_flops": int(found.elementwise_flops.m_as("FLOP")),
        "flops_by_kind": {row.kind: int(row.flops.m_as("FLOP")) for row in kinds if row.flops.m_as("FLOP")},
        "elementwise_flops_by_kind": {
            row.kind: int(row.elementwise.m_as("FLOP")) for row in kinds if row.elementwise.m_as("FLOP")
        },
        "operators": {row.kind: row.count for row in kinds},
        "params": int(found.parameters.m_as("param")),
        "bytes": {
            "weights": int(found.weight_bytes.m_as("byte")),
            "buffers": int(found.buffer_bytes.m_as("byte")),
            "inputs": int(found.input_bytes.m_as("byte")),
            "activations": int(found.activation_bytes.m_as("byte")),
            "read": int(found.read.m_as("byte")),
            "written": int(found.written.m_as("byte")),
        },
        "coverage": {"percent": round(100 * found.coverage, 2), "nodes": nodes, "views": found.views},
        "unknown": [
            {"name": one.name, "operator": one.target, "module": one.path, "bytes": int(one.data.m_as("byte"))}
            for one in found.unknown
        ],
    }
