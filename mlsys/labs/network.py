"""The lab on reading a real network. Every number in a question or an answer is estimated here by the model."""

from functools import partial

import numpy as np

from mlsys import Hardware
from mlsys.labs.design import Built, Design, Knob
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.sweep.layers import LayerTimes
from mlsys.viz.views.network import NETWORKS, reading
from mlsys.viz.views.view import number, percent, times
from mlsys.viz.words import device_name

DEVICES = ("T4", "L4", "A100_80GB", "H100_SXM")
"""Devices of the questions and of the design task."""
_NETWORKS = ("resnet50", "yolov8n")
_WIDER = ("resnet50", "yolov8n", "vit-b-16")
_TASKS = (  # network, weeks, ms that users accept; several choices come within a tenth of the best
    ("resnet50", 8, 3.5), ("resnet50", 8, 4.5), ("resnet50", 8, 6.5), ("resnet50", 9, 8.5),
    ("yolov8n", 7, 9.5), ("yolov8n", 8, 6.5), ("yolov8n", 9, 9.5),
)  # fmt: skip
_BATCHES = (22, 36, 44, 72, 88)
_SMALL = "mobilenet_v2"
_COMPILED, _FORMATS = {"eager": 0, "compiled": 3}, {"fp32": 0, "fp16": 1, "int8": 5}  # weeks
_MOVING = {"T4": 0, "L4": 4, "A100_80GB": 6, "H100_SXM": 9}  # weeks until the machines are there
_TRIED = (1, 2, 4, 8, 11, 16, 22, 36, 44, 72, 88)
_BANDS = (("Less than 1.5 times as fast", 0.0, 1.5), ("1.5 to 2 times as fast", 1.5, 2.0),
          ("More than 2 times as fast", 2.0, float("inf")))  # fmt: skip


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    network, device = _network(draw), _device(draw)
    alone = reading(network, device, 1)
    return NumberQuestion(
        "prediction",
        f"{NETWORKS[network]} runs at batch 1 on the {_name(device)}, compiled, in FP16. Which part of the dense peak, "
        "in percent, does it reach on average?",
        f"{percent(alone.utilisation)}: it takes {_time(alone.total)}, where the roofline would allow "
        f"{_time(alone.least)}. One sample gives most kernels too little work.",
        answer=100 * alone.utilisation,
        unit="%",
        tolerance=0.25,
        most=100.0,
    )


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    return _set(_network(draw), _device(draw))


