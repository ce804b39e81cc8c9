"""One network, whichever way it is named: catalogue, factory, configuration and ONNX file give the same counts."""

from __future__ import annotations

import copy
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_networks import RandomNetwork, networks, offer

from mlsys.cli import main
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.workloads import Workload, load, zoo
from mlsys.workloads.torch_models import RECIPES
from sampled import drawn

TIMES = int(os.environ.get("MLSYS_TIMES") or 1)
COUNTS = ("parameters", "macs", "product_flops", "flops", "data")
pytestmark = pytest.mark.filterwarnings("ignore")


def law(examples: int) -> settings:
    """Return settings for so many examples; each takes a second or more, so that none is shrunk."""
    return settings(
        max_examples=examples * TIMES, suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
    )  # fmt: skip


def counted(work: Workload) -> dict[str, int]:
    return {name: int(getattr(work, name).magnitude) for name in COUNTS}


def on_meta(network: RandomNetwork, batch: int, length: int) -> str:
    """Return a factory of the network without weights, with inputs of a size."""
    module = copy.deepcopy(network.module).to("meta")
    return offer(module, torch.zeros(network.shape(batch, length), device="meta"))


@law(8)
@given(networks, st.integers(1, 6), st.sampled_from((8, 9, 12, 16)))
def test_a_factory_and_its_onnx_file_at_every_batch_and_length(network: RandomNetwork, batch: int, length: int) -> None:
    sizes = network.sizes(batch, length)
    exact = counted(Workload.from_torch(network.module, torch.zeros(network.shape(batch, length))))
    assert exact["parameters"] == sum(each.numel() for each in network.module.parameters())
    assert exact["macs"] == exact["product_flops"] // 2 == network.macs(batch, length)
    resized = load(on_meta(network, 2, 10), **sizes)
    assert (counted(resized), dict(resized.sizes)) == (exact, sizes)
    assert counted(load(on_meta(network, batch, length), shape=network.shape(batch, length))) == exact
    more = network.more_in_onnx(batch, length)
    with tempfile.TemporaryDirectory() as folder:
        fixed = load(network.exported(Path(folder, "fixed.onnx"), batch, length, free=False))
        assert counted(fixed) == exact | {"data": exact["data"] + sum(more.values())}, more
        given = {name: size for name, size in sizes.items() if name != "image"}
        free = load(network.exported(Path(folder, "free.onnx"), 2, length, free=True), **given)
        merged = network.merged_when_free(batch)
        assert counted(free) == counted(fixed) | {"data": counted(fixed)["data"] - merged}
        assert {name: free.sizes[name] for name in sizes} == sizes


CODED = [name for name in zoo.networks() if zoo.entry(name).code]


