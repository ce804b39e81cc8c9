"""``mlsys mapper``: the best tiling and loop order of a layer, or of each matrix product in a file."""

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
    say_overrides,
    speak_plainly,
)
from mlsys.cli.networks import network_arguments, network_options
from mlsys.cli.parameters import FILE, Finite, Whole

_COLUMNS = ("M", "N", "K", "S", "tile_set")


@click.command()
@click.argument("layer", required=False)
@click.option("--rows", type=FILE, help="CSV with the columns M,N,K,S,tile_set.")
@click.option("--csv", "as_csv", is_flag=True, help="Print one line per layer or row, as CSV.")
@click.option("--device", "name", help="Device to map LAYER to.")
@click.option(
    "--objective",
    type=click.Choice(get_args(Objective)),
    default="energy",
    show_default=True,
    help="Quantity to minimise; traffic is that of the main memory.",
)
@network_options("Number format; by default the headline format of the device.")
@click.option("--levels", type=Whole(min=1), default=2, show_default=True, help="Number of on-chip memories to use.")
@click.option(
    "--seconds", type=Finite(min=0, min_open=True), help="Time limit for all layers; prints the best found so far."
)
@click.option("--cache/--no-cache", default=False, show_default=True, help="Store results in the user's cache folder.")
@click.option("--json", "as_json", is_flag=True, help="Print everything, as JSON.")
@speak_plainly
def mapper(
    layer: str | None, rows: Path | None, as_csv: bool, name: str | None, objective: Objective,
    levels: int, seconds: float | None, cache: bool, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Find the best tiling and loop order of LAYER on a device, or of every row of a file.

    LAYER is a matrix product, gemm:512x256x32, or a layer of a network that `mlsys flops` accepts, by name or number,
    resnet50:conv3_1b; resnet50:all maps every product. For a row, the least number of words is found that C[M,N] +=
    A[M,K] B[K,N] moves through a fast memory of S words, over divisors (div) or all tile sizes (all).
    """
    one_form(as_json, as_csv)
    if (layer is None) == (rows is None):
        raise WrongUsage("give either LAYER, such as gemm:512x256x32, or --rows FILE.csv")
    if rows is not None:
        refuse_unused("applies to LAYER; the rows of a file specify everything", but=("rows", "as_csv", "as_json"))
        _rows(rows, as_csv, as_json)
        return
    if name is None:
        raise WrongUsage("no device for LAYER. Write --device A100")
    _layers(str(layer), name, objective, options, levels, seconds, cache, as_csv, as_json)


def _rows(path: Path, as_csv: bool, as_json: bool) -> None:
    from mlsys.planner.mapper import TILE_SETS, best_two_level
    from mlsys.unit_checks import checked_choice

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


def _layers(
    layer: str, name: str, objective: Any, options: dict[str, Any], levels: int, seconds: float | None, cache: bool,
    as_csv: bool, as_json: bool,
) -> None:  # fmt: skip
    from mlsys.api.mapper import mapper as mapped
    from mlsys.cli.parameters import requested_device
    from mlsys.models.user_overrides import user_overrides

    if layer.startswith("gemm:"):
        refuse_unused("applies to a network; gemm:MxNxK specifies its own sizes", {*options} - {"precision"})
    device = requested_device(name)
    watch = _watch if sys.stderr.isatty() else None
    answer = mapped(
        device, layer, objective=objective, levels=levels, seconds=seconds, disk_cache=cache, progress=watch,
        **network_arguments(options),
    )  # fmt: skip
    overrides = user_overrides([device])
    if as_json:
        print_record(answer.record(), overrides)
        return
    if as_csv:
        print_csv(answer.rows(), overrides=overrides)
        return
    say(answer.explain())
    say_overrides(overrides)
    say(answer.sizes, err=True)


def _watch(best: Any, share: float) -> None:
    click.echo(f"\r{share:6.1%}  best so far {best.value:.6g}", nl=share >= 1, err=True)
