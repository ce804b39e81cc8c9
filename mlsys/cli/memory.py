"""``mlsys memory``: one block of memory for all activations of a network, and whether it fits a device."""

import sys
from pathlib import Path
from typing import Any, get_args

import click

from mlsys.choices import PackingStrategy
from mlsys.cli.common import (
    WrongUsage,
    checked_picture,
    one_form,
    print_csv,
    print_record,
    refuse_unused,
    say,
    say_overrides,
    speak_plainly,
)
from mlsys.cli.networks import network_arguments, network_options
from mlsys.cli.parameters import FILE, Finite, Output, Whole, complete_device, complete_model


@click.command()
@click.argument("model", required=False, shell_complete=complete_model)
@network_options("Number format of every value; by default fp32, or what a factory or an ONNX file says.")
@click.option(
    "--strategy",
    type=click.Choice(get_args(PackingStrategy)),
    default="best",
    show_default=True,
    help="In which order buffers get their place; best tries them all, exact proves the least block.",
)
@click.option("--alignment", type=Whole(min=1, max=1 << 40), default=64, show_default=True, help="Of offsets, bytes.")
@click.option("--fuse", "fused", is_flag=True, help="Plan for fused kernels: their intermediates need no memory.")
@click.option("--in-place", is_flag=True, help="Element-wise operators write over inputs that nobody reads later.")
@click.option("--inputs", is_flag=True, help="Plan the inputs too, as on a microcontroller.")
@click.option("--lean-order", "lean", is_flag=True, help="Look for an order of running that needs less.")
@click.option("--device", "name", help="A device that should hold it, such as A100.", shell_complete=complete_device)
@click.option("--top", type=Whole(min=1), default=10, show_default=True, help="Buffers listed as text.")
@click.option("--figure", type=Output(), help="Write what lies where, when: .png, .svg, .pdf.")
@click.option("--buffers", type=FILE, help="Instead of MODEL: a CSV of id, lower, upper, size.")
@click.option("--capacity", type=Whole(min=1), help="Bytes below which the --buffers must lie.")
@click.option("--seconds", type=Finite(min=0.1), default=55.0, show_default=True, help="At most, for --buffers.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line for each buffer.")
@speak_plainly
def memory(
    model: str | None,
    strategy: PackingStrategy,
    alignment: int,
    fused: bool,
    in_place: bool,
    inputs: bool,
    lean: bool,
    name: str | None,
    top: int,
    figure: Path | None,
    buffers: Path | None,
    capacity: int | None,
    seconds: float,
    as_json: bool,
    as_csv: bool,
    **options: Any,
) -> None:
    """Give every activation of MODEL a place in one block of memory.

    With --buffers, place buffers of given lifetimes below --capacity instead, or prove that they do not fit.

    MODEL is what `mlsys flops` takes: the name of a network, a `package.module:factory`, the
    config.json of a transformers model, or an ONNX file. Networks of the catalogue without PyTorch
    code have no graph to plan.

    Two tensors may share addresses if they are never needed at one time. What is needed at the
    fullest step is the lower bound; all of them side by side are the sum. Weights lie beside
    the block.
    """
    from mlsys.models.user_overrides import user_overrides
    from mlsys.units import Q_

    one_form(as_json, as_csv)
    if (model is None) == (buffers is None) or (buffers is None) != (capacity is None):
        raise WrongUsage(
            "give either MODEL, or --buffers with --capacity. Write e.g. mlsys "
            "memory --buffers A.csv --capacity 1048576"
        )
    if buffers is None:
        refuse_unused("is for --buffers", ("seconds",))
    else:
        known = ("buffers", "capacity", "seconds", "as_json", "as_csv")
        refuse_unused("is of MODEL; --buffers FILE says all", but=known)
    if buffers is not None and capacity is not None:
        _below(buffers, capacity, seconds, as_json, as_csv)
        return
    assert model is not None
    if figure is not None:
        checked_picture(figure)
    from mlsys.api.memory import memory as planned

    use = planned(
        model,
        device=name,
        strategy=strategy,
        alignment=Q_(alignment, "byte"),
        fusion=fused,
        in_place=in_place,
        inputs=inputs,
        lean_order=lean,
        **network_arguments(options),
    )
    if figure is not None:
        from mlsys.viz.schedule import memory_figure
        from mlsys.viz.style import save_figure

        save_figure(memory_figure(use.plan), figure)
    overrides = user_overrides([] if use.device is None else [use.device])
    if as_json:
        print_record(use.record(), overrides)
    elif as_csv:
        print_csv(use.rows(), ("values", "offset", "bytes", "first_step", "last_step", "first", "last"), overrides)
    else:
        say(use.explain(top))
        say_overrides(overrides)
        if figure is not None:
            say(f"written: {figure}", err=True)


def _below(path: Path, capacity: int, seconds: float, as_json: bool, as_csv: bool) -> None:
    """Place buffers of a file below a capacity: exit code 3 says that none fit, 4 that it is not known."""
    from mlsys.planner.memory.fixed import FixedBuffers, plan_below

    read = FixedBuffers.load(path)
    watch = sys.stderr is not None and sys.stderr.isatty()
    plan = plan_below(read, capacity, seconds=seconds, progress=_shown if watch else lambda states: None)
    offsets = [] if plan.offsets is None else plan.offsets.tolist()
    if as_json:
        report = {
            "fits": plan.fits,
            "proved": plan.proved,
            "capacity": capacity,
            "lower_bound_bytes": read.largest_live,
            "smallest_found_bytes": plan.smallest,
            "offsets": dict(zip(read.ids, offsets, strict=False)) if plan.fits else None,
        }
        print_record(report)
    elif plan.fits and as_csv:
        print_csv([{"id": name, "offset": offset} for name, offset in zip(read.ids, offsets, strict=True)])
    elif plan.fits:
        top = max(offset + size for offset, size in zip(offsets, read.size.tolist(), strict=True))
        say(
            f"{path}: {len(offsets)} buffers lie below {top:,} of {capacity:,} "
            f"B; {read.largest_live:,} B are live at once"
        )
    if plan.fits:
        return
    if plan.proved:
        more = (
            f"{read.largest_live:,} B are live at once"
            if read.largest_live > capacity
            else "every packing was ruled out"
        )
        say(f"{path}: proved: the {len(read.ids)} buffers do not fit below {capacity:,} B: {more}", err=True)
        sys.exit(3)
    nearest = "" if plan.smallest is None else (
        f". The smallest block found has {plan.smallest:,} B, {plan.smallest / capacity - 1:.1%} more; "
        f"{read.largest_live:,} B are live at once"
    )  # fmt: skip
    say(
        f"{path}: no offsets below {capacity:,} B found within {seconds:g} s, and no proof that there are none; "
        f"give more --seconds{nearest}",
        err=True,
    )
    sys.exit(4)


def _shown(states: int) -> None:
    say(f"searching: {states:,} partial packings looked at", err=True)
