"""``mlsys train``: memory, step time, days, chip-hours and cost of training a language model on a system."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import click

from mlsys.choices import AttentionKernel, GradientFormat, Optimizer, Overlap, Recompute
from mlsys.cli.common import one_form, print_csv, print_record, say, say_overrides, speak_plainly
from mlsys.cli.parameters import Output, QuantityType, Whole, complete_model, complete_system
from mlsys.files import together

_AXES = ("tp", "pp", "ep", "dp", "cp")
_POWERS = {"": 1.0, "k": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_LARGE_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:e[0-9]{1,2})?)([kMBGT]?)", re.ASCII)


class LargeNumber(click.ParamType):
    """A large number such as ``300B``, ``15T`` or ``1.4e12``."""

    name = "number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or fail in one line."""
        found = _LARGE_NUMBER.fullmatch(str(value).strip())
        if found is None or not float(found[1]) * _POWERS[found[2]] > 0:
            self.fail(f"{str(value)[:60]!r} is not a number above zero, such as 300B, 15T or 1.4e12", param, ctx)
        return float(found[1]) * _POWERS[found[2]]


class LayoutType(click.ParamType):
    """Sizes of a parallel layout, such as ``tp=8,pp=4``."""

    name = "layout"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, int]:
        """Return the sizes by axis, or fail in one line."""
        if isinstance(value, dict):
            return value
        sizes: dict[str, int] = {}
        for part in str(value).split(","):
            axis, _, number = part.strip().partition("=")
            if axis not in _AXES or not re.fullmatch(r"[1-9][0-9]{0,6}", number, re.ASCII) or axis in sizes:
                self.fail(
                    f"{str(value)[:60]!r} must be sizes of {', '.join(_AXES)}, each once, such as tp=8,pp=4", param, ctx
                )
            sizes[axis] = int(number)
        return sizes


@click.command()
@click.argument("model", shell_complete=complete_model)
@click.option(
    "--on", "name", required=True, help="A system such as DGX_H100, or a device.", shell_complete=complete_system
)
@click.option("--nodes", type=Whole(min=1, max=100_000), help="Number of nodes; by default that of the system.")
@click.option("--tokens", type=LargeNumber(), help="Tokens of the run, such as 300B or 15T.")
@click.option("--layout", type=LayoutType(), help="How model and batch are split, such as tp=8,pp=4; dp is the rest.")
@click.option("--tp", type=Whole(min=1), help="Tensor parallelism; sizes that are left out are searched.")
@click.option("--pp", type=Whole(min=1), help="Pipeline parallelism.")
@click.option("--ep", type=Whole(min=1), help="Expert parallelism.")
@click.option("--dp", type=Whole(min=1), help="Data parallelism.")
@click.option("--cp", type=Whole(min=1), help="Context parallelism; by default 1.")
@click.option("--batch", type=Whole(min=1, max=10_000_000), help="Sequences per step; by default 4 Mi tokens.")
@click.option("--micro-batch", type=Whole(min=1, max=100_000), help="Sequences that a chip processes at a time.")
@click.option(
    "--sequence",
    type=Whole(min=1, max=100_000_000),
    help="Tokens of each sequence; by default 4096, or fewer learned positions.",
)
@click.option("--chunks", type=Whole(min=1), default=1, show_default=True, help="Interleaved chunks per stage.")
@click.option("--gpipe", is_flag=True, help="Run all forward passes before the backward ones, instead of 1F1B.")
@click.option(
    "--recompute", type=click.Choice(get_args(Recompute)), help="Activations recomputed in the backward pass."
)
@click.option("--zero", type=Whole(min=0, max=3), help="Stage of ZeRO; 3 is FSDP.")
@click.option("--precision", default="bf16", show_default=True, help="Number format of the products.")
@click.option(
    "--optimizer",
    type=click.Choice(get_args(Optimizer)),
    default="adam",
    show_default=True,
    help="Update rule of the weights.",
)
@click.option(
    "--gradients",
    type=click.Choice(get_args(GradientFormat)),
    default="fp32",
    show_default=True,
    help="Format of the stored gradients.",
)
@click.option(
    "--attention",
    type=click.Choice(get_args(AttentionKernel)),
    default="flash",
    show_default=True,
    help="Fused kernels that store no scores, or standard ones that do.",
)
@click.option(
    "--overlap",
    type=click.Choice(get_args(Overlap)),
    default="data",
    show_default=True,
    help="Axes whose communication overlaps with computation.",
)
@click.option(
    "--rent", type=QuantityType("USD/hour"), help="Rent of one chip, such as '2 USD/hour'; by default as recorded."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line per layout.")
@click.option("--html", "page_file", type=Output(), help="Write one self-contained HTML file.")
@speak_plainly
def train(
    model: str,
    name: str,
    layout: dict[str, int] | None,
    gpipe: bool,
    as_json: bool,
    as_csv: bool,
    page_file: Path | None,
    **options: Any,
) -> None:
    """Estimate the training of MODEL: memory by part, step time, MFU, days, chip-hours and cost.

    MODEL is a decoder language model: its name in the catalogue, its config.json or the folder of one. Without
    --layout, the layouts that use all chips are ranked, those that fit first.

    \b
        mlsys train llama-3-8b --on DGX_H100 --nodes 8 --tokens 1T
        mlsys train llama-3-70b --on DGX_H100 --nodes 64 --tokens 15T --layout tp=4,pp=4 --batch 1024

    Nothing is fitted to published runs; 80 % of those compared took 0.9 to 1.3 times the estimate.
    """  # noqa: D301
    from mlsys.api.train import train as trained
    from mlsys.models.user_overrides import user_overrides

    one_form(as_json, as_csv)
    plan = trained(model, name, layout=layout, schedule="gpipe" if gpipe else None, **options)
    overrides = user_overrides([plan.result.chip])
    if page_file is not None:
        from mlsys.cli.train_page import train_page

        with together() as files:
            files.text(page_file, train_page(plan, overrides))
    if as_json:
        print_record(plan.record(), overrides)
    elif as_csv:
        print_csv(plan.rows(), overrides=overrides)
    else:
        say(plan.explain())
        say_overrides(overrides)
        if page_file is not None:
            say(f"written: {page_file}", err=True)
