"""Reading the words of the sources: devices, number formats, shapes, units."""

import re
from functools import lru_cache
from pathlib import Path

from mlsys.calibration.case import Inexpressible
from mlsys.calibration.named_devices import device_named
from mlsys.calibration.rows import Row
from mlsys.errors import UnknownNameError
from mlsys.frozen import FrozenDict
from mlsys.hardware import Device, Hardware
from mlsys.inputs import read_text, yaml_of
from mlsys.models.estimate.lowering import Format

__all__ = [
    "batch_of",
    "device_of",
    "number_format",
    "numbers_in",
    "whole_number",
]

_PLACE = Path(__file__).parents[1] / "data" / "devices.yaml"

# The first pattern that is found decides. Weights of llama.cpp's quantised files count their scales:
# 32 weights and one FP16 scale for Q4_0 and Q8_0; Q4_K_M mixes formats to 4.85 bits on average.
_FORMATS: tuple[tuple[str, Format], ...] = (
    (r"kv cache fp8", Format("bf16", 2, 2)),
    (r"pseudo-fp16", Format("fp32", 2, 2, True)),
    (r"q4_0|4-bit weights \(nvfp4", Format("fp16", 4.5 / 8, 2)),
    (r"q8_0", Format("fp16", 8.5 / 8, 2)),
    # Files of those names: blocks of one kind where a digit ends the name; a mixture, where K does, of the bits that
    # 2.63, 3.06, 4.45 and 5.15 GiB are for 6.74 billion weights (ggml-org/llama.cpp, tools/quantize/quantize.cpp).
    (r"q2_k", Format("fp16", 3.35 / 8, 2)),
    (r"q3_k", Format("fp16", 3.9 / 8, 2)),
    (r"q4_k", Format("fp16", 4.85 / 8, 2)),
    (r"q4_1", Format("fp16", 5 / 8, 2)),
    (r"q5_k", Format("fp16", 5.67 / 8, 2)),
    (r"q5_0", Format("fp16", 5.5 / 8, 2)),
    (r"q5_1|5-bit weights \(groups of 32", Format("fp16", 6 / 8, 2)),  # a scale and an offset for 32 weights
    (r"q6_k", Format("fp16", 6.56 / 8, 2)),
    (r"int4 weight-only \(g=32\)", Format("fp16", 5 / 8, 2)),  # gpt-fast: a BF16 scale and zero for 32 weights
    (r"int4 weight-only", Format("fp16", 4.5 / 8, 2)),
    (r"int8 weight-only|weights int8", Format("fp16", 1, 2)),
    (r"w4a8", Format("fp8", 4.25 / 8, 1)),
    (r"bfp8", Format("fp8", 8.5 / 8, 8.5 / 8)),
    (r"4-bit weights, fp16$", Format("fp16", 4.5 / 8, 2)),  # q4f16_1 of MLC, Q4_0: a scale for 32 weights
    (r"^w4(a16)?$|4-bit weights", Format("fp16", 0.5, 2)),
    (r"6-bit weights", Format("fp16", 0.75, 2)),
    (r"(int8|fp8) weights(, (fp16|bf16)|$)", Format("fp16", 1, 2)),
    (r"w8a16", Format("int16", 1, 2)),
    (r"w8a8_mixed", Format("int8", 1, 2)),
    (r"w8a8", Format("int8", 1, 1)),
    (r"^fp32/fp16$", Format("fp16", 2, 2)),
    (r"fp8", Format("fp8", 1, 1)),
    (r"fp4", Format("fp4", 4.5 / 8, 1)),
    (r"fp32 with matmult-bf16", Format("bf16", 4, 4)),
    (r"tf32", Format("tf32", 4, 4)),
    (r"int8|by pulsar2", Format("int8", 1, 1)),  # Pulsar2 quantises to 8 bits where nobody asks for 16
    (r"int4", Format("int4", 0.5, 1)),
    (r"int16", Format("int16", 2, 2)),
    (r"bf16|bfloat16|weights bf16", Format("bf16", 2, 2)),
    (r"fp16|float16|half|amp", Format("fp16", 2, 2)),
    (r"fp64", Format("fp64", 8, 8, True)),
    (r"fp32", Format("fp32", 4, 4, True)),
)


@lru_cache(maxsize=512)
def number_format(text: str) -> Format:
    """Return the formats that a row's words name.

    Examples
    --------
    >>> number_format("Q4_0").weight, number_format("INT8-v2").computes, number_format("EXL2 5.0 bpw").weight
    (0.5625, 'int8', 0.625)
    >>> number_format("5-bit weights (Q5_1)").weight, number_format("Q4_K_M") == number_format("4-bit weights (Q4_K)")
    (0.75, True)
    """
    bits = re.search(r"(\d+(?:\.\d+)?) ?bpw", text.lower())
    if bits:  # EXL2 mixes formats to as many bits a weight as one asks for
        return Format("fp16", float(bits.group(1)) / 8, 2)
    for pattern, fmt in _FORMATS:
        if re.search(pattern, text.lower()):
            return fmt
    raise Inexpressible(f"number format not stated or not known: {text or 'none'}")


def numbers_in(text: str) -> dict[str, int]:
    """Return the ``name=value`` pairs of a shape; ``M=N=K=512`` gives three.

    Examples
    --------
    >>> numbers_in("M=N=K=512, opA=N")
    {'M': 512, 'N': 512, 'K': 512}
    """
    numbers = {}
    for names, value in re.findall(r"((?:[A-Za-z_]+=)+)(\d+)", text):
        numbers.update({name: int(value) for name in names.rstrip("=").split("=")})
    return numbers


def whole_number(pattern: str, text: str, what: str) -> int:
    """Return the whole number that the pattern's group finds.

    Raises
    ------
    Inexpressible
        If it finds none; the reason names ``what``.
    """
    match = re.search(pattern, text)
    if not match:
        raise Inexpressible(f"{what} not stated")
    return int(match.group(1).replace(",", ""))


def batch_of(row: Row) -> int | None:
    """Return the batch of a row, or None where the source does not state it."""
    match = re.match(r"(\d+)\b", row.batch)
    return int(match.group(1)) or None if match else None


@lru_cache(maxsize=1)
def _names() -> FrozenDict[str, FrozenDict[str, object]]:
    read = yaml_of(read_text(_PLACE))
    return FrozenDict(
        {name: FrozenDict({"twin": entry} if isinstance(entry, str) else entry) for name, entry in read.items()}
    )


@lru_cache(maxsize=1024)
def device_of(name: str, *, cpu: bool = False, several: bool = False) -> tuple[Device, float]:
    """Return the device that a source's name means, and the share of it that worked.

    Parameters
    ----------
    name
        As the source writes it.
    cpu
        True for work on the CPU cluster of a system on chip.
    several
        True for work that several sockets share evenly; the share is then their number.

    Raises
    ------
    Inexpressible
        If the catalogue has no such device, or the name means several sockets where one is wanted.
    """
    entry = _names().get(name, FrozenDict({}))
    wanted = entry.get("cpu" if cpu else "twin")
    share = float(entry.get("share", 1.0))  # type: ignore[arg-type]
    if share > 1 and not several:
        raise Inexpressible(f"{name}: the traffic between its sockets is not stated")
    if wanted == "none":
        raise Inexpressible(f"no twin of {name} in the catalogue")
    if wanted:
        try:
            return Hardware[str(wanted)], share
        except UnknownNameError:
            pass
    device = device_named(name, cpu=cpu)
    if device is not None:
        return device, 1.0
    raise Inexpressible(f"no twin of {'the CPU of ' if cpu else ''}{name} in the catalogue")
