"""Shared options of commands that take a network, and the arguments that they stand for."""

from collections.abc import Callable
from typing import Any, get_args

import click

from mlsys.choices import Phase
from mlsys.cli.parameters import Whole

_LONGEST = 200  # characters of --shape


def network_options(precision: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options of a network; ``precision`` is the help of --precision."""
    options = (
        click.option("--batch", type=Whole(), help="Images or sequences; by default 1."),
        click.option("--sequence", type=Whole(), help="Tokens; by default a typical number for the network."),
        click.option("--image", type=Whole(), help="Side of a square image."),
        click.option("--shape", help="Shape of the only input of a factory's module: 1,3,224,224."),
        click.option("--precision", help=precision),
        click.option(
            "--phase",
            type=click.Choice(get_args(Phase)),
            help="Phase of a decoder language model of the catalogue or of a config.json.",
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


def format_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for formats in which a decoder's weights and cache are stored."""
    command = click.option(
        "--kv-format",
        help="Of a decoder: number format of its key-value cache; by default as the model states, or --precision.",
    )(command)
    return click.option(
        "--weight-format",
        help="Of a decoder: format of its stored weights, such as int8, int4 g128 or q4_k_m; by default as the model "
        "states, or --precision.",
    )(command)


def network_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call such as :func:`mlsys.analyze` for the given network options."""
    return {
        **{name: options[name] for name in ("batch", "sequence", "image", "phase", "precision")},
        "sizes": _open_sizes(options["sizes"]) or None,
        "shape": None if options["shape"] is None else _shape(options["shape"]),
        "option": "--{}",
        **{name: options[name] for name in ("weight_format", "kv_format") if name in options},
    }


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
        raise ValueError(f"--shape must be whole numbers separated by commas, such as 1,3,224,224, got {shown!r}")
    return tuple(map(int, parts))
