"""Captures of a serial line: every malformed line is told by its number, and noise never becomes a number."""

import random

import pytest

from mlsys.errors import LogFileError
from mlsys.measure.firmware.uart import COLUMNS, read_capture, samples_of

GOOD = [
    "m-init-done", "m-ready", "m-clock-[1000]", ",".join(COLUMNS),
    "0,total,4294967290,4,,,10.000,0.5", "0,a,4294967290,4294967295,2,10,5.000,", "0,b,4294967295,4,,,5.000,",
    "1,total,100,112,,,12.000,0.6", "1,a,100,106,3,10,6.000,", "1,b,106,112,,,6.000,", "m-trace-done-6", "m-ready",
]  # fmt: skip


def test_a_capture_by_hand() -> None:
    samples, layers = samples_of(read_capture(GOOD), 1000)
    assert [sample.latency_ms for sample in samples] == [10.0, 12.0]
    assert [sample.energy_mj for sample in samples] == [0.5, 0.6]
    assert [sample.counters["since_start"] for sample in samples] == [0, 106]  # 6 to the turn, and 100 after it
    assert layers[0].counters == {"cycles": 5.0, "misses": 2, "accesses": 10}
    assert layers[1].counters["misses"] is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("0,total,1,2,,", "expected 8 cells, got 6"),
        ("0,total,-1,2,,,3.000,", "start: must be a number >= 0, got '-1'"),
        ("0,total,1,nan,,,1.000,", "end: must be a number"),
        ("0,total,1,4294967296,,,1.000,", "end: must fit into 32 bits"),
        ("0,,1,11,,,10.000,", "layer: must not be empty"),
        ("0,total,1,11,,,11.000,", "ms: 11 does not match the 10 ticks"),
        ("0,a,1,11,5,4,10.000,", "misses: 5 exceed 4 accesses"),
        ("garbage \x00\x7f", "expected 8 cells, got 1"),
    ],
)
def test_malformed_lines(line: str, words: str) -> None:
    with pytest.raises(LogFileError) as result:
        read_capture([*GOOD[:6], line, *GOOD[6:]])
    assert "line 7: " in str(result.value) and words in str(result.value)
    left = read_capture([*GOOD[:10], line, "m-ready"], skip_malformed=True)
    assert [number for number, _ in left.faults] == [11] and len(left.rows) == 6


def test_all_malformed_lines_in_one_pass() -> None:
    with pytest.raises(LogFileError) as result:
        read_capture([*GOOD[:5], "x", *GOOD[5:8], "y", *GOOD[8:10]])
    assert [line.partition(":")[0] for line in str(result.value).splitlines()] == [
        "capture, line 6",
        "capture, line 10",
    ]


def test_a_cut_capture_and_an_empty_one() -> None:
    with pytest.raises(LogFileError, match="the board announced 6 rows, but 5 can be read"):
        read_capture([*GOOD[:8], *GOOD[9:]])
    for nothing in ([], ["m-ready"]):
        with pytest.raises(LogFileError, match="there are no rows of an inference"):
            read_capture(nothing)


def test_five_hundred_mutations() -> None:
    draw = random.Random(31)
    text = "\n".join(GOOD)
    for _ in range(500):
        letters = list(text)
        for _ in range(draw.randint(1, 4)):
            position = draw.randrange(len(letters))
            if draw.random() < 0.5:
                letters[position] = draw.choice("0123456789,-.\n[]mx\x00é")
            else:
                del letters[position : position + draw.randint(1, 12)]
        try:
            capture = read_capture("".join(letters).split("\n"))
        except LogFileError as result:
            assert all(", line " in line for line in str(result).splitlines())
        else:
            samples, _ = samples_of(capture, 1000)
            assert all(sample.latency_ms > 0 for sample in samples)
