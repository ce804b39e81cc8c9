"""Storage formats of language model weights, and the bits per weight of each."""

from mlsys.errors import UnknownNameError, did_you_mean
from mlsys.precision import PRECISIONS

# Bits per weight, including the scales of its block. Block formats: 8 × bytes of the block over its weights
# (ggml-common.h of llama.cpp: q4_0 18 B of 32, q8_0 34 B of 32, q6_K 210 B of 256, …; OCP MX v1.0: one 8-bit scale
# for 32; NVFP4: one FP8 scale for 16). Mixed "K_M", "K_S" files: measured over Llama 2 7B, the quantize README of
# llama.cpp. "int4 g32" and "int4 g128": one 16-bit scale for 32 or 128 weights, symmetric.
WEIGHT_FORMATS: dict[str, float] = {
    "q4_0": 4.5, "q4_1": 5.0, "q5_0": 5.5, "q5_1": 6.0, "q8_0": 8.5,
    "q2_k": 2.625, "q3_k": 3.4375, "q4_k": 4.5, "q5_k": 5.5, "q6_k": 6.5625,
    "q3_k_m": 3.91, "q4_k_s": 4.58, "q4_k_m": 4.84, "q5_k_s": 5.52, "q5_k_m": 5.68,
    "mxfp4": 4.25, "mxfp8": 8.25, "nvfp4": 4.5, "int4 g32": 4.5, "int4 g128": 4.125,
}  # fmt: skip


def weight_bits(weight_format: str) -> float:
    """Return the bits per weight of a number format, or of a block format in ``WEIGHT_FORMATS``.

    Raises
    ------
    UnknownNameError
        If the format is unknown.

    Examples
    --------
    >>> weight_bits("fp16"), weight_bits("Q4_0"), weight_bits("q6_k")
    (16, 4.5, 6.5625)
    """
    known: dict[str, float] = {**PRECISIONS, **WEIGHT_FORMATS}
    name = str(weight_format).lower()
    if name not in known:
        raise UnknownNameError(
            f"unknown weight format {weight_format!r}. Known: {', '.join(known)}.{did_you_mean(name, known)}"
        )
    return known[name]
