"""The lab on real networks: what it shows and asks is what ``mlsys analyze`` says."""

import json

import pytest

pytest.importorskip("ipywidgets")

from mlsys import analyze
from mlsys.labs.network import _TASKS, DEVICES
from mlsys.viz.views.network import NetworkScene, gpus
from mlsys.widgets import RealNetworkLab


@pytest.fixture(scope="module")
def lab() -> RealNetworkLab:
    made = RealNetworkLab()
    made.predict(3)
    return made


def time_of(network, device, batch=1, precision="fp16", software="compiled"):
    found = analyze(device, network, batch=batch, precision=precision, software=f"{software} network on GPU")
    return found.estimate.m_as("ms")


def test_the_answers_are_those_of_the_analysis(lab):
    questions = lab.questions
    batch, software = (dict(questions[name].setting) for name in ("batch", "compile"))
    each = time_of(**batch) / batch["batch"]
    assert questions["batch"].answer == pytest.approx(time_of(**{**batch, "batch": 1}) / each)
    assert questions["compile"].answer == pytest.approx(
        time_of(**software) / time_of(**{**software, "software": "compiled"})
    )
    whole = dict(questions["limit"].setting)
    groups = analyze(whole["device"], whole["network"], batch=whole["batch"], precision="fp16").groups
    assert questions["limit"].answer == pytest.approx(1 / (1 - groups[0].share))


def test_every_task_has_several_good_designs_that_the_analysis_confirms():
    class Given:
        def __init__(self, task):
            self.task = task

        def pick(self, key, values):
            return self.task

    from mlsys.labs import network

    for task in _TASKS:
        [design] = network.designs(Given(task))
        scored = {tuple(choice.values()): design.score(choice).score for choice in design.choices()}
        assert sum(score >= 0.9 for score in scored.values()) >= 2
        software, precision, device, batch = max(scored, key=lambda choice: scored[choice])
        took = time_of(task[0], device, batch, precision, software)
        assert took <= task[2] and design.best == pytest.approx(1e-3 * took / batch)


def test_points_lie_under_the_roof_and_areas_are_shares():
    scene = NetworkScene()
    times = scene.update("resnet50", "A100_80GB", 22).values["times"]
    roof = [
        min(times.peak, times.bandwidth * flops / moved) for flops, moved in zip(times.flops, times.moved, strict=True)
    ]
    assert all(flops / took <= 1.0001 * top for flops, took, top in zip(times.flops, times.seconds, roof, strict=True))
    points = sum(len(dots.get_offsets()) for dots in scene._dots.values() if dots.get_visible())
    assert points == len(times.count) and scene._bars[0].get_width() == 1
    assert set(DEVICES) <= set(gpus())


def test_a_missing_format_is_told_and_the_lab_goes_on(lab):
    lab._set({"network": "resnet50", "device": "V100", "precision": "int8", "batch": 1, "software": "compiled"})
    assert "V100 SXM2 32 GB has no int8 peak" in lab.summary.value and "No picture" in lab.picture.value
    lab._set({"device": "T4"})
    assert "on the T4 in INT8" in lab.summary.value


CONFIG = {
    "model_type": "llama", "hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 3000, "max_position_embeddings": 2048,
    "architectures": ["LlamaForCausalLM"],
}  # fmt: skip


@pytest.mark.parametrize("text", ["densenet121", json.dumps(CONFIG)])
def test_a_network_of_your_own_is_read_and_handed_in(lab, text):
    lab.own.value, lab.own_device.value, lab.own_batch.value = text, "JetsonAGXOrin", 2
    lab.own_button.click()
    record = lab.work().record()["measurements"]["own-network"]
    assert record["batch"] == 2 and record["milliseconds"] > record["at_least"] > 0
    assert record["first"] in lab.own_message.value and "Fix first" in record["first"]


@pytest.mark.parametrize("text", ["", "no-such-network", "{", '{"model_type": "none"}', "<script>alert(1)</script>"])
def test_what_cannot_be_read_says_why(lab, text):
    lab.own.value, lab.own_device.value = text, "A100"
    lab.own_button.click()
    assert 'role="status"' in lab.own_message.value and "<script>" not in lab.own_message.value
    assert "Traceback" not in lab.own_message.value
