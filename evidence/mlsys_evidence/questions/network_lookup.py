"""Networks of the catalogue, built for the rows that name them and lowered to kernels at a batch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from mlsys.calibration.case import Inexpressible
from mlsys.models.estimate import MATMUL, Work
from mlsys.models.estimate.eager import eager_kernels, looped_kernels
from mlsys.models.estimate.lowering import Format, concatenated, kernels_of
from mlsys.models.estimate.steps import ONCE, step_kernels
from mlsys.workloads import Network
from mlsys_evidence.questions.rewritten import rewritten
from mlsys_evidence.questions.shapes import usual_name

if TYPE_CHECKING:
    from mlsys.workloads.zoo.entry import Entry
    from mlsys.workloads.zoo.layer_builder import LayerBuilder


@lru_cache(maxsize=512)  # the rows of one source ask for the same networks in many formats
def built(name: str, **shape: object) -> Network:
    """Return a network of the catalogue in FP16, whatever the row spells it like.

    Raises
    ------
    Inexpressible
        If the catalogue has none of that name.
    """
    from mlsys.workloads import zoo

    entry = rewritten(name) or zoo.resolve(usual_name(name)) or _described(name)
    side = re.fullmatch(r"(vit|deit)_(\w+?)_patch(\d+)_(\d+)", name)
    if entry is None and side:
        # The same network on pictures of another size.
        entry = zoo.resolve(re.sub(r"_\d+$", "_224", name))
        shape.setdefault("image", int(side.group(4)))
    if entry is None:
        raise Inexpressible(f"no network {name} in the catalogue")
    if "width" in shape:
        shape["image"] = (shape["image"], shape.pop("width"))
    return entry.build(precision="fp16", whole=True, **shape)  # type: ignore[arg-type]


def _described(name: str) -> Entry | None:
    """Return the stack of encoder blocks that a row describes in words, each four times as wide inside as outside."""
    from mlsys.workloads.zoo.encoders import TextEncoder, bert
    from mlsys.workloads.zoo.entry import Entry

    words = re.search(r"(?<!GPT )\((\d+) layers?, (\d+) heads x\d+, hidden (\d+)\)", name)
    if words is None:
        return None
    layers, heads, width = (int(part) for part in words.groups())
    shape = TextEncoder(layers, width, heads, 4 * width, vocabulary=0, pooler=False)

    def write(builder: LayerBuilder, batch: int, tokens: int) -> None:
        bert(builder, batch, tokens, shape)

    return Entry(name, name, "text", "its row", sequence=128, write=write)


@lru_cache(maxsize=4096)
def _single(name: str, fmt: Format, winograd: float, shape: tuple[tuple[str, int], ...], run_as: str) -> Work:
    if run_as.startswith("trained"):
        network, written_out = unfused(name, dict(shape)), "written out" in run_as
        return step_kernels(network, fmt, ONCE, "casts" in run_as, written_out, winograd)
    if run_as:
        kernels = looped_kernels if run_as.startswith("loops") else eager_kernels
        return kernels(unfused(name, dict(shape)), fmt, "written out" in run_as, winograd)
    return kernels_of(built(name, batch=1, **dict(shape)), fmt, winograd=winograd)


def batched(
    name: str,
    fmt: Format,
    batch: int,
    winograd: float = 1.0,
    shape: Mapping[str, int] | None = None,
    run_as: str = "",
) -> Work:
    """Return a network's kernels at a batch, scaled from those of one sample, which are kept.

    Products with weights get ``batch`` times the rows, those without ``batch`` times the copies;
    of an embedding each sample reads rows of its own. ``run_as`` says how all runs that lies between products, as
    ``"one by one, scores written out"`` or ``"loops, scores fused"`` of attention; nothing where a compiler joins it
    to them.
    """
    return _at_batch(name, fmt, batch, winograd, tuple(sorted((shape or {}).items())), run_as)


@lru_cache(maxsize=4096)
def _at_batch(
    name: str, fmt: Format, batch: int, winograd: float, shape: tuple[tuple[str, int], ...], run_as: str
) -> Work:
    single = _single(name, fmt, winograd, shape, run_as)
    shared, is_product = single["weights"] > 0, single["kind"] == MATMUL
    gathered = shared & ~is_product & (single["flops"] == 0)
    held, other = single["weights"], single["moved"] - single["weights"]
    whole = single.changed(
        flops=batch * single["flops"],
        moved=np.where(gathered, batch * single["moved"], batch * other + held),
        weights=np.where(gathered, batch, 1) * held,
        m=single["m"] * np.where(is_product & shared, batch, 1),
        batch=single["batch"] * np.where(is_product & ~shared, batch, 1),
    )
    whole.columns.flags.writeable = False  # it is kept, and rows share it
    return whole


def unfused(name: str, shape: Mapping[str, int]) -> Network:
    """Return a network of the catalogue for one sample, every operator by itself."""
    return built(name, batch=1, fused=False, **shape)


# Guidance subtracts what the network sees without the text from what it sees with it.
GUIDED = 2
# MLPerf Inference, text_to_image: steps of a sample.
STEPS = 20


def picture_work(fmt: Format, batch: int) -> Work:
    """Return the kernels of ``batch`` pictures of MLPerf's SDXL: 20 guided looks, and the decoder once."""
    looks = batched("sdxl_unet", fmt, GUIDED * batch)
    return concatenated(looks.times(STEPS), batched("sd_decoder", fmt, batch))
