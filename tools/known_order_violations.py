"""Pairs of orderings.py that are known to be mispredicted, with the reason; a test checks that they still are."""

from collections.abc import Callable

from orderings import Pair

_HALF_SLOWER = {
    **dict.fromkeys(("GroqChip1", "Inferentia2", "Trainium1"), ("int8", "fp16")),
    **dict.fromkeys(("Trainium2", "IPU_C600", "IPU_GC200", "WSE2", "WSE3"), ("fp16",)),
    **dict.fromkeys(("Gaudi2", "DojoD1"), ("bf16",)),
    "Gaudi3": ("fp16", "fp32"), "BowIPU": ("fp16", "fp32"),
}  # fmt: skip
_INT8_SLOWER = {("yolov8n", 32), ("bert-base", 1), ("bert-base", 32), ("vit_base_patch16_224", 1),
                ("vit_base_patch16_224", 32), ("resnet18", 32), ("resnet50", 32)}  # fmt: skip


def _half_a_mobilenet(pair: Pair) -> bool:
    """Return whether a pair is MobileNet v2 0.5 at batch 1 on a machine where the full width is predicted to be faster.

    No compiler of these machines has a row of the half-width network; either network waits for memory and launches
    there, takes about the same time, and has an effect of its own that was learned on other machines.
    """
    question = pair[0]
    formats = _HALF_SLOWER.get(question.device, ())
    return question.network == "mobilenet_v2_0.5" and question.batch == 1 and question.precision in formats


def _int8_on_inferentia(pair: Pair) -> bool:
    """Return whether a pair is INT8 against FP16 on an Inferentia1, where INT8 is predicted to be slower.

    Its INT8 and FP16 rows come from different software, which is fitted apart.
    """
    question = pair[0]
    return (
        question.device == "Inferentia1"
        and question.precision == "int8"
        and (question.network, question.batch) in _INT8_SLOWER
    )


# Known mispredictions by ordering.
KNOWN_VIOLATIONS: dict[str, Callable[[Pair], bool]] = {
    "a deeper network": _half_a_mobilenet,
    "a narrower format": _int8_on_inferentia,
}


def is_known_violation(name: str, pair: Pair) -> bool:
    """Return whether a pair is a known misprediction."""
    return name in KNOWN_VIOLATIONS and KNOWN_VIOLATIONS[name](pair)
