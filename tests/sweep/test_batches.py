"""A network at many batches is what it is when it is made at each."""

from dataclasses import replace

import numpy as np
import pytest

from mlsys.mapping.fusion import as_kernels
from mlsys.models.estimate.running import Running
from mlsys.models.estimate.work import Work
from mlsys.sweep.batches import AcrossBatches, CountedKernels
from mlsys.workloads import load

LADDER = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
COUNT = Work.FIELDS.index("count")


def counted(name: str, batch: int) -> CountedKernels:
    return CountedKernels.of(as_kernels(load(name, batch=batch)))


# Of gpt2 and bert-base the rows that are read come to the whole table of words at some batch.
@pytest.mark.parametrize(("name", "fewer"), [("resnet18", 3), ("gpt2", 6), ("bert-base", 6), ("unet", 3)])
def test_every_batch_is_as_if_it_were_made(name: str, fewer: int) -> None:
    made = {batch: counted(name, batch) for batch in LADDER}
    counted_batches = []
    across = AcrossBatches(lambda batch: counted_batches.append(batch) or made[batch])
    for batch in LADDER:
        kernels = across.at(batch, LADDER)
        ours, theirs = kernels.distinct(), made[batch].distinct()
        assert ours.is_like(theirs) and np.array_equal(ours.columns, theirs.columns), batch
        assert np.array_equal(ours.times, theirs.times) and theirs.times.sum() == made[batch].columns.shape[1]
    assert len(counted_batches) == len(set(counted_batches)) <= fewer


def of_columns(batch: int, *numbers: float, names: tuple[str, ...] = ("only",)) -> CountedKernels:
    columns = np.ones((10, 1))
    columns[1 : 1 + len(numbers), 0] = numbers
    return CountedKernels("toy", columns, ("fp32",), ("gemm",), names, None, 1.0)


@pytest.mark.parametrize(
    "made",
    [
        lambda batch: of_columns(batch, batch**2),
        lambda batch: of_columns(batch, min(3 * batch, 700), max(batch, 90)),
        lambda batch: of_columns(batch, min(batch, 40) + min(batch, 300)),
        lambda batch: of_columns(batch, batch, names=("small" if batch < 70 else "large",)),
        lambda batch: of_columns(batch, 1 / (1 + batch)),
    ],
    ids=["square", "two bends", "bends twice", "other kernels", "broken numbers"],
)
@pytest.mark.parametrize("batches", [LADDER, tuple(range(1, 600, 7)), (5, 9), (3, 3, 200, 1000)])
def test_what_is_no_line_is_made_at_each_batch(made: object, batches: tuple[int, ...]) -> None:
    across = AcrossBatches(made)
    for batch in batches:
        kernels = across.at(batch, batches)
        assert kernels.is_like(made(batch)) and np.array_equal(kernels.columns, made(batch).columns), batch


@pytest.mark.parametrize("name", ["resnet18", "vgg16"])
def test_what_winograds_algorithm_leaves_is_on_a_line_too(name: str) -> None:
    made = {batch: CountedKernels.of(as_kernels(load(name, batch=batch)), Running(winograd=1.7)) for batch in LADDER}
    counted_batches = []
    across = AcrossBatches(lambda batch: counted_batches.append(batch) or made[batch])
    for batch in LADDER:
        ours, theirs = across.at(batch, LADDER), made[batch].distinct()
        for field in ("flops", "moved"):
            totals = [each.columns[Work.FIELDS.index(field)] @ each.columns[COUNT] for each in (ours, theirs)]
            assert totals[0] == pytest.approx(totals[1], rel=1e-11)
    assert len(counted_batches) == 3


def test_a_batch_that_is_refused_is_refused_alone() -> None:
    def made(batch: int) -> CountedKernels:
        if batch > 100:
            raise ValueError("too large")
        return replace(of_columns(batch, batch), name="small batches")

    across = AcrossBatches(made)
    assert [int(across.at(batch, (*LADDER,)).columns[1, 0]) for batch in LADDER[:7]] == list(LADDER[:7])
    with pytest.raises(ValueError, match="too large"):
        across.at(128, LADDER)
