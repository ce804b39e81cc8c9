"""Which axis is the batch, the sequence and the image, of modules that place them differently; what cannot be set."""

import sys

import pytest

from mlsys.errors import ArgumentError
from mlsys.workloads import load
from mlsys.workloads.factory import module_of
from mlsys.workloads.torch_import import from_torch
from mlsys.workloads.torch_import.batch_axis import batch_axes
from mlsys.workloads.torch_import.lengths import image_axes, sequence_axes
from mlsys.workloads.torch_import.module_inputs import ModuleInputs
from sampled import drawn

NETS = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(32, 4, 64)
    def forward(self, x, mask):
        return self.layer(x, src_mask=mask)

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(100, 32), nn.Embedding(64, 32)
        self.layer, self.head = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), nn.Linear(32, 100)
    def forward(self, ids, places=None):
        places = torch.arange(ids.shape[1]) if places is None else places
        x = self.words(ids) + self.places(places)
        mask = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        return {"logits": self.head(self.layer(x, src_mask=mask)), "hidden": x}

class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 4), nn.Linear(6, 4)
    def forward(self, parts, scale, *, flag=True):
        return [self.a(parts["x"]), self.b(parts["z"]) * scale]

class Unrolled(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(8, 16)
    def forward(self, x):
        state = torch.zeros(x.shape[1], 16)
        for step in range(x.shape[0]):
            state = self.cell(x[step], state)
        return state

class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.gate, self.head = nn.Embedding(100, 16), nn.Linear(16, 4), nn.Linear(16, 100)
        self.experts = nn.Parameter(torch.zeros(4, 16, 16))
    def forward(self, ids):
        x = self.words(ids)
        rows = x.flatten(0, 1)
        chosen = self.gate(rows).argmax(-1)
        _, order = chosen.sort()  # rows of one expert side by side
        grouped = torch.bmm(rows[order].unsqueeze(1), self.experts[chosen[order]]).squeeze(1)
        return self.head(F.scaled_dot_product_attention(*3 * [grouped[order.argsort()].view_as(x)]))

class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
    def forward(self, edges, nodes):
        return edges @ self.layer(nodes)

class Pixels(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
    def forward(self, x):
        return self.conv(x.permute(0, 3, 1, 2))

class Fixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)
    def forward(self, x):
        return self.layer(x).view(2, 4)

class Sum(nn.Module):
    def forward(self, a, b):
        return torch.einsum("bmk,bkn->mn", a, b)

class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 10)
    def forward(self, x, y):
        return F.cross_entropy(self.layer(x), y)

class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
    def forward(self, x):
        with torch.enable_grad():
            return torch.autograd.grad(self.net(x).square().sum(), list(self.net.parameters()))

class OnTheCPU(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)
    def forward(self, x):
        return self.layer(x) + torch.ones(4, device="cpu")

class Scores(nn.Module):
    def forward(self, q, mask):
        return F.scaled_dot_product_attention(q, q, q, attn_mask=mask)

class Causal(nn.Module):
    def forward(self, q, k):
        return F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)

class Tail(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)

class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(128, 256, bias=False), nn.ReLU(), nn.Linear(256, 128, bias=False))
    def forward(self, x):
        with torch.enable_grad():
            checkpoint(self.net, x, use_reentrant=False).sum().backward()

class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)
    def forward(self, x):
        self.layer(x).sum().backward()

