"""The file that is handed in: what the lab writes is what the grader reads, with a checksum anyone can compute."""

import hashlib
import json

from mlsys.grading.submissions import parse
from mlsys.labs import Answer, Attempt, DesignAnswer, HandIn, seed_of

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


def test_the_grader_reads_what_the_lab_writes(tmp_path):
    path = WORK.write(tmp_path / "mine.json")
    record = json.loads(path.read_text("utf-8"))
    read = parse(record)
    assert not read.notes and (read.lab, read.student, read.seed) == (WORK.lab, WORK.student, WORK.seed)
    assert [each.answer for each in read.questions["profile"].attempts] == [88.5, 90]
    assert read.claims["banner"].solution_shown and read.measurements == WORK.measurements
    months = read.design["months"]
    assert (months.choice, months.claimed, months.reason) == (
        {"share": 0.9, "speedup": 9}, 0.93, "cheap — and enough"
    )  # fmt: skip
    stated = record.pop("checksum")  # as anyone would compute it
    canonical = json.dumps(record, sort_keys=True, separators=(",", ":"))
    assert stated == hashlib.sha256(canonical.encode()).hexdigest()
