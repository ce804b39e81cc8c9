"""Look-up of networks by any of their usual spellings."""

import re
from functools import cache

from mlsys.workloads.zoo.catalogue import CATALOGUE
from mlsys.workloads.zoo.entry import Entry

# Words that say how a network was trained, stored or run, and do not identify it.
_NOISE = frozenset((
    "instruct", "chat", "hf", "it", "uncased", "cased", "training", "inference", "encoder", "decoder", "pre", "qa",
    "fine", "tune", "tuning", "finetune", "quant", "quantized", "int8", "uint8", "fp16", "fp32", "bf16", "float",
    "w8a8", "torch", "pytorch", "tf", "tflite", "onnx", "keras", "ncnn", "params", "model", "maxtext", "imagenet",
    "99", "99.9", "huggingface", "vision_transformer", "detection", "packed", "phase", "dense",
))  # fmt: skip
_WORD = re.compile(r"[a-z]+|\d+(?:\.\d+)?[bm]?(?![a-z0-9])|\d+(?:\.\d+)?")


def _key(text: str) -> tuple[str, ...]:
    """Return the sorted words and numbers of a name, ignoring order, case, separators and a ``v`` before a number."""
    plain = re.sub(r"v\.?(?=\d)", " ", text.lower().replace("×", "x"))
    plain = re.sub(r"(?<=\d)_(?=\d)", "-", plain)
    return tuple(sorted(_WORD.findall(plain)))


@cache
def _known() -> dict[tuple[str, ...], Entry]:
    known: dict[tuple[str, ...], Entry] = {}
    for entry in CATALOGUE.values():
        for spelling in (entry.name, entry.title, *entry.aliases):
            known.setdefault(_key(spelling), entry)
    return known


def _without_noise(text: str) -> str:
    return " ".join(word for word in re.split(r"[\s_/,-]+", text.lower()) if word and word not in _NOISE)


@cache
def resolve(name: str) -> Entry | None:
    """Return the entry that ``name`` refers to, or None.

    Case, spaces, hyphens, word order, an owner before a slash, remarks in parentheses, and words
    for number formats and fine-tuning are ignored. Sizes and versions must match.

    Examples
    --------
    >>> [resolve(name).name for name in ("ResNet-50 v1.5", "meta-llama/Llama-2-70b-hf", "MobileNetV2")]
    ['resnet50', 'llama-2-70b', 'mobilenet_v2']
    >>> resolve("Llama 2 71B") is None
    True
    """
    known = _known()
    outside = re.sub(r"\(.*?\)", " ", name)
    owned = outside.rpartition("/")[2] if re.match(r"^[\w.-]+/[\w.-]+$", outside.strip()) else outside
    for spelling in (name, outside, owned, _without_noise(outside), _without_noise(owned)):
        entry = known.get(_key(spelling))
        if entry is not None:
            return entry
    return None
