"""A few of the corpus of bad inputs, drawn by the seed of the run, and the tools that judge them; `make torture` runs all."""

import sys
from pathlib import Path

import click
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from torture_cases import Case, corpus
from torture_run import run
from torture_walk import commands

from sampled import drawn

FEW = 60


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return corpus()


def test_every_command_and_every_option_has_a_bad_case(cases: list[Case]) -> None:
    """Named by hand in the grammars or found by the walk; an option that the walk cannot fill would fail there."""
    lacking = []
    for words, command in commands():
        own = [case for case in cases if case.words[: len(words)] == words]
        lacking += [] if own else [" ".join(words)]
        for option in (param for param in command.params if isinstance(param, click.Option)):
            given = {word for case in own for word in case.words}
            lacking += [
                f"{' '.join(words)} {name}" for name in (*option.opts, *option.secondary_opts) if name not in given
            ]
            if not option.is_flag:  # beside the one that lacks its value
                values = [case for case in own if option.opts[-1] in case.words[:-1]]
                lacking += [] if len(values) >= 2 else [f"{' '.join(words)} {option.opts[-1]} with a bad value"]
    assert not lacking
    assert len(cases) >= 1500 and sum(case.group == "python" for case in cases) > 2000


def test_every_option_that_is_a_number_reads_it_as_the_package_does() -> None:
    """``int`` and ``float`` would read 1_0 as 10, other digits than ours, and nan."""
    loose = (click.types.IntParamType, click.types.FloatParamType, click.types.IntRange, click.types.FloatRange)
    plain = [
        f"{' '.join(words)} {param.name}"
        for words, command in commands()
        for param in command.params
        if type(param.type) in loose
    ]
    assert not plain


def test_a_few_bad_inputs_are_refused_in_one_line(cases: list[Case]) -> None:
    chosen = drawn(cases, FEW, "torture")
    good = Case(id="a right question", words=("flops", "lenet5"))
    crash = Case(id="a crash", call="1 / 0")
    verdicts, peak = run([good, crash, *chosen])
    accepted, crashed = verdicts.pop(0), verdicts.pop(0)
    assert "wrongly accepted" in accepted.fault, "the judge lets everything pass"
    assert "ZeroDivisionError" in crashed.fault, "the judge lets everything pass"
    assert [f"{verdict.case.id!r}: {verdict.fault}" for verdict in verdicts if verdict.fault] == []
    assert peak < 2_000_000_000
