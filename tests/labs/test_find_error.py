"""The claims of the lab "find the error": values by hand from their own words, and a part of the score for a part."""

import re

import pytest

from mlsys import labs
from mlsys.labs.claimed import KINDS, ClaimQuestion, Verdict
from mlsys.labs.questions import NOTHING
from mlsys.labs.slip_claims import CLAIMS, JUDGED, RIGHT
from mlsys.labs.workbench import FORMULAS

LAB = "13-find-the-error"
CLASS = [f"s{number:04}" for number in range(1001, 1031)]
NVLINK = {"A100": 300, "H200": 450, "B200": 900}  # GB/s, one direction, as the vendor's tables give them
BANDWIDTH = {"V100": 900, "A100": 2039, "H200": 4800, "B200": 7672, "MI300X": 5300}  # GB/s
DENSE_BF16 = {"A100": 312, "H200": 989.4}  # TFLOP/s
BY_HAND = {  # from the machine and the numbers of a claim, in the order of its words
    "nvlink": lambda name, size, _: 1e3 * size / NVLINK[name],
    "weights": lambda _, billions, __: 2 * billions,
    "convolution": lambda _, e, f, inside, out, h, w, __: 2 * e * f * inside * out * h * w / 1e6,
    "port": lambda _, size, bits, __: 8 * size / bits,
    "sweep": lambda name, size, _: size / BANDWIDTH[name],
    "part": lambda _, share, gain, __: 1 / (1 - share / 100 + share / 100 / gain),
    "shorter": lambda _, before, after, __: 100 * (before - after) / before,
    "one-user": lambda name, users, billions, _: BANDWIDTH[name] / (2 * billions),
    "day": lambda _, most, share, __: 24 * most * share / 100,
    "cache": lambda _, first, short, __, long: first * long / short,
    "resolution": lambda _, large, small, __: (large / small) ** 2,
    "training": lambda name, billions, tokens, chips, share, _: (
        6 * billions * tokens * 1e18 / (chips * share / 100 * DENSE_BF16[name] * 1e12) / 86400
    ),
    "array": lambda _, edge, __, clock, ___: 2 * edge**2 * clock / 1e3,
    "generation": lambda name, _: BANDWIDTH[name],
    "small-weights": lambda _, millions, __: millions,
}


def numbers(text):
    """Return the numbers of a claim, without those in names of machines and formats."""
    return [float(each.replace(",", "")) for each in re.findall(r"(?<![A-Za-z\d.,])\d[\d,]*\.?\d*(?=[\s%×.,:])", text)]


def machine(text):
    found = re.search(r"V100|A100|H200|B200|MI300X", text)
    return found[0] if found else ""


@pytest.mark.parametrize("name", BY_HAND)
def test_the_right_value_follows_from_the_words(name):
    met = 0
    for student in CLASS:
        claim = next((each for each in labs.questions(LAB, student) if each.id == name), None)
        if claim is None:  # not drawn for this student
            continue
        met += 1
        text = claim.text.replace("INT8, ", "").replace("HBM2", "")
        by_hand = BY_HAND[name](machine(text), *numbers(text))
        assert claim.answer == pytest.approx(by_hand, rel=5e-3), claim.text
        assert (abs(claim.stated / by_hand - 1) < 0.01) == (not claim.slip), claim.text
    assert met >= 5


def test_a_class_meets_every_slip_and_each_claim_both_ways():
    made, right = set(), set()
    for student in CLASS:
        drawn = labs.questions(LAB, student)
        assert sum(not each.slip for each in drawn) == RIGHT and len(drawn) == JUDGED
        made |= {each.slip for each in drawn if each.slip}
        right |= {each.id for each in drawn if not each.slip}
    assert made == set(KINDS) and right == set(CLAIMS)


def test_a_part_of_the_answer_earns_a_part_of_the_score():
    link = ClaimQuestion("c", "?", "So.", stated=900, answer=450, unit="GB/s", slip=KINDS[4], hint="Which way?")
    for kind, value, score in (
        (4, 450, 1.0),
        (4, 900, 0.6),
        (0, 450, 0.6),
        (0, 900, 0.2),
        (4, 455, 1.0),
        (4, 470, 0.6),
    ):
        mark = link.mark(Verdict(KINDS[kind], value).text())
        assert (mark.score, mark.correct) == (score, score == 1), (kind, value)
    assert link.mark(NOTHING).score == 0 and "450" not in link.mark(NOTHING).feedback
    sound = ClaimQuestion("c", "?", "So.", stated=450, answer=450, unit="GB/s", hint="Which way?")
    assert sound.mark(NOTHING).score == 1 and sound.mark(Verdict(KINDS[4], 450).text()).score == 0


@pytest.mark.parametrize("given", [None, 4, "", "no kind | 4", f"{KINDS[0]}", f"{KINDS[0]} | nan", f"{KINDS[0]} | -1"])
def test_what_is_no_verdict_scores_nothing(given):
    claim = labs.questions(LAB, "ada")[0]
    assert not claim.accepts(given) and claim.mark(given).score == 0


def test_a_claim_becomes_two_questions_of_a_bank():
    claim = next(each for each in labs.questions(LAB, "ada") if each.slip)
    kind, value = claim.parts()
    assert kind.mark(claim.slip).correct and value.mark(claim.answer).correct and not value.mark(claim.stated).correct


