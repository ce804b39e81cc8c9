"""Checked arguments of an inference, shared by ``mlsys.size``, its search and sweeps of sizings."""

from __future__ import annotations

from typing import get_args

from mlsys.choices import Phase
from mlsys.models.inference.formats import known_format
from mlsys.models.inference.plan import Draft, InferenceRequest, tokens_of
from mlsys.unit_checks import checked_choice, checked_count, checked_number, efficiency
from mlsys.workloads.zoo.decoder import Decoder


def request_of(
    model: Decoder,
    where: str = "size",
    option: str = "`{}`",
    *,
    sequence: int | None = None,
    prompt: int | None = None,
    output: int | None = None,
    batch: int = 1,
    phase: Phase | None = None,
    replicas: int = 1,
    weight_format: str | None = None,
    kv_format: str | None = None,
    precision: str | None = None,
    usable: float = 0.9,
    chunk: int = 8192,
    windows: bool = True,
    software: str | None = None,
    draft: Draft | None = None,
) -> InferenceRequest:
    """Return a request for an inference, with all arguments checked.

    Parameters
    ----------
    model
        A decoder language model.
    where, option
        Name of the function and form of an argument's name, for messages.
    sequence, prompt, output, batch, phase, replicas, weight_format, kv_format, precision, usable, chunk, windows
        As for :func:`mlsys.size`.
    software
        As for :func:`mlsys.size`.
    draft
        A draft model, checked.

    Raises
    ------
    ArgumentError
        If lengths contradict each other, or an argument is not in its range.
    UnknownNameError
        If a number format is unknown.
    """
    if phase is not None:
        checked_choice(where, "phase", phase, get_args(Phase))
    return InferenceRequest(
        tokens_of(model, sequence, prompt, output, option),
        batch=checked_count(where, "batch", batch),
        phase=phase,
        replicas=checked_count(where, "replicas", replicas),
        weight_format=known_format(weight_format, option_name(option, "weight_format")),
        kv_format=known_format(kv_format, option_name(option, "kv_format")),
        precision=precision,
        usable=checked_number(where, "usable", usable, efficiency(), {}),
        chunk=checked_count(where, "chunk", chunk),
        windows=windows,
        software=software,
        draft=draft,
    )


def option_name(option: str, name: str) -> str:
    """Return how an error writes the name of an argument: with hyphens where it is an option of the command."""
    return option.format(name.replace("_", "-") if option.startswith("--") else name)
