"""Layouts: what divides a model, against a count of the chips by hand and against every size tried."""

from types import SimpleNamespace

import pytest

from mlsys.errors import ArgumentError
from mlsys.mapping.parallel import Layout, divisors, layouts, tensor_sizes
from mlsys.workloads.zoo import language_model

NODE = SimpleNamespace(name="a node", chips=8)
MODELS = ("llama-3-8b", "llama-3-70b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-20b")


@pytest.mark.parametrize("name", MODELS)
def test_layouts_are_all_that_divide_and_no_others(name: str) -> None:
    """The opinion is brute force over every tp and pp of at most eight chips."""
    model = language_model(name)
    layer = max(model.layer_list, key=lambda each: each.ffn)
    found = {(each.tp, each.pp) for each in layouts(model, NODE, ep=1)}
    expected = set()
    for tp in range(1, 9):
        for pp in range(1, 9):
            shared = layer.latent or layer.kv_heads % tp == 0 or tp % layer.kv_heads == 0
            widths = {each.ffn for each in model.layer_list} | {each.shared_ffn for each in model.layer_list}
            divides = layer.heads % tp == 0 and shared and all(width % tp == 0 for width in widths)
            if divides and len(model.layer_list) % pp == 0 and tp * pp <= NODE.chips:
                expected.add((tp, pp))
    assert found == expected


@pytest.mark.parametrize("name", MODELS)
def test_every_layout_passes_its_own_check(name: str) -> None:
    model = language_model(name)
    for layout in layouts(model, NODE):
        layout.check(model, NODE)
        assert layout.chips == layout.tp * layout.pp * layout.dp * layout.cp <= NODE.chips


@pytest.mark.parametrize(
    ("layout", "name", "words"),
    [
        (Layout(tp=3), "llama-3-70b", "`tp` must divide the 64 query heads of Llama 3 70B. Possible: 1, 2, 4, 8"),
        (Layout(pp=3), "llama-3-70b", "`pp` must divide the 80 layers"),
        (Layout(tp=2, ep=2), "llama-3-70b", "Llama 3 70B has none. Leave it at 1"),
        (Layout(tp=3, ep=3), "mixtral-8x7b", "query heads"),
        (Layout(dp=3, ep=3), "mixtral-8x7b", "`ep` must divide the 8 experts of a layer"),
        (Layout(tp=16), "llama-3-70b", "16 chips are needed, and a node has 8"),
    ],
)
def test_what_does_not_divide_is_refused_by_name(layout: Layout, name: str, words: str) -> None:
    with pytest.raises(ArgumentError, match=words.replace("(", r"\(")) as caught:
        layout.check(language_model(name), NODE)
    assert "\n" not in str(caught.value)
    assert not layout.fits(language_model(name), NODE)


def test_experts_share_the_chips_that_are_there() -> None:
    assert Layout(tp=8, ep=8).chips == 8 == Layout(dp=8, ep=8).chips
    with pytest.raises(ArgumentError, match="must divide the tp × dp × cp = 4 chips"):
        Layout(tp=4, ep=8)


def test_heads_that_are_few_are_stored_on_several_chips_but_never_split_unevenly() -> None:
    model = language_model("llama-3-8b")  # 32 heads, 8 key-value heads
    assert tensor_sizes(model) == (1, 2, 4, 8, 16, 32)
    assert divisors(36) == tuple(number for number in range(1, 37) if 36 % number == 0)


@pytest.mark.parametrize("size", [0, -1, 1.5, "two"])
def test_sizes_are_whole_numbers(size: object) -> None:
    with pytest.raises(ArgumentError, match="`tp` must be a whole number"):
        Layout(tp=size)  # type: ignore[arg-type]