def questions(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    factories = (_launch, _batch, _limit, _compile, _newer, _average, _operations, _software)
    return tuple(make(draw) for make in factories)


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design task: which changes to make in a given number of weeks."""
    network, weeks, limit = draw.pick("task", _TASKS)
    return (
        Design(
            "fixes",
            f"A service runs {NETWORKS[network]} on T4s, one sample at a time, in FP32, with PyTorch as it is. Your "
            f"team has {weeks} weeks. Each change takes some of them; the batch takes none, but users wait for its end "
            f"and accept {limit:g} ms. INT8 needs the compiler. Choose the changes that make the time of a sample as "
            "short as possible.",
            (
                Knob("software", "Software", tuple((_weeks(name, w), name) for name, w in _COMPILED.items())),
                Knob("precision", "Number format", tuple((_weeks(p.upper(), w), p) for p, w in _FORMATS.items())),
                Knob("device", "Device", tuple((_weeks(_name(d), w), d) for d, w in _MOVING.items())),
                Knob("batch", "Batch", tuple((str(batch), batch) for batch in _TRIED)),
            ),
            partial(_changed, network, weeks, limit),
        ),
    )


def _weeks(name: str, weeks: int) -> str:
    return f"{name}, {weeks} week{'' if weeks == 1 else 's'}" if weeks else f"{name}, as it is"


def _changed(network: str, most: int, limit: float, software: str, precision: str, device: str, batch: int) -> Built:
    weeks = _COMPILED[software] + _FORMATS[precision] + _MOVING[device]
    layers = reading(network, device, batch, precision, software)
    each, whole = layers.total / batch, 1e3 * layers.total
    summary = f"A batch takes {number(whole)} ms, a sample {_time(each)}, after {weeks} weeks."
    faults = (
        (precision == "int8" and software != "compiled", "INT8 needs the compiler."),
        (weeks > most, f"There are {most} weeks."),
        (whole > limit, f"Users accept {limit:g} ms."),
    )
    return Built(each, summary, next((text for broken, text in faults if broken), ""))


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    network, device, batch = _network(draw), _device(draw), draw.pick("batch", _BATCHES)
    alone, many = reading(network, device, 1), reading(network, device, batch)
    eager = reading(network, device, 1, software="eager")
    name = NETWORKS[network]
    return WrapUp(
        (
            Finding(
                f"{name} at batch 1 reaches {percent(alone.utilisation)} of the peak of the {_name(device)}; at batch "
                f"{batch} it reaches {percent(many.utilisation)}.",
                f"from mlsys import analyze\nanalyze({device!r}, {network!r}, batch=1, precision='fp16').utilisation",
            ),
            Finding(
                f"Compiling it makes it {times(eager.total / alone.total)} as fast at batch 1, since fewer kernels are "
                "launched and fewer values go through memory.",
            ),
            Finding(
                f"At batch {batch} the first group to fix is {many.groups[0].label}: in zero time it would make the "
                f"network {times(many.total / (many.total - many.groups[0].seconds))} as fast, and no change to it "
                "gains more.",
            ),
        ),
        (
            "Read the layers, not the average: each of them has a limit of its own.",
            "Fix the group with the most time first, and compute the most that it can gain before you start.",
            "At small batches a faster chip launches kernels no faster; fusion and a larger batch do more.",
            "All times here are estimates with a range; measure before you buy.",
        ),
    )


# --- what is drawn ------------------------------------------------------------------------


def _network(draw: Draw) -> str:
    return draw.pick("network", _NETWORKS)


def _device(draw: Draw) -> str:
    return draw.pick("device", DEVICES)


def _name(device: str) -> str:
    return device_name(Hardware[device])


def _set(
    network: str, device: str, batch: int = 1, precision: str = "fp16", software: str = "compiled"
) -> dict[str, object]:
    return {"network": network, "device": device, "batch": batch, "precision": precision, "software": software}


def _time(seconds: float) -> str:
    return f"{number(1e3 * seconds)} ms" if seconds >= 1e-3 else f"{number(1e6 * seconds)} µs"


# --- questions ----------------------------------------------------------------------------


def _launch(draw: Draw) -> Question:
    device = draw.pick("launch", DEVICES)
    layers = reading(_SMALL, device, 1)
    share = min(100.0, 100 * layers.share("launch"))
    return NumberQuestion(
        "launch",
        f"Set {NETWORKS[_SMALL]}, batch 1, the {_name(device)}, FP16, compiled. Which part of its time is limited by "
        "launches?",
        f"{number(share)} % of {_time(layers.total)}: a kernel of one sample is over before the next one is launched.",
        setting=_set(_SMALL, device),
        answer=share,
        unit="%",
        tolerance=0.02,
        most=100.0,
        hint="The sentence below the picture names the parts of the time by what limits them.",
        slips=((100 - share, "That is the part that something else limits."),),
    )


def _batch(draw: Draw) -> Question:
    network, device, batch = _network(draw), _device(draw), draw.pick("batch", _BATCHES)
    alone, many = reading(network, device, 1), reading(network, device, batch)
    gain = alone.total / (many.total / batch)
    return NumberQuestion(
        "batch",
        f"{NETWORKS[network]} on the {_name(device)}, FP16, compiled: how many times as many samples a second does "
        f"batch {batch} give, compared with batch 1?",
        f"{times(gain)}: a sample takes {_time(alone.total)} alone and {_time(many.total / batch)} in the batch. "
        "Weights and launches are shared; the arithmetic is not.",
        setting=_set(network, device, batch),
        answer=gain,
        unit="×",
        tolerance=0.03,
        hint="Read the time of a sample at both batches, below the picture, and divide the first by the second.",
        slips=(
            (float(batch), "That would need a batch to take no longer than a single sample."),
            (alone.total / many.total, "You divided the times of the batches. How long does a sample take?"),
        ),
    )


def _limit(draw: Draw) -> Question:
    device, batch = draw.pick("limit device", DEVICES), draw.pick("limit batch", _BATCHES[:3])
    layers = reading(_SMALL, device, batch)
    first = layers.groups[0]
    share = first.seconds / layers.total
    return NumberQuestion(
        "limit",
        f"Set {NETWORKS[_SMALL]}, batch {batch}, the {_name(device)}, FP16, compiled. How many times as fast could the "
        "network become at most, if you only change the kernels of its largest group?",
        f"1 / (1 − {number(share)}) = {times(1 / (1 - share))}: the group is {first.label}, and Amdahl's law holds for "
        "it as for any other part.",
        setting=_set(_SMALL, device, batch),
        answer=1 / (1 - share),
        unit="×",
        tolerance=0.02,
        least=1.0,
        hint="At most means that the group takes no time at all. Its share of the time is below the picture.",
        slips=((1 / share, "That would be so if everything else took no time."),),
    )


def _compile(draw: Draw) -> Question:
    network, device, batch = _network(draw), _device(draw), draw.pick("compile", _BATCHES)
    eager, compiled = reading(network, device, batch, software="eager"), reading(network, device, batch)
    gain = eager.total / compiled.total
    kernels = round(eager.count.sum()), round(compiled.count.sum())
    return NumberQuestion(
        "compile",
        f"{NETWORKS[network]} at batch {batch} on the {_name(device)}, FP16: how many times as fast is it compiled, "
        "compared with eager?",
        f"{times(gain)}: {_time(eager.total)} become {_time(compiled.total)}, since {kernels[0]} kernels become "
        f"{kernels[1]}, and values between them stay on the chip.",
        setting=_set(network, device, batch, software="eager"),
        answer=gain,
        unit="×",
        tolerance=0.03,
        hint="Set the software to either value, and divide the time of eager by the other.",
        slips=((1 / gain, "You divided the other way round."),),
    )


def _newer(draw: Draw) -> Question:
    network = draw.pick("newer", _WIDER)
    old, new = (reading(network, device, 1) for device in ("A100_80GB", "H100_SXM"))
    gain, peaks = old.total / new.total, new.peak / old.peak
    return ChoiceQuestion(
        "newer",
        f"The FP16 peak of the H100 is {times(peaks)} that of the A100. How much faster does it run "
        f"{NETWORKS[network]} at batch 1, compiled?",
        f"{times(gain)}: {_time(old.total)} become {_time(new.total)}, and {percent(new.share('launch'))} of that is "
        "limited by launches, which a higher peak does not shorten.",
        setting=_set(network, "H100_SXM"),
        choices=tuple(Choice(text, _NEWER_HINTS[text], low <= gain < high) for text, low, high in _BANDS),
    )


_NEWER_HINTS = {
    _BANDS[0][0]: "Set both devices at batch 1, and divide the two times.",
    _BANDS[1][0]: "Compare the times, not the rates. What limits most kernels at batch 1?",
    _BANDS[2][0]: "So much would need most of the time to be arithmetic. Look at the colours of the points.",
}


def _above(layers: LayerTimes) -> tuple[int, int]:
    """Return how many kernels lie above the ridge, and how many there are."""
    above = layers.flops / layers.moved > layers.ridge
    return round(np.sum(layers.count[above])), round(layers.count.sum())


def _average(draw: Draw) -> Question:
    batch = draw.pick("average", (22, 36, 44))
    layers = reading("resnet50", "H100_SXM", batch)
    above, every = _above(layers)
    hidden = layers.intensity < layers.ridge and above > 0
    return ChoiceQuestion(
        "average",
        f"A text says: “ResNet-50 at batch {batch}, compiled, in FP16 does {number(layers.intensity)} FLOP per byte, "
        f"and the ridge of the H100 lies at {number(layers.ridge)}. So all of its layers are memory-bound.” What is "
        "wrong?",
        f"{above} of its {every} kernels lie above the ridge. An average of work over bytes says nothing about one "
        "of them.",
        in_app=False,
        choices=(
            Choice("An average hides layers above the ridge", right=hidden),
            Choice("The ridge is that of the sparse peak", "Divide the dense peak by the bandwidth yourself.",
                   layers.ridge != layers.peak / layers.bandwidth),
            Choice(NOTHING, "Set it in the picture. Are there points to the right of the bend?", not hidden),
        ),
    )  # fmt: skip


def _operations(draw: Draw) -> Question:
    device, batch = draw.pick("operations", DEVICES), draw.pick("operations batch", _BATCHES)
    large, small = reading("resnet50", device, batch), reading(_SMALL, device, batch)
    fewer = float(large.count @ large.flops) / float(small.count @ small.flops)
    faster = large.total / small.total
    return ChoiceQuestion(
        "operations",
        f"A text says: “MobileNetV2 has {number(fewer)} times fewer operations than ResNet-50. So at batch {batch} on "
        f"the {_name(device)}, compiled, in FP16, it is {number(fewer)} times as fast.” What is wrong?",
        f"It is {times(faster)} as fast. Its kernels do few operations per byte, and it has as many of them: "
        f"{round(small.count.sum())} against {round(large.count.sum())}.",
        in_app=False,
        choices=(
            Choice("Time follows bytes and launches as well", right=faster < 0.9 * fewer),
            Choice("It counts one multiply-accumulate as one operation", "Both networks are counted alike. What "
                   "else takes time?"),
            Choice(NOTHING, "Set both networks and divide the two times.", faster >= 0.9 * fewer),
        ),
    )  # fmt: skip


def _software(draw: Draw) -> Question:
    """Return the question about a correct statement."""
    network = draw.pick("software", _NETWORKS)
    eager, compiled = reading(network, "A100_80GB", 1, software="eager"), reading(network, "A100_80GB", 1)
    newer = reading(network, "H100_SXM", 1, software="eager")
    by_software, by_device = eager.total / compiled.total, eager.total / newer.total
    return ChoiceQuestion(
        "software",
        f"A text says: “{NETWORKS[network]} runs at batch 1 in FP16, eager, on an A100. Compiling it there gains more "
        "than moving it to an H100 as it is.” What is wrong?",
        f"Compiling gains {times(by_software)}, the H100 {times(by_device)}: {_time(eager.total)} become "
        f"{_time(compiled.total)} or {_time(newer.total)}.",
        in_app=False,
        choices=(
            Choice("The newer device gains more", "Set all three cases in the picture and compare the times.",
                   by_device > by_software),
            Choice("At batch 1 neither changes the time", "Is the time the same in any two of the three cases?"),
            Choice(NOTHING, right=by_software > by_device),
        ),
    )  # fmt: skip
