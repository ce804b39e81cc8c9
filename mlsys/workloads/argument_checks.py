"""Validation of arguments of networks: names, sizes, and their combination."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.faults import short

LARGEST = 10**9  # limit of a batch, a sequence, an image side: larger values are typing errors


MOST_ELEMENTS = 10**17  # limit of a tensor, whose bytes are counted in 64 bits

_SIZES = ("batch", "sequence", "image")


_EXAMPLES = ("resnet50", "bert-base", "gpt2", "llama-3-8b")


def unknown_network(model: str) -> UnknownNameError:
    """Return the error for an unknown network name."""
    from mlsys.workloads import zoo

    names = zoo.networks()
    return UnknownNameError(
        f"unknown network {short(model)}.{did_you_mean(model, names)} Give a name ({', '.join(_EXAMPLES)}, … "
        f"{len(names)} in all), package.module:factory, a config.json or a .onnx file"
    )


def checked_size(label: str, number: Any) -> int:
    """Return a size as a whole number, or raise with its label."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 1 <= number <= LARGEST:
        raise ArgumentError(f"{label} must be a whole number from 1 to {LARGEST:,}, got {number!r}")
    return int(number)


def checked_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of an input, or raise if it has too many elements.

    Examples
    --------
    >>> checked_shape((1, 3, 224, 224))
    (1, 3, 224, 224)
    """
    if math.prod(shape) > MOST_ELEMENTS:
        raise ArgumentError(f"an input of shape {shape} has more than {MOST_ELEMENTS:,} elements. Use a smaller one")
    return shape


def spelled(option: str, name: str) -> str:
    """Return the name of an argument as an error writes it, with hyphens on the command line.

    Examples
    --------
    >>> spelled("--{}", "kv_format"), spelled("`{}`", "kv_format")
    ('--kv-format', '`kv_format`')
    """
    return option.format(name.replace("_", "-") if option.startswith("--") else name)


def refuse_others(option: str, given: Mapping[str, Any], taken: set[str], what: str) -> None:
    """Refuse arguments that do not apply to a network."""
    for name in given:
        if name not in taken:
            known = ", ".join(option.format(name) for name in sorted(taken or set(_SIZES)))
            raise ArgumentError(f"{spelled(option, name)} does not apply to {what}. It accepts {known}")
