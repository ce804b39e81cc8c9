"""``mlsys mapper``: the best tiles and loop order, for a file of matrix products or for one layer."""

import sys
from pathlib import Path
from typing import Any, get_args

import click

from mlsys.choices import Objective
from mlsys.cli.common import (
    WrongUsage,
    one_form,
    print_csv,
    print_record,
    read_csv,
    refuse_unused,
    say,
    say_own,
    speak_plainly,
)
from mlsys.cli.networks import asked_network, network_options
from mlsys.cli.parameters import FILE, Finite, Whole

_SHOWN = 60  # layers that an error lists

_COLUMNS = ("M", "N", "K", "S", "tile_set")


@click.command()
@click.argument("layer", required=False)
@click.option("--rows", type=FILE, help="CSV with M,N,K,S,tile_set.")
@click.option("--csv", "as_csv", is_flag=True, help="Print one line for each layer or row, as CSV.")
@click.option("--device", "name", help="Device to map LAYER to.")
@click.option(
    "--objective",
    type=click.Choice(get_args(Objective)),
    default="energy",
    show_default=True,
    help="What is made least; traffic is that of the main memory.",
)
@network_options("Number format; by default the headline format of the device.")
@click.option("--levels", type=Whole(min=1), default=2, show_default=True, help="Memories on the chip to use.")
@click.option("--seconds", type=Finite(min=0, min_open=True), help="At most, for all layers; then the best found.")
@click.option("--cache/--no-cache", default=False, show_default=True, help="Keep results in the user's cache folder.")
@click.option("--json", "as_json", is_flag=True, help="Print everything, as JSON.")
@speak_plainly
def mapper(
    layer: str | None, rows: Path | None, as_csv: bool, name: str | None, objective: Objective,
    levels: int, seconds: float | None, cache: bool, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Find the best tiles and loop order of LAYER on a device, or of every row of a file.

    LAYER is a matrix product, gemm:512x256x32, or a layer of a network that `mlsys flops` takes, by its
    name or its number, resnet50:conv3_1b; resnet50:all maps every product.
    A row asks for the least words that C[M,N] += A[M,K] B[K,N]
    moves through a fast memory of S words, over divisors (div) or all tile sizes (all).
    """
    one_form(as_json, as_csv)
    if (layer is None) == (rows is None):
        raise WrongUsage("give either LAYER, such as gemm:512x256x32, or --rows FILE.csv")
    if rows is not None:
        refuse_unused("is of LAYER; the rows of a file say all", but=("rows", "as_csv", "as_json"))
        _rows(rows, as_csv, as_json)
        return
    if name is None:
        raise WrongUsage("say which device LAYER runs on: --device A100")
    _layers(str(layer), name, objective, options, levels, seconds, cache, as_csv, as_json)


def _rows(path: Path, as_csv: bool, as_json: bool) -> None:
    from mlsys.door import checked_choice
    from mlsys.planner.mapper import TILE_SETS, best_two_level

    answers = []
    for number, row in enumerate(read_csv(path, _COLUMNS), start=2):
        try:
            m, n, k, capacity = (_whole(column, row[column]) for column in _COLUMNS[:4])
            tile_set = checked_choice("best_two_level", "tile_set", row["tile_set"].strip(), TILE_SETS)
            answers.append(_record(best_two_level(m, n, k, capacity, tile_set)))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
    if as_json:
        print_record(answers)
    elif as_csv:
        print_csv(answers)
    else:
        for answer in answers:
            say(
                f"{answer['M']}×{answer['N']}×{answer['K']} in {answer['S']} words ({answer['tile_set']}): "
                f"{answer['best_words']:,} words with tile {answer['tile']} in order {answer['order']}, "
                f"{answer['ratio']:.3f} × bound"
            )


def _whole(column: str, text: str) -> int:
    from mlsys.amounts import parsed_whole

    try:
        return parsed_whole(text)
    except ValueError:
        raise ValueError(f"{column} must be a whole number, got {text[:60]!r}") from None


def _record(best: Any) -> dict[str, Any]:
    return {
        "M": best.m,
        "N": best.n,
        "K": best.k,
        "S": best.capacity,
        "tile_set": best.tile_set,
        "best_words": best.words,
        "tile": ",".join(map(str, best.tile)),
        "order": best.order,
        "A": best.a,
        "B": best.b,
        "C_reads": best.c_reads,
        "C_writes": best.c_writes,
        "compulsory": best.compulsory,
        "lb_smith": best.smith_bound,
        "lb_safe": best.bound,
        "ratio": best.ratio,
        "covered": best.covered,
    }


def _operators(layer: str, options: dict[str, Any], precision: str) -> tuple[list[Any], str]:
    """Return the products that LAYER names, a product by its sizes or layers of a network, and sizes in words."""
    from mlsys.errors import did_you_mean
    from mlsys.workloads import gemm
    from mlsys.workloads.used_sizes import sizes_in_words

    kind, _, which = layer.rpartition(":")
    if kind == "gemm":
        sizes = [_whole("a size", size) for size in which.lower().replace("×", "x").split("x")]
        if len(sizes) != 3:
            raise ValueError(f"a matrix product has three sizes, gemm:MxNxK, got {layer!r}. Write e.g. gemm:512x256x32")
        m, n, k = sizes
        refuse_unused("is of a network; gemm:MxNxK says its sizes itself", {*options} - {"precision"})
        return [gemm(m, n, k, precision)], precision
    if not kind:
        raise ValueError(
            f"{layer!r} is no layer. Write e.g. gemm:512x256x32, or a network and one of its layers or `all`, "
            f"such as {layer}:all"
        )
    work = asked_network(kind, options, precision)
    layers = [operator for operator in work if operator.products is not None]
    known: dict[str, Any] = {}
    for names in ((layer.name for layer in layers), map(str, range(1, len(layers) + 1))):
        for name, operator in zip(names, layers, strict=False):
            known.setdefault(name.replace(" ", "_"), operator)
    if which == "all":
        return layers, sizes_in_words(work)
    if which in known:
        return [known[which]], sizes_in_words(work)
    shown = list(known)[: len(layers)]
    more = f", … {len(shown)} in all" if len(shown) > _SHOWN else ""
    raise ValueError(
        f"{kind} has no layer {which!r}.{did_you_mean(which, known)} It has: {', '.join(shown[:_SHOWN])}{more}, all; "
        f"or give a number, 1 to {len(layers)}"
    )


def _layers(
    layer: str, name: str, objective: Any, options: dict[str, Any], levels: int, seconds: float | None, cache: bool,
    as_csv: bool, as_json: bool,
) -> None:  # fmt: skip
    from mlsys.deadline import Deadline
    from mlsys.hardware import Hardware
    from mlsys.models.own import own_numbers
    from mlsys.planner.mapper import best_mapping

    device = Hardware[name]
    operators, sizes = _operators(
        layer, options, device.headline if options["precision"] is None else options["precision"]
    )
    watch = _watch if sys.stderr.isatty() else None
    deadline = None if seconds is None else Deadline(seconds)
    mapped = []
    for number, operator in enumerate(operators):
        left = None if deadline is None else max(deadline.left / (len(operators) - number), 1e-3)
        mapped.append(
            best_mapping(device, operator, objective, levels=levels, progress=watch, seconds=left, disk_cache=cache)
        )
    own = own_numbers([device])
    if as_json:
        print_record([item.record() | {"network": sizes} for item in mapped], own)
        return
    if as_csv:
        print_csv(map(_line, mapped), own=own)
        return
    if len(mapped) == 1:
        say(mapped[0].explain())
    else:
        for item in mapped:
            energy, time = item.result.figures["energy"].to("mJ"), item.result.time.to("ms")
            state = "" if item.proven else f"  not proven, at most {item.gap:.1%} above the best"
            words = f"{item.words[0]:>12,} words  {item.ratio:6.3f} × bound"
            say(f"{item.space.name:<20} {words}  {energy:>10.4g}  {time:>10.4g}{state}")
    say_own(own)
    say(sizes, err=True)


def _watch(best: Any, share: float) -> None:
    click.echo(f"\r{share:6.1%}  best so far {best.value:.6g}", nl=share >= 1, err=True)


def _line(item: Any) -> dict[str, Any]:
    """Return one layer as a line of CSV."""
    return {
        "layer": item.space.name,
        "device": item.chip.name,
        "objective": item.objective,
        "proven": item.proven,
        "gap": item.gap,
        "words": item.words[0],
        "bound": item.bound,
        "ratio": item.ratio,
        "seconds": item.result.time.m_as("s"),
        "joules": item.result.figures["energy"].m_as("J"),
        "bound_by": item.result.bound_by,
        "tiles": "; ".join(f"{v.memory} {'x'.join(map(str, v.tile.values()))}" for v in item.nest.levels),
    }
