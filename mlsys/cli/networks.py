"""What every command that takes a network shares: its options, the door, and the sizes it used."""

from collections.abc import Callable
from typing import Any, get_args

import click

from mlsys.choices import Phase
from mlsys.cli.parameters import Whole

_LONGEST = 200  # letters of --shape


def network_options(precision: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options of a network; ``precision`` is the help of --precision."""
    options = (
        click.option("--batch", type=Whole(), help="Images or sequences; by default 1."),
        click.option("--sequence", type=Whole(), help="Tokens; by default what is usual for the network."),
        click.option("--image", type=Whole(), help="Side of a square image."),
        click.option("--shape", help="Shape of the one input of a factory's module: 1,3,224,224."),
        click.option("--precision", help=precision),
        click.option(
            "--phase",
            type=click.Choice(get_args(Phase)),
            help="Of a decoder language model of the catalogue or of a config.json.",
        ),
        click.option(
            "--size", "sizes", multiple=True, metavar="NAME=NUMBER", help="A size that an ONNX model leaves open."
        ),
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def asked_network(model: str, options: dict[str, Any], precision: str | None = None) -> Any:
    """Return the workload that MODEL means; ``precision`` is what --precision is by default.

    Raises
    ------
    ValueError
        If there is no such network, or an option does not go with it.
    """
    from mlsys.workloads import load
    from mlsys.workloads.transformer_config.workload import stated_precision

    if precision is not None and stated_precision(model) is not None:
        precision = None  # as the configuration states it, quantised weights included
    given = {name: options[name] for name in ("batch", "sequence", "image", "phase")}
    return load(
        model,
        **given,
        precision=precision if options["precision"] is None else options["precision"],
        sizes=_open_sizes(options["sizes"]),
        shape=None if options["shape"] is None else _shape(options["shape"]),
        option="--{}",
    )


def arithmetic_of(model: str, options: dict[str, Any], usual: str) -> str:
    """Return the number format of the arithmetic: of --precision, or what a configuration states, or the usual one."""
    from mlsys.workloads.transformer_config.workload import stated_precision

    asked: str | None = options["precision"]
    return asked or stated_precision(model) or usual


def as_kernels_if(fusion: bool, work: Any, setting: str = "") -> Any:
    """Return the network with its operators fused as the software does: into kernels, or loops; eager, as it is."""
    from mlsys.mapping.fusion import as_run
    from mlsys.models.calibrated.eager import run_as

    way = run_as(setting)
    return as_run(work, way) if fusion or way == "one by one" else work


def _open_sizes(pairs: tuple[str, ...]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for pair in pairs:
        name, _, number = pair.partition("=")
        if not (number.isascii() and number.isdecimal()) or len(number) > 18:
            raise ValueError(f"--size must be NAME=NUMBER, such as batch=8, got {pair[:_LONGEST]!r}")
        if not name:
            raise ValueError(f"--size must be NAME=NUMBER, such as batch=8, got {pair[:_LONGEST]!r}")
        if sizes.setdefault(name, int(number)) != int(number):
            raise ValueError(f"--size {name} is given as {sizes[name]} and as {number}. Give it once")
    return sizes


def _shape(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.strip("()[] ").removesuffix(",").split(",")]
    if not text.isascii() or not all(part.isdecimal() and len(part) < 19 and int(part) for part in parts):
        shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
        raise ValueError(f"--shape must be whole numbers with commas, such as 1,3,224,224, got {shown!r}")
    return tuple(map(int, parts))


def sizes_used(work: Any) -> dict[str, Any]:
    """Return the sizes that a network was read at, its number format, where it comes from, and how it was counted."""
    sizes = dict(work.sizes)
    record = {name: sizes.pop(name, None) for name in ("batch", "sequence", "image")}
    masked = work.masked_attention
    counted = (
        {}
        if masked is None
        else {
            "masked_attention_flops": masked.dense,
            "masked_attention_flops_unmasked": masked.unmasked,
        }
    )
    return {
        **record,
        **({"sizes": sizes} if sizes else {}),
        "precision": work.precision,
        "recipe": work.recipe,
        **counted,
        "notes": list(work.remarks()),
    }


def sizes_in_words(work: Any, notes: bool = True) -> str:
    """Return the same as one line, with a line for each note unless they are printed elsewhere."""
    sizes = ", ".join(f"{name} {size}" for name, size in work.sizes.items())
    used = f"{sizes}, {work.precision}; from {work.recipe}" if sizes else f"{work.precision}; from {work.recipe}"
    return "\n".join([used, *(f"note: {note}" for note in (work.remarks() if notes else ()))])


def samples_of(work: Any) -> int:
    """Return how many samples one pass of a network answers: its batch, or one where its inputs have none."""
    return int(work.sizes.get("batch", 1))


def kernels_used(work: Any, kernels: Any) -> str:
    """Return in words how many kernels the operators of a network run as."""
    count = f"{len(kernels)} kernel{'' if len(kernels) == 1 else 's'}"
    if kernels is work:
        return f"{count}, one for each operator: not fused"
    return f"{count} for {len(work)} operators: fused as the software does, or as the catalogue lists them"