def tail(): return Tail(), (torch.zeros(1, 2, 4, 8), torch.zeros(1, 2, 10, 8), torch.zeros(1, 2, 10, 16))
def checkpointed(): return Checkpointed(), torch.zeros(32, 128)
def frozen(): return Frozen(), torch.zeros(2, 8)
def lstm(): return nn.LSTM(8, 4), torch.zeros(50, 2, 8)
def lstm_first(): return nn.LSTM(8, 4, 3, batch_first=True), (torch.zeros(3, 50, 8), (torch.zeros(3, 3, 4),) * 2)
def lstm_one(): return nn.LSTM(8, 4), torch.zeros(50, 8)
def gru(): return nn.GRU(8, 4, bidirectional=True), torch.zeros(5, 1, 8)
def heads(): return nn.MultiheadAttention(16, 4), (torch.zeros(10, 2, 16), *(torch.zeros(20, 2, 16),) * 2)
def heads_one(): return nn.MultiheadAttention(16, 4), (torch.zeros(10, 16),) * 3
def translator(): return nn.Transformer(32, 4, 1, 1, 64), (torch.zeros(10, 3, 32), torch.zeros(20, 3, 32))
def masked(): return Masked(), (torch.zeros(10, 1, 32), torch.zeros(10, 10))
def decoder(): return Decoder(), torch.zeros(1, 16, dtype=torch.long)
def decoder_places(): return Decoder(), {"ids": torch.zeros(2, 16, dtype=torch.long), "places": torch.arange(16)}
def parts(): return Parts(), ({"x": torch.zeros(3, 8), "z": torch.zeros(3, 6)}, torch.tensor(2.0))
def unrolled(): return Unrolled(), torch.zeros(12, 4, 8)
def graph(): return Graph(), (torch.zeros(50, 50), torch.zeros(4, 50, 8))
def pixels(): return Pixels(), torch.zeros(2, 16, 16, 3)
def volume(): return nn.Conv3d(3, 8, 3), torch.zeros(2, 3, 8, 32, 32)
def image_one(): return nn.Conv2d(3, 8, 3), torch.zeros(3, 32, 32)
def row(): return nn.Linear(8, 4), torch.zeros(8)
def signal(): return nn.Conv1d(8, 4, 3, padding=1), torch.zeros(2, 8, 100)
def signal_one(): return nn.Conv1d(8, 4, 3, padding=1), torch.zeros(8, 100)
def experts(): return Experts(), torch.zeros(2, 7, dtype=torch.long)
def words(): return nn.Embedding(100, 8), torch.zeros(2, 7, dtype=torch.long)
def fixed(): return Fixed(), torch.zeros(2, 8)
def einsum(): return Sum(), (torch.zeros(2, 64, 128), torch.zeros(2, 128, 32))
def scores(): return Scores(), (torch.zeros(2, 8, 16, 32), torch.ones(16, 16, dtype=torch.bool))
def causal(): return Causal(), (torch.zeros(2, 8, 16, 32), torch.zeros(2, 2, 16, 32))
def parallel(): return nn.DataParallel(nn.Conv1d(8, 4, 3, padding=1)), torch.zeros(2, 8, 100)
def loss(): return Loss(), (torch.zeros(4, 8), torch.zeros(4, dtype=torch.long))
def step(): return Step(), torch.zeros(4, 8)
def on_the_cpu(): return OnTheCPU(), torch.zeros(2, 8)
def nothing(): return nn.Linear(8, 4), torch.zeros(0, 8)
"""
SIZES = {
    "lstm": {"batch": 2, "sequence": 50},
    "lstm_first": {"batch": 3, "sequence": 50},
    "lstm_one": {"sequence": 50},
    "gru": {"batch": 1, "sequence": 5},
    "heads": {"batch": 2, "sequence": 10},
    "heads_one": {"sequence": 10},
    "translator": {"batch": 3, "sequence": 10},
    "masked": {"batch": 1, "sequence": 10},
    "decoder": {"batch": 1, "sequence": 16},
    "experts": {"batch": 2, "sequence": 7},
    "decoder_places": {"batch": 2, "sequence": 16},
    "parts": {"batch": 3},
    "unrolled": {"batch": 4, "sequence": 12},
    "graph": {"batch": 4, "sequence": 50},  # nodes, which may be more or fewer
    "pixels": {"batch": 2, "image": 16},
    "volume": {"batch": 2, "image": 32},
    "image_one": {"image": 32},
    "row": {},
    "signal": {"batch": 2, "sequence": 100},
    "signal_one": {"sequence": 100},
    "words": {"batch": 2, "sequence": 7},
    "fixed": {},
    "einsum": {},
    "scores": {"batch": 2, "sequence": 16},
    "causal": {"batch": 2, "sequence": 16},
    "loss": {"batch": 4},
    "step": {"batch": 4},
    "tail": {"batch": 1},  # four queries and ten keys
}
CANNOT = {"fixed", "einsum"}


@pytest.fixture(scope="module", autouse=True)
def nets(tmp_path_factory: pytest.TempPathFactory) -> object:
    folder = tmp_path_factory.mktemp("axes")
    (folder / "nets_with_axes.py").write_text(NETS)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))


def made(name: str, **sizes: int) -> object:
    return load(f"nets_with_axes:{name}", option="--{}", **sizes)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_those_of_the_inputs_wherever_they_stand(name: str) -> None:
    """Written down from the documentation of torch's layers."""
    module, inputs, _ = module_of(f"nets_with_axes:{name}", meta=True)
    given = ModuleInputs(module.to("meta"), inputs)
    batch = batch_axes(given)
    found = {"batch": batch, "sequence": sequence_axes(given, batch), "image": image_axes(given)}
    assert {size: given.extent(axes) for size, axes in found.items() if axes} == SIZES[name]


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("name", drawn(list(SIZES), 4, "batches"))
def test_the_work_of_a_batch_is_its_size_times_that_of_one(name: str) -> None:
    base = load(f"nets_with_axes:{name}")
    assert dict(base.sizes) == SIZES[name]
    if name in CANNOT:
        with pytest.raises(ArgumentError, match="--batch 7 does not apply to .* no axis of its inputs"):
            made(name, batch=7)
        return
    batch = SIZES[name].get("batch", 1)
    many, more = (load(f"nets_with_axes:{name}", batch=size) for size in (7, 14))
    assert many.sizes["batch"] == 7 and 2 * many.macs == more.macs
    assert many.macs * batch == 7 * base.macs
    assert many.parameters == base.parameters and len(many) == len(more)
    assert ("no axis of the inputs is a batch" in " ".join(base.notes)) == ("batch" not in SIZES[name])


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("name", drawn(list(SIZES), 4, "sizes"))
def test_every_size_changes_the_answer_or_is_refused(name: str) -> None:
    base = load(f"nets_with_axes:{name}")
    for size in ("sequence", "image"):
        if size in SIZES[name]:
            other = made(name, **{size: 9})
            assert other.sizes[size] == 9 and other.data != base.data
        else:
            with pytest.raises(ArgumentError, match=f"--{size} 9 does not apply to"):
                made(name, **{size: 9})


