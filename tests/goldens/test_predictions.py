"""No fact behind an estimate is decoration: each one that an estimate reads moves what is locked of its machine.

Errors over thousands of rows, as the page of the validation claims them, lean on a thousand facts and feel none of
them: a median stays where it is when one row moves. So they name none, and each is tried here, on the rows of the
machine that reads it: by one percent, and, since a limit that does not hold feels nothing of that, many times up and
down. What then moves no sum of logarithms in `predictions.txt` could be wrong for ever and nobody would notice.

A run of the tests draws some machines; `make mutants` tries all, in a minute.
"""

import functools
from typing import Any

import pytest
import yaml

from goldens import GOLDENS, machines, prediction_line
from mlsys import Hardware
from mlsys.calibration.case import Inexpressible
from mlsys.provenance import perturbed, recording
from mlsys_evidence.ingest.reading import twin_of
from sampled import drawn

LOCKED = {
    machine: told
    for machine, _, told in (
        line.partition(" = ") for line in (GOLDENS / "predictions.txt").read_text("utf-8").splitlines()
    )
}
SILENT: dict[str, str] = {
    fact: reason
    for reason, facts in yaml.safe_load((GOLDENS / "silent_facts.yaml").read_text("utf-8")).items()
    for fact in facts
}
"""Facts that no change moves an estimate of any measured row with, with the reason."""

MOST_SILENT = 33
A_LITTLE = (1.01, 0.99)
PUSHES = (100, 0.01, 10, 0.1, 1000, 0.001, 2, 0.5, 10_000)

pytestmark = pytest.mark.exhaustive


@functools.cache
def rows_of() -> dict[str, tuple[Any, ...]]:
    return machines()


def line(machine: str) -> str:
    return prediction_line(machine, rows_of()[machine])


def changed(machine: str, fact: str, factor: float) -> str:
    with perturbed(fact, factor):
        try:
            return line(machine)
        except ValueError:
            return ""  # refused, which is noticed too


def felt(machine: str, fact: str) -> bool:
    return any(changed(machine, fact, factor) != f"{machine} = {LOCKED[machine]}" for factor in A_LITTLE + PUSHES)


def twin(machine: str) -> str:
    """Return the id of the twin of a machine, of which sources may know several names; empty where it has none."""
    try:
        return twin_of(machine)[0].id
    except Inexpressible:
        return ""


def namesakes(fact: str) -> list[str]:
    """Return the machines whose twin a fact is of; what a chip's processor computes, rows of the chip may read."""
    of = fact.partition("/")[0]
    chip = Hardware[of].name.partition(",")[0] if of.endswith("_CPU") else None
    return [name for name in LOCKED if twin(name) == of or (chip is not None and name.startswith(chip))]


def test_every_machine_is_locked() -> None:
    assert rows_of().keys() == LOCKED.keys(), "`make goldens` writes them anew"


@pytest.mark.parametrize("machine", drawn(sorted(LOCKED), 25, "machines with predictions"))
def test_what_is_said_of_a_machine_is_locked_and_feels_each_fact_that_it_reads(machine: str) -> None:
    with recording() as seen:
        told = line(machine)
    advice = "if it should move: `make goldens`, and say in the changelog, under Numbers, why"
    assert told == f"{machine} = {LOCKED[machine]}", advice
    asked = [fact for fact in seen if fact not in SILENT and not felt(machine, fact)]
    silent = [fact for fact in asked if not any(felt(other, fact) for other in namesakes(fact))]
    assert silent == [], f"{machine} is answered alike whatever these are"


@pytest.mark.parametrize("fact", drawn(sorted(SILENT), 3, "silent facts"))
def test_a_silent_fact_is_silent(fact: str) -> None:
    """Else it is no longer one, and leaves `silent_facts.yaml`."""
    with recording() as seen:
        for machine in namesakes(fact):
            line(machine)
    assert fact in seen, f"no estimate reads {fact}: it needs no excuse"
    assert not any(felt(machine, fact) for machine in namesakes(fact)), f"{fact} is felt: it needs no excuse"


def test_silent_facts_are_few_and_each_has_its_reason() -> None:
    assert len(SILENT) <= MOST_SILENT
    assert all(len(reason) > 20 for reason in SILENT.values())
