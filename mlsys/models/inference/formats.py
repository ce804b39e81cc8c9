"""Number formats of an inference: of the arithmetic on a chip, of stored weights and of the key-value cache."""

from __future__ import annotations

from dataclasses import dataclass

from mlsys.errors import UnknownNameError
from mlsys.hardware.device import Device
from mlsys.hardware.view import view
from mlsys.precision import PRECISIONS, precision_name
from mlsys.workloads.zoo.decoder import Decoder
from mlsys.workloads.zoo.weight_formats import weight_bits

_SIXTEEN_BITS = ("bf16", "fp16")
# Stored formats that kernels also multiply in, where the chip has units for it.
_MULTIPLIED = {"fp8": "fp8", "mxfp8": "fp8", "fp4": "fp4", "nvfp4": "fp4"}


@dataclass(frozen=True)
class Formats:
    """Number formats of an inference on one chip.

    Attributes
    ----------
    computes, attends
        Of the arithmetic of products by weights, and of attention.
    weights, cache
        Of stored weights and cache; None for the model's own, or 16 bits.
    notes
        What follows from them, in words.
    """

    computes: str
    attends: str
    weights: str | None
    cache: str | None
    notes: tuple[str, ...] = ()


def formats_on(
    device: Device, model: Decoder, weight_format: str | None, kv_format: str | None, precision: str | None
) -> Formats:
    """Return the number formats of an inference on a device.

    Weights in FP8 or FP4 are multiplied in their format where the chip has units for it; all other narrow formats are
    widened to 16 bits first, as kernels for GPTQ, AWQ, GGUF and weights in INT8 do. Attention multiplies a cache in FP8
    as it is where the chip can, and else in 16 bits.

    Raises
    ------
    UnknownNameError
        If a format is unknown, or the chip has no peak in the requested format of the arithmetic.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads.zoo import language_model
    >>> llama = language_model("llama-3-8b")
    >>> [formats_on(chip, llama, "fp8", None, None).computes for chip in (Hardware.Cloud.A100, Hardware.Cloud.H100)]
    ['bf16', 'fp8']
    """
    weight_format, kv_format = known_format(weight_format), known_format(kv_format, "`kv_format`")
    machine, notes = view(device), []
    if precision is not None:
        device.peak(precision_name(precision))  # names what there is
        return Formats(precision_name(precision), precision_name(precision), weight_format, kv_format)
    stated = getattr(model, "dtype", None)
    wide = (*((stated,) if stated in _SIXTEEN_BITS else ()), *_SIXTEEN_BITS, "fp32", "fp8", "int8")
    computes = next((name for name in wide if machine.has_rate(name)), None)
    if computes is None:
        raise UnknownNameError(f"{device.name} has no peak in {', '.join(wide)} on record; it has {device.precisions}")
    stored = weight_format or getattr(model.quantization, "method", None)
    attends, wanted = computes, _MULTIPLIED.get(str(stored))
    if wanted is not None and machine.has_rate(wanted):
        computes = wanted
        cached = kv_format or model.cache_format
        attends = "fp8" if cached == "fp8" and machine.has_rate("fp8") else attends
    elif stored is not None and (wanted is not None or weight_format not in PRECISIONS or _narrow(weight_format)):
        why = f", as {device.name} has no {wanted} units" if wanted is not None else ""
        notes.append(f"weights are stored in {stored} and multiplied in {computes}{why}")
    if weight_format is None and model.quantization is None and computes not in (*_SIXTEEN_BITS, "fp32"):
        notes.append(f"{device.name} has no 16-bit units: computed in {computes}, weights stored in 16 bits")
    multiplied = kv_format in PRECISIONS and machine.has_rate(str(kv_format))  # block formats never are
    if kv_format is not None and _narrow(kv_format) and not multiplied:
        notes.append(f"the cache is stored in {kv_format} and widened to {computes} as it is read")
    return Formats(computes, attends, weight_format, kv_format, tuple(notes))


def known_format(form: str | None, where: str = "`weight_format`") -> str | None:
    """Return the name of a storage format as it is listed; None for None.

    Parameters
    ----------
    form
        Name of a number format, or of a block format of weights.
    where
        How an error writes the name of the argument.

    Raises
    ------
    UnknownNameError
        If it is unknown.

    Examples
    --------
    >>> known_format("Q4_K_M"), known_format(None)
    ('q4_k_m', None)
    """
    if form is None:
        return None
    try:
        weight_bits(form)
    except UnknownNameError as error:
        raise UnknownNameError(f"{where}: {str(error).replace('weight format', 'storage format', 1)}") from None
    return str(form).lower()


def _narrow(form: str | None) -> bool:
    return form is not None and weight_bits(form) < 16


def cache_precision(form: str | None) -> str | None:
    """Return the plain number format that moves as many bytes as a cache format, block formats by their values.

    Examples
    --------
    >>> cache_precision("q8_0"), cache_precision("fp8"), cache_precision(None)
    ('int8', 'fp8', None)
    """
    if form is None or form in PRECISIONS:
        return form
    bits = weight_bits(form)
    return "int4" if bits < 6 else "int8"
