"""Every fact that an estimate reads changes an estimate of the machine that it describes.

Medians over thousands of rows do not feel one fact. So each fact is tried on the rows of the machine that reads it: by
one percent, and, since a limit that does not bind feels nothing of that, by large factors up and down. A fact that
changes no estimate could be wrong without anybody noticing; `silent_facts.yaml` lists those, with the reason.

A run of the tests draws some machines; `make mutants` tries all.
"""

import functools
from pathlib import Path
from typing import Any

import pytest
import yaml

from measured_machines import machines, signature
from mlsys import Hardware
from mlsys.calibration.case import Inexpressible
from mlsys.provenance import perturbed, recording
from mlsys_evidence.ingest.reading import device_of
from sampled import drawn

SILENT: dict[str, str] = {
    fact: reason
    for reason, facts in yaml.safe_load(Path(__file__).with_name("silent_facts.yaml").read_text("utf-8")).items()
    for fact in facts
}
"""Facts that change no estimate of a measured row, with the reason."""

MOST_SILENT = 33
A_LITTLE = (1.01, 0.99)
PUSHES = (100, 0.01, 10, 0.1, 1000, 0.001, 2, 0.5, 10_000)

pytestmark = pytest.mark.exhaustive


@functools.cache
def rows_of() -> dict[str, tuple[Any, ...]]:
    return machines()


@functools.cache
def predicted(machine: str) -> str:
    return signature(machine, rows_of()[machine])


def changed(machine: str, fact: str, factor: float) -> str:
    with perturbed(fact, factor):
        try:
            return signature(machine, rows_of()[machine])
        except ValueError:
            return ""  # refused, which is noticed too


def felt(machine: str, fact: str) -> bool:
    return any(changed(machine, fact, factor) != predicted(machine) for factor in A_LITTLE + PUSHES)


def twin(machine: str) -> str:
    """Return the id of the twin of a machine, of which sources may know several names; empty where it has none."""
    try:
        return device_of(machine)[0].id
    except Inexpressible:
        return ""


def namesakes(fact: str) -> list[str]:
    """Return the machines whose twin a fact is of; what a chip's processor computes, rows of the chip may read."""
    of = fact.partition("/")[0]
    chip = Hardware[of].name.partition(",")[0] if of.endswith("_CPU") else None
    return [name for name in rows_of() if twin(name) == of or (chip is not None and name.startswith(chip))]


@pytest.mark.parametrize("machine", drawn(sorted(rows_of()), 25, "machines with predictions"))
def test_the_estimates_of_a_machine_feel_each_fact_that_they_read(machine: str) -> None:
    with recording() as seen:
        signature(machine, rows_of()[machine])
    unfelt = [fact for fact in seen if fact not in SILENT and not felt(machine, fact)]
    silent = [fact for fact in unfelt if not any(felt(other, fact) for other in namesakes(fact))]
    assert silent == [], f"{machine} has the same estimates whatever these are"


@pytest.mark.parametrize("fact", drawn(sorted(SILENT), 3, "silent facts"))
def test_a_silent_fact_is_silent(fact: str) -> None:
    """Else it is no longer one, and leaves `silent_facts.yaml`."""
    with recording() as seen:
        for machine in namesakes(fact):
            signature(machine, rows_of()[machine])
    assert fact in seen, f"no estimate reads {fact}: it needs no excuse"
    assert not any(felt(machine, fact) for machine in namesakes(fact)), f"{fact} is felt: it needs no excuse"


def test_silent_facts_are_few_and_each_has_its_reason() -> None:
    assert len(SILENT) <= MOST_SILENT
    assert all(len(reason) > 20 for reason in SILENT.values())
