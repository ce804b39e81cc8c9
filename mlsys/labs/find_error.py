"""The lab "find the error". Every right value, and every wrong one, is computed here."""

import itertools

from mlsys import Hardware
from mlsys.labs.claimed import KINDS
from mlsys.labs.design import Design
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NumberQuestion, Question
from mlsys.labs.report_checks import report_design
from mlsys.labs.slip_claims import CLAIMS, RIGHT, claims
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.models.slips import plan_slips
from mlsys.viz.views.view import number, times

KEPT: tuple[float, ...] = (0.33, 0.38, 0.42, 0.47)
"""Shares of the peak that the plan of a prediction keeps up."""
DRAWN_FROM = CLAIMS
"""Names of the claims of which each student gets some."""


def device_of(draw: Draw) -> str:
    """Return the machine of the prediction."""
    return draw.pick("device", ("H200", "B200", "MI300X"))


def kept_of(draw: Draw) -> float:
    """Return the share of the dense peak that the plan of the prediction keeps up."""
    return draw.pick("kept", KEPT)


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    name, share = device_of(draw), kept_of(draw)
    steps = plan_slips(Hardware.Cloud[name], share)
    factors = " · ".join(number(after.factor / before.factor) for before, after in itertools.pairwise(steps))
    return NumberQuestion(
        "prediction",
        f"A plan divides the MACs of a training run by the largest rate on the data sheet of the {name}, sparse FP8. "
        f"The "
        f"run computes in dense BF16 and keeps up {number(100 * share)}% of that peak. How many times as long as "
        f"planned "
        "does it take?",
        f"{factors} = {number(steps[-1].factor)}: two operations for each MAC, the dense peak for the sparse one, "
        f"BF16 for "
        "FP8, and what is kept up for the peak. Slips multiply.",
        answer=steps[-1].factor,
        unit="×",
        tolerance=0.05,
        least=1.0,
        most=10000.0,
        hint="Go from the planned rate to the kept one, one step at a time.",
    )


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    return {"device": device_of(draw), "what": "plan", "precision": "bf16", "kept": kept_of(draw)}


def questions(draw: Draw) -> tuple[Question, ...]:
    """Return the claims of the lab."""
    return claims(draw)


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design task of the lab: the cheapest checks that expose every slip of a report."""
    return (report_design(draw),)


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    drawn = claims(draw)
    wrong = [claim for claim in drawn if claim.slip]
    off = [max(claim.stated / claim.answer, claim.answer / claim.stated) for claim in wrong]
    twice = sum(abs(factor - 2) < 0.05 for factor in off)
    name, share = device_of(draw), kept_of(draw)
    return WrapUp(
        (
            Finding(
                f"{len(wrong)} of your {len(drawn)} claims were wrong, by {len({claim.slip for claim in wrong})} of "
                f"the "
                f"{len(KINDS)} kinds of slips; {RIGHT} were right."
            ),
            Finding(
                f"{twice} of them were off by two, the factor that sparse peaks, both directions and MACs share; "
                f"the largest "
                f"by {times(max(off))}, the smallest by {times(min(off))}."
            ),
            Finding(
                f"Four slips in one plan for the {name} multiplied to "
                f"{times(plan_slips(Hardware.Cloud[name], share)[-1].factor)}.",
                "from mlsys import Hardware\nfrom mlsys.models.slips import plan_slips\n"
                f"plan_slips(Hardware.Cloud[{name!r}], {share})[-1].factor",
            ),
        ),
        (
            "A check sees the slips that change its number: one at the end of a chain sees many, one of what the text "
            "itself says sees none that was carried on.",
            "Ask of every number: which peak, which unit, which machine, which state, a share of what?",
            "A factor of two, of eight, of a thousand, or of 1.07 names its slip.",
            "Some numbers that look wrong are right; compute before you call them so.",
        ),
    )