def test_the_workbench_computes_what_is_known():
    known = {  # published or by hand: GPT-3's weights; a layer of ResNet-50; Llama 3's cache of one token, 128 KiB
        "weights": (("175", "16"), "350 GB"), "convolution": (("64", "64", "56", "3"), "116 million MACs"),
        "cache": (("32", "8", "128", "1000", "2"), "0.131 GB"), "amdahl": (("95", "1e9"), "20.0 times"),
        "array": (("256", "0.7"), "91.8 TOP/s"), "token": (("14", "3350"), "239 token/s"),
        "transfer": (("1", "4"), "250 ms"), "power": (("4", "1"), "32 W"),
        "product": (("1", "1000", "1000"), "2 MFLOP"),
        "training": (("175", "300", "1024", "140"), "25.4 days"),
    }  # fmt: skip
    assert set(known) == set(FORMULAS)
    for name, (typed, message) in known.items():
        assert message in FORMULAS[name].answer(*typed), (name, FORMULAS[name].answer(*typed))


# --- the checks of a report -----------------------------------------------------------

FLOPS, TERA = 6, 1e12
CHIP = {  # dense and sparse BF16, TF32 in TFLOP/s; GB/s, and those of the generation before
    "A100": (312, 624, 156, 2039, 900), "H200": (989.4, 1978.9, 494.7, 4800, 3350),
    "B200": (2250, 4500, 1125, 7672, 4800),
}  # fmt: skip
WORDS = {
    "sparse peak": "sparse", "peak of TF32": "tf32", "generation before": "machine", "ridge point in TF32": "ridge",
    "in GiB": "binary", "in Gbit": "bits", "all 24 users": "batch", "by a thousand": "prefix",
    "three operations": "macs", "at the full peak": "kept", "hours of one chip": "one",
}  # fmt: skip


def by_hand(slip, device, billions, tokens, chips, kept):
    """Return the seven numbers of a report in plain arithmetic, with a slip carried on."""
    dense, sparse, tf32, rate, before = CHIP[device]
    peak = {"sparse": sparse, "tf32": tf32}.get(slip, dense)
    bandwidth = before if slip == "machine" else rate
    ridge = 1e3 * (tf32 if slip == "ridge" else peak) / bandwidth
    weights = 2 * billions * {"binary": 1e9 / 2**30, "bits": 8}.get(slip, 1)
    token = bandwidth / weights * {"batch": 24, "prefix": 1e-3}.get(slip, 1)
    seconds = (
        (3 if slip == "macs" else FLOPS)
        * billions
        * tokens
        * 1e18
        / (chips * (1 if slip == "kept" else kept) * peak * TERA)
    )
    return {"peak": peak, "bandwidth": bandwidth, "ridge": ridge, "weights": weights, "rate": token,
            "days": seconds / 86400, "hours": seconds / 3600 * (1 if slip == "one" else chips)}  # fmt: skip


def seen(checks, made, right, chips):
    """Return whether any of the checks finds a number of a report wrong."""
    for name, way in checks.items():
        expected, within = right[name], 1.02
        if way == "own":
            expected = {"ridge": 1e3 * made["peak"] / made["bandwidth"], "hours": 24 * chips * made["days"]}[name]
        if way == "rough":
            within = 3
        if way != "skip" and not 1 / within <= made[name] / expected <= within:
            return True
    return False


@pytest.mark.parametrize("student", CLASS[:12])
def test_checks_expose_what_arithmetic_by_hand_says(student):
    [task] = labs.designs(LAB, student)
    device = re.search(r"Peak of the (\w+)", task.text)[1]
    billions, tokens, chips, kept = (
        float(re.search(pattern, task.text)[1])
        for pattern in (r"with ([\d.]+) billion", r"on (\d+) billion", r"with (\d+) chips", r"at (\d+)% of their")
    )
    plan = device, billions, tokens, chips, kept / 100
    slips = [slip for words, slip in WORDS.items() if words in task.text.partition("each week")[2]]
    assert len(slips) == 7
    right, best = by_hand("", *plan), 1e9
    for value, unit in ((right["days"], "days"), (right["hours"], "")):
        assert any(float(each.replace(",", "")) == pytest.approx(value, rel=6e-3)
                   for each in re.findall(rf": ([\d,.]*\d) ?{unit}", task.text)), (value, unit)  # fmt: skip
    for choice in task.choices():
        outcome = task.score(choice)
        assert outcome.meets == all(seen(choice, by_hand(slip, *plan), right, chips) for slip in slips), choice
        minutes = sum(
            int(re.match(r"(\d+) min: ", label)[1])
            for knob in task.knobs for label, value in knob.options if value == choice[knob.id] != "skip"
        )  # fmt: skip
        if outcome.meets:
            best = min(best, minutes)
    assert task.best == best


def test_what_passes_unseen_is_named():
    [task] = labs.designs(LAB, "ada")
    nothing = task.score(dict.fromkeys((knob.id for knob in task.knobs), "skip"))
    assert not nothing.meets and nothing.feedback.count(";") == 6 and "expose 0 of the 7" in nothing.feedback
