"""``mlsys memory``: one memory block for all activations of a network, and whether it fits a device."""

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
@network_options("Number format of every value; by default fp32, or that of a factory or an ONNX file.")
@click.option(
    "--strategy",
    type=click.Choice(get_args(PackingStrategy)),
    default="best",
    show_default=True,
    help="Order in which buffers are placed; best tries them all, exact proves the smallest block.",
)
@click.option(
    "--alignment", type=Whole(min=1, max=1 << 40), default=64, show_default=True, help="Alignment of offsets, bytes."
)
@click.option("--fuse", "fused", is_flag=True, help="Plan for fused kernels: their intermediates need no memory.")
@click.option("--in-place", is_flag=True, help="Element-wise operators overwrite inputs that are not used later.")
@click.option("--inputs", is_flag=True, help="Place the inputs too, as on a microcontroller.")
@click.option("--lean-order", "lean", is_flag=True, help="Search for an execution order that needs less memory.")
@click.option(
    "--device", "name", help="Device whose capacity is checked, such as A100.", shell_complete=complete_device
)
@click.option("--top", type=Whole(min=1), default=10, show_default=True, help="Number of buffers listed as text.")
@click.option("--figure", type=Output(), help="Write a map of memory over time: .png, .svg, .pdf.")
@click.option("--buffers", type=FILE, help="Instead of MODEL: a CSV of id, lower, upper, size.")
@click.option("--capacity", type=Whole(min=1), help="Capacity for the --buffers, bytes.")
@click.option("--seconds", type=Finite(min=0.1), default=55.0, show_default=True, help="Time limit for --buffers.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line per buffer.")
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
    """Place every activation of MODEL in one block of memory.

    With --buffers, place buffers of given lifetimes within --capacity instead, or prove that they do not fit.

    MODEL is any network that `mlsys flops` accepts: the name of a network, a `package.module:factory`, the config.json
    of a transformers model, or an ONNX file. Networks of the catalogue without PyTorch code have no graph to plan.

    Two tensors may share addresses if they are never live at the same time. The memory live at the peak step is the
    lower bound; the sum is that of all tensors without sharing. Weights are stored outside the block.
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
        refuse_unused("applies to --buffers", ("seconds",))
    else:
        known = ("buffers", "capacity", "seconds", "as_json", "as_csv")
        refuse_unused("applies to MODEL; --buffers FILE specifies everything", but=known)
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
    """Place buffers of a file within a capacity: exit code 3 if none fit, 4 if unknown."""
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
        say(f"{path}: {len(offsets)} buffers use {top:,} of {capacity:,} B; {read.largest_live:,} B are live at once")
    if plan.fits:
        return
    if plan.proved:
        more = (
            f"{read.largest_live:,} B are live at once"
            if read.largest_live > capacity
            else "every packing was ruled out"
        )
        say(f"{path}: proved: the {len(read.ids)} buffers do not fit in {capacity:,} B: {more}", err=True)
        sys.exit(3)
    nearest = "" if plan.smallest is None else (
        f". The smallest block found has {plan.smallest:,} B, {plan.smallest / capacity - 1:.1%} more; "
        f"{read.largest_live:,} B are live at once"
    )  # fmt: skip
    say(
        f"{path}: no placement within {capacity:,} B found in {seconds:g} s, and no proof that none exists; "
        f"increase --seconds{nearest}",
        err=True,
    )
    sys.exit(4)


def _shown(states: int) -> None:
    say(f"searching: {states:,} partial packings visited", err=True)
