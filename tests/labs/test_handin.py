"""The file that is handed in: it comes back whole, or is refused with a reason."""

import copy
import hashlib
import json

import pytest

from mlsys.labs import Answer, Attempt, DesignAnswer, HandIn, HandInError, read_handin, seed_of

AT = "2026-01-31T09:00:00+00:00"
WORK = HandIn(
    "01-amdahl",
    "Zoë Müller",
    seed_of("01-amdahl", "Zoë Müller"),
    AT,
    "2026-01-31T09:45:00+01:00",
    questions={"profile": Answer((Attempt(AT, 88.5, False), Attempt(AT, 90, True)), False)},
    claims={"banner": Answer((Attempt(AT, "Nothing: it is right", False),), True)},
    design={"months": DesignAnswer({"share": 0.9, "speedup": 9}, 0.93, "cheap — and enough")},
    measurements={"compile-bench": {"speedup": 1.2}},
)


def test_it_comes_back_whole_from_a_file(tmp_path):
    path = WORK.write(tmp_path / "mine.json")
    assert read_handin(path) == WORK and WORK.seed_fits
    record = json.loads(path.read_text("utf-8"))
    stated = record.pop("checksum")  # as anyone would compute it
    canonical = json.dumps(record, sort_keys=True, separators=(",", ":"))
    assert stated == hashlib.sha256(canonical.encode()).hexdigest()


def test_another_student_does_not_fit_the_seed():
    assert not HandIn("01-amdahl", "Eve", WORK.seed, AT, AT).seed_fits


def spoiled():
    for path, value, message in [
        (["format"], "x", "`format` must be 'mlsys-lab'"),
        (["version"], 2, "version 2"),
        (["version"], True, "version True"),
        (["claims"], [], "`claims` must be a set of named values"),
        (["started"], "noon", "must be a time with its offset"),
        (["handed_in"], "2026-01-31T09:00:00", "must be a time with its offset"),
        (["questions", "profile"], {}, "must hold attempts, solution_shown"),
        (["questions", "profile", "attempts", 0, "answer"], None, "cannot be None"),
        (["questions", "profile", "attempts", 0, "answer"], True, "True is no answer"),
        (["questions", "profile", "attempts", 0, "correct"], 1, "cannot be 1"),
        (["design", "months", "score"], 1.5, "from 0 to 1"),
        (["more"], 1, "missing or unknown parts: 'more'"),
    ]:
        record = copy.deepcopy(WORK.record())
        *parents, last = path
        node = record
        for key in parents:
            node = node[key]
        node[last] = value
        yield record, message


def test_what_is_not_of_the_format_is_refused():
    from mlsys.labs import checksum

    for record, message in spoiled():
        record["checksum"] = checksum(record)
        with pytest.raises(HandInError, match=message):
            read_handin(record)


def test_a_changed_file_is_noticed():
    record = WORK.record()
    record["questions"]["profile"]["attempts"][0]["correct"] = True
    with pytest.raises(HandInError, match="checksum does not fit"):
        read_handin(record)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not readable as JSON"),
        (b"[1]", "holds no record"),
        (b"\xff\xfe", "must be UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"format": NaN}', "not readable as JSON"),
        (b'{"lab": "a", "lab": "b"}', "stands twice"),
        (b" " * 1_000_001, "too large"),
    ],
)
def test_files_of_another_kind_are_refused(tmp_path, content, message):
    path = tmp_path / "mine.json"
    path.write_bytes(content)
    with pytest.raises(HandInError, match=message):
        read_handin(path)
    with pytest.raises(HandInError):
        read_handin(tmp_path / "absent.json")