@pytest.mark.parametrize("name", drawn(CODED, 3, "every door"))
def test_the_catalogue_and_the_code_that_it_names(name: str) -> None:
    recipe, batch = RECIPES[str(zoo.entry(name).code)], 3
    sizes: dict[str, Any] = {} if recipe.free is None else {recipe.free: recipe.default}
    factory = offer(*recipe.ready(batch=2, **sizes, dtype=torch.float32))
    assert counted(load(factory, batch=batch)) == counted(load(name, batch=batch, precision="fp32"))


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the configuration of a small decoder of one layer."""
    kind = draw(st.sampled_from(("llama", "qwen2", "gpt2", "opt")))
    heads, head = draw(st.sampled_from((2, 4))), 2 * draw(st.integers(2, 8))
    hidden, inner, tied = heads * head, 8 * draw(st.integers(2, 12)), draw(st.booleans())
    common = {"model_type": kind, "vocab_size": draw(st.integers(10, 90)), "tie_word_embeddings": tied}
    common |= {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    named = {
        "llama": ("LlamaForCausalLM", {"mlp_bias": draw(st.booleans()), "attention_bias": draw(st.booleans())}),
        "qwen2": ("Qwen2ForCausalLM", {}),
        "opt": ("OPTForCausalLM", {"ffn_dim": inner, "word_embed_proj_dim": hidden, "max_position_embeddings": 64}),
        "gpt2": ("GPT2LMHeadModel", {"n_embd": hidden, "n_layer": 1, "n_head": heads, "n_inner": inner,
                                     "n_positions": 64}),
    }  # fmt: skip
    name, more = named[kind]
    if kind != "gpt2":
        more = {"hidden_size": hidden, "num_hidden_layers": 1, "num_attention_heads": heads, **more}
    if kind in ("llama", "qwen2"):
        more |= {"intermediate_size": inner, "num_key_value_heads": draw(st.sampled_from((1, heads)))}
    return {**common, "architectures": [name], **more}


def of_kinds(work: Workload, *kinds: str) -> tuple[int, ...]:
    """Return products, other work, and bytes of the operators of some kinds."""
    counts = [operator.counts for operator in work if operator.kind in kinds]
    return tuple(
        sum(values) for values in zip(*((c.macs, c.elementwise, c.read + c.written) for c in counts), strict=True)
    )


@law(2)
@given(configurations(), st.integers(2, 5), st.integers(3, 20))
def test_a_configuration_and_the_module_that_transformers_makes_of_it(
    config: dict[str, Any], batch: int, tokens: int
) -> None:
    """transformers writes out masks, positions, norms and activations one by one: they alone may differ."""
    import transformers

    sizes = {"batch": batch, "sequence": tokens}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "config.json")
        file.write_text(json.dumps(config))
        read = load(file, **sizes, precision="fp32")
    described = transformers.AutoConfig.for_model(**config)
    described.use_cache = False
    with torch.device("meta"):
        module = getattr(transformers, config["architectures"][0])(described)
    traced = load(offer(module, {"input_ids": torch.zeros(2, 7, dtype=torch.long, device="meta")}), **sizes)
    assert dict(read.sizes) == dict(traced.sizes) == sizes
    ours, theirs = counted(read), counted(traced)
    assert [ours[name] for name in COUNTS[:3]] == [theirs[name] for name in COUNTS[:3]]
    if read.has_graph:  # written down with its edges
        assert of_kinds(read, "gemm", "embedding") == of_kinds(traced, "gemm", "embedding")
    (macs, work, moved), (macs_traced, work_traced, _) = (of_kinds(each, "attention") for each in (read, traced))
    heads = config.get("num_attention_heads", config.get("n_head"))
    shared = config.get("num_key_value_heads", heads)
    width = config.get("hidden_size", config.get("n_embd")) // heads
    assert macs_traced == macs and work_traced == work + batch * heads * tokens**2  # the mask, added to each score
    assert moved == 4 * batch * width * tokens * 2 * (heads + shared)  # one kernel: no score crosses memory
    assert theirs["data"] >= ours["data"]
    assert theirs["flops"] == pytest.approx(ours["flops"], rel=0.05)


RIGHT = {
    "lenet5": (
        {"batch": 3, "precision": "int8"},
        {"sequence": 9, "image": 9, "shape": (1, 1, 32, 32), "phase": "decode"},
    ),
    "vgg11": ({"batch": 3, "image": 64, "precision": "fp16"}, {"sequence": 9, "sizes": {"n": 3}}),
    "gpt2": ({"batch": 3, "sequence": 9, "phase": "decode", "precision": "fp16"}, {"image": 9, "shape": (1, 8)}),
    "config.json": ({"batch": 3, "sequence": 9, "phase": "decode", "precision": "int8"}, {"image": 9, "shape": (1, 8)}),
}
SMALL = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 64,
         "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 50}  # fmt: skip


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text(json.dumps(SMALL))
    yield "config.json"


def answered(model: str, **options: Any) -> Any:
    """Return what a network adds up to, or None where the question is refused."""
    try:
        work = load(model, **options)
    except (ArgumentError, UnknownNameError) as error:
        assert "\n" not in str(error)
        return None
    return counted(work), work.weight_bytes.magnitude, dict(work.sizes)


@pytest.mark.parametrize("model", RIGHT)
def test_every_option_of_a_name_or_a_configuration_counts(model: str, config: str) -> None:
    taken, refused = RIGHT[model]
    plain = answered(model)
    for name, value in taken.items():
        assert answered(model, **{name: value}) not in (None, plain), name
    for name, value in refused.items():
        assert answered(model, **{name: value}) is None, name


@law(3)
@given(networks)
def test_every_option_of_a_module_or_an_onnx_file_counts(network: RandomNetwork) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = network.exported(Path(folder, "net.onnx"), 2, 8, free=True)
        doors = {on_meta(network, 2, 8): {"batch", "precision", "shape"} | {network.length or "batch"},
                 str(file): {"batch", "precision", "sizes"} | ({"sequence"} & {network.length})}  # fmt: skip
        for door, taken in doors.items():
            plain = answered(door)
            options = {"batch": 5, "sequence": 12, "image": 12, "precision": "fp16", "phase": "decode",
                       "sizes": {"batch": 5}, "shape": network.shape(5, 12)}  # fmt: skip
            for name, value in options.items():
                changed = answered(door, **{name: value})
                assert changed is None if name not in taken else changed not in (None, plain), (door, name)


def rates(model: str, batch: int, *more: str) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield the answers of analyze and compare, and of each the samples that its rate and its time say."""
    for words in (["analyze", model, "--device", "A100"], ["compare", model, "--devices", "A100,T4"]):
        result = CliRunner().invoke(main, [*words, "--batch", str(batch), *more, "--json"])
        assert result.exit_code == 0, result.output
        answer = json.loads(result.stdout)
        for line in answer if isinstance(answer, list) else [answer]:
            yield line, line["samples_per_second"] * line["estimate_seconds"]


