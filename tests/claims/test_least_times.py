"""One network on one device has one least time, however many pages state it, and each says what it counts."""

import re
from typing import Any

import pytest

from mlsys.claims.render import MIME
from pages import ROOT, read_notebook

SUM = re.compile(r"the sum of (\d+) values")
"""The formula of a time that a model adds up over operators."""

SAME = {
    "ResNet-50, batch 32, fp16, A100: layers with weights": (
        "roofline::time_a100", "network::layers_time", "fusion::layers_time", "compiler::layer_floor"
    ),
    "ResNet-50, batch 32, fp16, A100: kernels of the estimate": ("network::fused_bound", "tour::bound"),
    "ResNet-50, batch 32, fp16, A100: operator by operator": (
        "roofline::time_one_by_one", "network::resnet_time", "fusion::resnet_unfused",
        "numbers_everyone_repeats::latency_right",
    ),
    "ResNet-50, batch 32, fp16, A100: fused": ("fusion::resnet_fused", "planning::layout_least", "tour::least"),
}  # fmt: skip
"""Claims of several pages that are one quantity: they agree in what they count, in value and in text."""


OTHER_BATCH = {"interconnect::work_time": ("roofline::time_a100", 8)}
"""Times of the same operators at another batch, with the time and the ratio of the batches. Arithmetic grows with the
batch and weights do not, so that the time grows by at most that ratio."""


def claims() -> dict[str, dict[str, Any]]:
    """Return the claims of all pages by ``page::name``."""
    stated = {}
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        outputs = [output["data"] for cell in read_notebook(path).cells for output in cell.get("outputs", ())
                   if MIME in output.get("data", {})]  # fmt: skip
        for claim in outputs[-1][MIME]["claims"] if outputs else ():
            stated[f"{path.stem}::{claim['name']}"] = claim
    return stated


CLAIMS = claims()
TIMES = [name for name, claim in CLAIMS.items() if claim["unit"] in ("ms", "µs", "s") and SUM.search(claim["formula"])]


@pytest.mark.parametrize("what", SAME)
def test_pages_agree(what: str) -> None:
    stated = [CLAIMS[name] for name in SAME[what]]
    assert len({claim["text"] for claim in stated}) == 1, [(claim["name"], claim["text"]) for claim in stated]
    assert len({claim["formula"] for claim in stated}) == 1, [claim["formula"] for claim in stated]


def test_two_pages_that_add_up_as_many_operators_of_one_device_agree() -> None:
    """What reads the same facts and adds up as many values is stated once, or listed above as one quantity."""
    listed = {name for names in SAME.values() for name in names}
    seen: dict[tuple[Any, ...], set[str]] = {}
    for name in set(TIMES) - OTHER_BATCH.keys():
        claim = CLAIMS[name]
        seen.setdefault((tuple(claim["facts"]), SUM.search(claim["formula"])[1]), set()).add(name)
    for names in seen.values():
        pages = {name.partition("::")[0] for name in names}
        texts = {CLAIMS[name]["text"] for name in names}
        assert len(pages) == 1 or (len(texts) == 1 and names <= listed), f"list in SAME: {names}"


@pytest.mark.parametrize("name", OTHER_BATCH)
def test_a_larger_batch_takes_nearly_as_many_times_as_long(name: str) -> None:
    smaller, ratio = OTHER_BATCH[name]
    grown = float(CLAIMS[name]["value"]) / float(CLAIMS[smaller]["value"])
    assert 0.95 * ratio < grown <= ratio * (1 + 1e-9)


@pytest.mark.parametrize("name", TIMES)
def test_the_page_says_how_many_operators_a_time_counts(name: str) -> None:
    page = name.partition("::")[0]
    counted = SUM.search(CLAIMS[name]["formula"])[1]
    stated = [other["text"] for key, other in CLAIMS.items() if key.startswith(f"{page}::") and not other["unit"]]
    assert counted in stated, f"{page} does not claim that {CLAIMS[name]['text']} is the time of {counted} operators"
