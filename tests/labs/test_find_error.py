"""The claims of the lab "find the error": values by hand from their own words, and a part of the score for a part."""

import re

import pytest

from mlsys import labs
from mlsys.labs.claimed import KINDS, ClaimQuestion, Verdict
from mlsys.labs.questions import NOTHING
from mlsys.labs.slip_claims import RIGHT
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
    for student in CLASS:
        claim = next(each for each in labs.questions(LAB, student) if each.id == name)
        text = claim.text.replace("INT8, ", "").replace("HBM2", "")
        by_hand = BY_HAND[name](machine(text), *numbers(text))
        assert claim.answer == pytest.approx(by_hand, rel=5e-3), claim.text
        assert (abs(claim.stated / by_hand - 1) < 0.01) == (not claim.slip), claim.text


def test_a_class_meets_every_slip_and_each_claim_both_ways():
    made, right = set(), set()
    for student in CLASS:
        drawn = labs.questions(LAB, student)
        assert sum(not each.slip for each in drawn) == RIGHT and len(drawn) == 20
        made |= {each.slip for each in drawn if each.slip}
        right |= {each.id for each in drawn if not each.slip}
    assert made == set(KINDS) and right == {each.id for each in drawn}


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