@law(1)
@given(networks, st.integers(2, 40))
def test_a_rate_times_a_time_is_the_batch(network: RandomNetwork, batch: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file, config = network.exported(Path(folder, "net.onnx"), 2, 8, free=True), Path(folder, "config.json")
        config.write_text(json.dumps(SMALL))
        for model in (on_meta(network, 2, 8), str(file), str(config), "lenet5"):
            for answer, samples in rates(model, batch):
                assert answer["batch"] == batch == pytest.approx(samples), model


class Alone(torch.nn.Module):
    """A product whose rows are not samples: they are compared with each other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ x.T


def test_inputs_without_a_batch_axis_have_no_batch_in_the_text() -> None:
    result = CliRunner().invoke(main, ["analyze", offer(Alone(), torch.zeros(8, 8)), "--device", "A100"]).output
    assert "no batch axis" in result.splitlines()[0] and "note: no axis of the inputs is a batch" in result
    assert "batch 1" not in result


class Choosing(torch.nn.Module):
    """Reads a value, unless it finds that it is traced."""

    def __init__(self, traced: Callable[[torch.Tensor], bool]) -> None:
        super().__init__()
        self.layer, self.traced = torch.nn.Linear(8, 8), traced

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if not self.traced(x) and x.sum() > 0 else self.layer(x)


def test_a_module_that_asks_whether_it_is_exported_has_a_batch() -> None:
    module = Choosing(lambda x: torch.compiler.is_compiling() and torch.compiler.is_exporting()).to("meta")
    work = load(offer(module, torch.zeros(2, 8, device="meta")), batch=5)
    assert (int(work.macs.magnitude), dict(work.sizes)) == (5 * 64, {"batch": 5})
    assert not torch.compiler.is_compiling()


def test_sizes_that_are_not_known_are_said_to_be() -> None:
    from torch._subclasses.fake_tensor import FakeTensor

    factory = offer(Choosing(lambda x: isinstance(x, FakeTensor)).to("meta"), torch.zeros(2, 8, device="meta"))
    work = load(factory)
    assert int(work.macs.magnitude) == 2 * 64 and not work.sizes
    assert any("which axes of its inputs are the batch" in note for note in work.notes)
    assert answered(factory, batch=5) is None


class Tied(torch.nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(40, 7), torch.nn.Linear(7, 40, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(x))


@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_a_weight_that_layers_share_counts_once_wherever_it_was_made(device: str) -> None:
    with torch.device(device):
        module = Tied()
    factory = offer(module, torch.zeros(2, 5, dtype=torch.long, device=device))
    for options in ({}, {"batch": 3}, {"precision": "fp16"}):
        assert int(load(factory, **options).parameters.magnitude) == 280, options


@pytest.mark.parametrize("cell", [torch.nn.GRUCell, torch.nn.LSTMCell, torch.nn.RNNCell])
def test_frozen_weights_move_the_same_bytes(cell: type[torch.nn.RNNCellBase]) -> None:
    module = cell(5, 6)
    learning = counted(Workload.from_torch(module, torch.zeros(7, 5)))
    assert counted(Workload.from_torch(module.requires_grad_(False), torch.zeros(7, 5))) == learning


class Causal(torch.nn.Module):
    """Attention whose scale and mask the exporter writes as constants."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.layer(x).chunk(3, -1)
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


def test_numbers_of_a_formula_are_no_parameters_of_an_onnx_file(tmp_path: Path) -> None:
    torch.onnx.export(Causal(), (torch.zeros(2, 5, 8),), tmp_path / "net.onnx", dynamo=False, opset_version=17)
    assert int(load(tmp_path / "net.onnx").parameters.magnitude) == 8 * 24 + 24


def test_a_normalisation_that_maps_nothing_has_no_parameters_in_an_onnx_file(tmp_path: Path) -> None:
    """The operator demands a scale and a shift: the exporter writes ones and zeros, for groups as well."""
    module = torch.nn.Sequential(
        torch.nn.GroupNorm(4, 16), torch.nn.InstanceNorm2d(16), torch.nn.InstanceNorm2d(16, affine=True)
    ).eval()
    torch.onnx.export(module, (torch.zeros(2, 16, 4, 4),), tmp_path / "net.onnx", dynamo=False, opset_version=17)
    assert int(load(tmp_path / "net.onnx").parameters.magnitude) == 16 + 16 + 0 + 16 + 16


def test_a_factory_that_imports_as_it_runs_finds_its_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("neighbour_of_it.py").write_text("import torch\nmade = torch.nn.Linear(3, 4)\n")
    Path("imports_late.py").write_text("def make():\n    import neighbour_of_it\n    return neighbour_of_it.made\n")
    assert int(load("imports_late:make").parameters.magnitude) == 16
