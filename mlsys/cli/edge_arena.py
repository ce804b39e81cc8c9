"""``mlsys edge arena``: estimated memory of a network on a microcontroller."""

from typing import Any

import click

from mlsys.cli.common import one_form, print_csv, say, say_json, speak_plainly
from mlsys.cli.parameters import complete_model


@click.command("arena")
@click.argument("model", required=False, shell_complete=complete_model)
@click.option("--device", "name", help="Device whose memory is checked, such as STM32H7A3.")
@click.option(
    "--macs", type=click.Choice(("128", "256")), default="128", show_default=True, help="Multipliers of the Ethos-U55."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per network.")
@click.option("--csv", "as_csv", is_flag=True, help="One line per network.")
@speak_plainly
def arena_command(model: str | None, name: str | None, macs: str, as_json: bool, as_csv: bool) -> None:
    """Estimate the RAM and flash that MODEL needs in INT8 on a microcontroller, without running it.

    Without MODEL, the reference networks of MLPerf Tiny are compared with the records of TensorFlow Lite for
    Microcontrollers and of Arm's compiler Vela, with the error of each estimate.
    """
    from mlsys.tables import Table

    one_form(as_json, as_csv)
    if model is None:
        if name is not None:
            raise ValueError("--device needs a MODEL. Write e.g. mlsys edge arena ds-cnn --device STM32H7A3")
        rows = _beside_recorded(int(macs))
        if as_json:
            say_json(rows)
            return
        if as_csv:
            print_csv(rows)
            return
        say(str(Table(*_beside_in_words(rows, int(macs)))))
        return
    from mlsys.api.edge import edge_arena

    answer = edge_arena(model, device=name, macs=256 if macs == "256" else 128)
    if as_json:
        say_json(answer.record())
        return
    if as_csv:
        print_csv([answer.row()])
        return
    plain, npu = answer.row(), answer.npu
    say(
        f"{answer.network} in INT8: RAM {plain['total']:,} B, "
        f"of which {plain['activations']:,} B for inputs and activations "
        f"(best found: {plain['least']:,} B) and about {plain['persistent']:,} B for the runtime.\n"
        f"Flash about {plain['flash']:,} B, of which {plain['weights']:,} B are weights and biases.\n"
        f"On an Ethos-U55 with {macs} multipliers at {npu.clock / 1e6:g} MHz: {plain['npu_cycles']:,} cycles, "
        f"{npu.milliseconds:.3g} ms; SRAM {plain['npu_sram']:,} B. Assumed: one byte fetched per "
        f"weight; Vela's recorded networks fetch {_ratios()}."
    )
    if name is not None:
        say(answer.fit())


def _ratios() -> str:
    """Return the range of bytes per weight in networks compiled by Vela, as text."""
    from mlsys.edge.arena import recorded

    known = [network.weight_ratio for network in recorded()]
    return f"{min(known):.2f} to {max(known):.2f}"


def _beside_recorded(macs: int) -> list[dict[str, Any]]:
    """Return one row per reference network: estimate, record and error."""
    from mlsys.edge.arena import arena, recorded
    from mlsys.edge.npu import ethos_u55
    from mlsys.workloads import load

    rows = []
    for network in recorded():
        work = load(network.network)
        planned, npu = arena(work), ethos_u55(work, macs, weight_ratio=network.weight_ratio)
        pairs = {
            "activations": (planned.activations.m_as("byte"), network.head),
            "ram": (planned.total.m_as("byte"), network.head + network.tail),
            "flash": (planned.flash.m_as("byte"), network.file_bytes),
            "npu_cycles": (npu.cycles, network.cycles[macs]),
            "npu_sram": (npu.sram_bytes, network.sram[macs]),
        }
        row: dict[str, Any] = {"network": network.network.rpartition(":")[2]}
        for key, (ours, theirs) in pairs.items():
            row |= {key: round(ours), f"{key}_recorded": theirs, f"{key}_error": round(ours / theirs - 1, 4)}
        rows.append(
            {**row, "least_activations": round(planned.least.m_as("byte")), "declared_arena": network.declared_arena}
        )
    return rows


def _beside_in_words(rows: list[dict[str, Any]], macs: int) -> tuple[str, list[str], list[list[str]]]:
    kinds = ("activations", "ram", "flash", "npu_cycles", "npu_sram")
    columns = [
        "network",
        *(f"{kind.replace('_', ' ')}: estimated, recorded, error" for kind in kinds),
        "least, declared arena",
    ]
    cells = []
    for row in rows:
        numbers = [f"{row[kind]:,} {row[f'{kind}_recorded']:,} {row[f'{kind}_error']:+.1%}" for kind in kinds]
        declared = "—" if row["declared_arena"] is None else f"{row['declared_arena']:,}"
        cells.append([row["network"], *numbers, f"{row['least_activations']:,} {declared}"])
    return f"INT8 networks of MLPerf Tiny: byte, and cycles of an Ethos-U55 with {macs} multipliers", columns, cells
