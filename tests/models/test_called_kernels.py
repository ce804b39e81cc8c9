"""One kernel called from Python and timed alone: what passes beside it, and what its host and its memory each slow."""

from dataclasses import replace

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.calibration.rows import Row
from mlsys.hardware import view
from mlsys.models.estimate import CALLED, QUEUED, VECTOR, CaseBatch, Kernel, Parameters, Work, calibrated_times
from mlsys.models.estimate.effects import POOLS, effect_of
from mlsys.models.estimate.library import parameters_of, plain_of, scaled
from mlsys_evidence.fit.pooling import fit_pool
from mlsys_evidence.questions import interpret
from mlsys_evidence.questions.eager_launch_overhead import A_CALL
from mlsys_evidence.rows import shipped_rows

T4 = view(Hardware["T4"], "fp32")
CALL = "eager call on GPU"
PLAIN = Parameters(bandwidth=0.75, launch=3e-5)


def seconds(moved: float, parameters: Parameters = PLAIN, called: float = CALLED) -> float:
    kernel = Kernel(VECTOR, flops=1.0, moved=moved, ranks=called)
    return float(calibrated_times(CaseBatch.of([(T4, Work.of([kernel]), False)]), parameters.vectorised())[0])


def test_a_kernel_shorter_than_the_rest_of_its_call_costs_nothing() -> None:
    """Of 30 µs some 13 are left when the kernel starts, in which a T4 moves 3 MB: as its rows have it."""
    assert [seconds(4.0), seconds(2.4e6)] == pytest.approx([3e-5, 3e-5])
    assert seconds(2.4e6, called=1.0) == pytest.approx(3e-5 + 2.4e6 / 0.75 / 320e9, rel=1e-3)


def test_a_long_kernel_waits_for_half_its_call() -> None:
    kernel = 1e9 / 0.75 / 320e9
    assert 0.4 < (seconds(1e9) - kernel) / 3e-5 < 0.7


def test_a_call_is_never_shorter_for_more_bytes_nor_for_a_slower_host() -> None:
    sizes = np.geomspace(1e3, 1e9, 60)
    times = np.array([seconds(size) for size in sizes])
    slower = np.array([seconds(size, replace(PLAIN, launch=4e-5)) for size in sizes])
    assert (np.diff(times) > -1e-15).all()
    assert (slower > times).all()


def test_a_queued_call_does_not_wait_for_its_host() -> None:
    row = next(row for row in shipped_rows() if row.workload == "layernorm" and "eager" in row.software)
    queued, alone = (
        interpret(replace(row, seq_or_shape="M=64,N=64 (reduce over N)", note=note))
        for note in ("triton do_bench clears the L2", "")
    )
    times = [
        calibrated_times(CaseBatch.of([(case.engine, case.work, case.cached)]), PLAIN.vectorised())[0]
        for case in (queued, alone)
    ]
    assert times[0] < 4e-6 < PLAIN.launch < times[1]
    assert not queued.cached, "what the cache held is cleared"
    slow = replace(PLAIN, launch=1e-4)
    assert seconds(1e6, slow, QUEUED) == pytest.approx(seconds(1e6, PLAIN, QUEUED))


def result(row: Row) -> float:
    """Return the seconds that the shipped fit says of a row, whoever measured it."""
    case = interpret(row)
    own = parameters_of(case.setting, case.twin)[0].vectorised()
    stack = CaseBatch.of([(case.engine, case.work, case.cached)])
    return max(float(calibrated_times(stack, own)[0]), case.at_least)


def norm(shape: str, **words: str) -> Row:
    """Return an RMSNorm in half precision by PyTorch on a B200, repeated by an unseen source."""
    row = next(row for row in shipped_rows() if row.workload == "layernorm" and "eager" in row.software)
    own = {"device": "NVIDIA B200", "software": "PyTorch 2.9 eager", "source": "an unseen source", "note": ""}
    return replace(row, precision="fp16", seq_or_shape=f"{shape} (reduce over N)", **(own | words))


