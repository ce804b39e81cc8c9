"""Times by kernel, computed on arrays, equal those of an analysis, which works operator by operator."""

import pytest

from mlsys import analyze
from mlsys.errors import UnknownNameError
from mlsys.models.analysis.changes import NO_LAUNCH
from mlsys.sweep.layers import layer_times

BATCHES = (1, 5, 11, 22, 40)


@pytest.mark.parametrize(
    ("network", "device", "batch", "precision", "software"),
    [
        ("mobilenet_v2", "T4", 22, "fp16", "compiled network on GPU"),
        ("mobilenet_v2", "A100_80GB", 5, "fp16", "eager network on GPU"),
        ("bert-base", "H100_SXM", 11, "int8", "compiled network on GPU"),
        ("vgg16", "EPYC_9654", 11, "fp32", None),
    ],
)
def test_they_are_those_of_the_analysis(network, device, batch, precision, software):
    fast = layer_times(network, device, batch, precision, software, BATCHES)
    slow = analyze(device, network, batch=batch, precision=precision, software=software)
    assert fast.total == pytest.approx(slow.estimate.m_as("s"), rel=1e-9)
    tried = {(change.change, change.target): change.time.m_as("s") for change in slow.changes}
    assert fast.changes[NO_LAUNCH] == pytest.approx(tried[NO_LAUNCH, "all operators"], rel=1e-6)
    for cause in ("compute", "memory", "launch"):
        assert sum(group.seconds for group in fast.groups if group.limited_by == cause) == pytest.approx(
            fast.share(cause) * fast.total
        )
    if software != "eager network on GPU":  # there an analysis counts what an operator writes out with the operator
        assert fast.least == pytest.approx(slow.bound.m_as("s"), rel=1e-9)
        assert {(group.label, round(group.seconds, 9)) for group in fast.groups} == {
            (group.label, round(group.estimate.m_as("s"), 9)) for group in slow.groups
        }


def test_a_device_without_the_format_is_refused():
    with pytest.raises(UnknownNameError, match="has no int8 peak"):
        layer_times("vgg16", "V100", 1, "int8")