def test_work_at_a_length_by_hand() -> None:
    """Projections: 4 · E² MAC a token; scores and their product with the values: 2 · T² · E; one layer of width 16."""
    for length in (5, 500):
        assert made("heads_one", sequence=length).macs.magnitude == length * 4 * 16**2 + 2 * length**2 * 16
    assert made("lstm", batch=3, sequence=11).macs.magnitude == 3 * 11 * 4 * 4 * (8 + 4)


def test_a_module_that_makes_tensors_on_the_cpu_is_captured() -> None:
    assert (made("on_the_cpu", batch=5).macs.magnitude, dict(made("on_the_cpu").sizes)) == (5 * 8 * 4, {"batch": 2})


def test_a_length_of_its_own_is_named_in_python() -> None:
    module, inputs, _ = module_of("nets_with_axes:tail", meta=True)
    work = from_torch(module, inputs, dynamic={"keys": {"k": 2, "v": 2}})
    assert [work.at(keys=keys).macs.magnitude for keys in (10, 50)] == [2 * 4 * keys * (8 + 16) for keys in (10, 50)]


def test_a_training_step_with_activation_checkpoints() -> None:
    """Two products forward, one again (the last is needed by nobody), three backward: the input has no gradient."""
    work = made("checkpointed")
    assert work.macs.magnitude == 6 * 32 * 128 * 256 and "activation checkpoints" in " ".join(work.notes)


def test_a_wrapper_of_a_module_is_taken_off() -> None:
    work = made("parallel", batch=3, sequence=50)
    assert (work.macs.magnitude, dict(work.sizes)) == (3 * 50 * 8 * 4 * 3, {"batch": 3, "sequence": 50})


def test_what_does_not_fit_is_refused_in_a_line() -> None:
    for text, name, sizes in (
        ("positions 0 to 64 are looked up in a table of 64", "decoder", {"sequence": 65}),
        ("the operator conv2d does not fit tensors of", "pixels", {"image": 2}),
        ("has inputs with a batch of 0", "nothing", {}),
        ("--shape has a batch of 4, --batch is 3", "row", {"batch": 3, "shape": (4, 8)}),
        ("axis 2 of input 2 (10) and axis 2 of input 3 (10) among them", "tail", {"sequence": 50}),
        ("Write the step under `with torch.enable_grad():`", "frozen", {}),
        ("--image conflicts with --shape", "pixels", {"image": 8, "shape": (1, 8, 8, 3)}),
        ("--shape applies to modules with one input", "parts", {"shape": (4, 8)}),
    ):
        with pytest.raises(ArgumentError) as caught:
            made(name, **sizes)
        assert text in str(caught.value) and "\n" not in str(caught.value)


def test_a_command_says_the_rate_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    from click.testing import CliRunner

    from mlsys.cli import main

    answers = {}
    for batch in (1, 32):
        command = ["analyze", "nets_with_axes:pixels", "--device", "A100", "--batch", str(batch), "--json"]
        answer = json.loads(CliRunner().invoke(main, command).output)
        assert answer["batch"] == batch
        assert answer["samples_per_second"] * answer["estimate_seconds"] == pytest.approx(batch)
        answers[batch] = answer
        both = ["compare", "nets_with_axes:pixels", "--devices", "A100,T4", "--batch", str(batch), "--json"]
        for line in json.loads(CliRunner().invoke(main, both).output):
            assert line["samples_per_second"] * line["estimate_seconds"] == pytest.approx(batch)
        layers = json.loads(CliRunner().invoke(main, ["edge", "layers", *command[1:2], *command[4:]]).output)
        assert layers["totals"]["macs"] == batch * layers["totals_per_sample"]["macs"] == answer["product_flops"] / 2
    assert answers[32]["product_flops"] == 32 * answers[1]["product_flops"]
    none = json.loads(CliRunner().invoke(main, ["flops", "nets_with_axes:row", "--json"]).output)
    assert none["batch"] is None and none["notes"] == ["no axis of the inputs is a batch: a pass counts as one sample"]