def test_a_repeated_call_waits_for_its_host_or_its_memory_not_for_both() -> None:
    """One call of PyTorch after the other: however small, as long as the host takes; a large one, as its bytes do."""
    small, large = result(norm("M=8,N=1024")), result(norm("M=65536,N=4096"))
    assert small == pytest.approx(A_CALL)
    assert large == pytest.approx(result(norm("M=65536,N=4096", note="triton do_bench")), rel=0.02)
    assert result(norm("M=8,N=1024", note="each waited for")) > 1.3 * small
    assert result(norm("M=8,N=1024", note="triton do_bench")) < 0.3 * small


def test_normalisation_on_a_b200_takes_what_pytorch_measured() -> None:
    """65,536 rows of 4,096 in FP16: 167 µs eager (pytorch/pytorch, pull request 159682, table of 9.11)."""
    assert result(norm("M=65536,N=4096")) == pytest.approx(167e-6, rel=0.15)


def test_what_a_compiler_makes_of_a_normalisation_reads_its_rows_once() -> None:
    wide = "M=4096,N=65536"
    eager, compiled = (result(norm(wide, software=f"PyTorch 2.9 {how}")) for how in ("eager", "torch.compile"))
    assert compiled < 0.8 * eager


def test_a_host_slows_launches_alone_and_a_memory_the_rest() -> None:
    slow = scaled(PLAIN, 1.5, 2.0)
    assert slow.launch == pytest.approx(6e-5)
    assert slow.bandwidth == pytest.approx(0.5)
    assert scaled(PLAIN, 1.5).launch == pytest.approx(4.5e-5)
    effect, plain = effect_of(CALL, "V100_PCIe_32GB"), plain_of(CALL, "V100_PCIe_32GB")[0]
    tuned = parameters_of(CALL, "V100_PCIe_32GB")[0]
    assert effect.starting is not None
    assert tuned.launch == pytest.approx(plain.launch * effect.starting)
    assert tuned.bandwidth == pytest.approx(min(plain.bandwidth / effect.factor, 1.0))


def test_hosts_and_memories_come_out_as_they_were_put_in() -> None:
    """Made-up rows: half of a sweep is launches, half is memory; six machines, three sweeps each."""
    row = next(row for row in shipped_rows() if "GELU" in row.workload and "T4" in row.device)
    made = replace(interpret(row), setting=CALL)
    random = np.random.default_rng(5)
    twins = [f"m{index}" for index in range(6)]
    host, memory = ({twin: float(random.normal(0, 0.25)) for twin in twins} for _ in range(2))
    cases = [
        replace(made, twin=twin, row=replace(row, id=f"{twin}{sweep}{size}", group=f"{twin}{sweep}"))
        for twin in twins
        for sweep in range(3)
        for size in range(10)
    ]
    launched = np.array([float(index % 2) for index in range(len(cases))])
    y = np.array([
        part * host[case.twin] + (1 - part) * memory[case.twin] + random.normal(0, 0.02)
        for case, part in zip(cases, launched, strict=True)
    ])  # fmt: skip
    found = fit_pool(replace(POOLS["eager calls"], least=0.0), cases, {"launch": launched}, y, y)
    for name, truth in (("host", host), ("memory", memory)):
        levels = found.effects["groups"][name]["levels"]
        assert {twin: levels[twin][0] for twin in twins} == pytest.approx(truth, abs=0.06)
    assert np.std(y - found.without_sweep) < 0.25 * np.std(y)


def test_a_small_call_is_told_by_its_host_and_a_large_one_by_its_memory() -> None:
    """NeuSight's T4: GELU of 37 elements takes 31.5 µs, and 0.67 billion 22.6 ms; both within a tenth and a half."""
    rows = [row for row in shipped_rows() if "GELU" in row.workload and row.device.endswith("T4")]
    rows = [row for row in rows if "NeuSight" in row.source]
    values = sorted((interpret(row) for row in rows), key=lambda case: case.seconds)
    for case in (values[0], values[-1]):
        own = parameters_of(CALL, case.twin)[0]
        time = calibrated_times(CaseBatch.of([(case.engine, case.work, case.cached)]), own.vectorised())[0]
        assert time == pytest.approx(case.seconds, rel=0.15)
