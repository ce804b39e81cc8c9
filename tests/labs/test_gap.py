"""The gap between prediction and measurement: its parts multiply to the whole, and one explanation passes its test."""

import json
import math

from mlsys.labs.gap import compile_gap, runtime_gap
from mlsys.measure import stored_compile_results, stored_logs
from mlsys.measure.summary import summary


def test_an_explanation_of_compiling_holds_as_the_two_times_say():
    seen = set()
    for result in stored_compile_results():
        record = json.loads(json.dumps(result.record()))
        gap = compile_gap(record)
        if record["predicted"] is None:
            assert gap is None
            continue
        eager = result.eager.median.m_as("s") / record["predicted"]["eager"]
        fast = record["predicted"]["compiled"] / result.compiled.median.m_as("s")
        assert math.isclose(eager * fast, gap.measured / gap.predicted, rel_tol=0.02)
        held = [each.text for each in gap.explanations if each.holds]
        chance = result.speedup.low <= gap.predicted <= result.speedup.high
        assert held and (held[0].startswith("Chance") == chance), (result.model, held)
        if not chance and gap.measured > gap.predicted:
            assert held[0].startswith("Eager" if eager > fast else "Compiled")
        seen.add(held[0])
    assert len(seen) >= 2


def test_the_slowest_run_is_explained_by_its_largest_part():
    logs = [summary(stored_logs()[f"ds-cnn fp32 {name}"]) for name in ("litert", "eager")]
    gap = runtime_gap({"logs": logs})
    assert "eager" in gap.what and gap.measured == 1e3 * logs[1]["latency_ms"]["p50"]
    shares = logs[1]["attribution"]
    assert math.isclose(gap.predicted / gap.measured, (shares["compute"] + shares["memory"]) / 100)
    [held] = [each for each in gap.explanations if each.holds]
    assert "far from any bound" in held.text and gap.record(held.text)["holds"]
    assert runtime_gap({"logs": [{**logs[0], "attribution": None}]}) is None
