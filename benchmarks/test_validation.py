"""What grading the models costs: every shipped measurement read, expressed, bounded and predicted.

pytest benchmarks/test_validation.py --benchmark-only
"""

import numpy as np

from mlsys.calibration.times import stack_of
from mlsys.hardware import Hardware
from mlsys.models.estimate import CaseBatch, Parameters, calibrated_times
from mlsys.models.estimate.lowering import kernels_of
from mlsys.models.roofline import roofline
from mlsys.workloads import zoo
from mlsys_evidence import validate
from mlsys_evidence.fit.refit import settings
from mlsys_evidence.ingest.reading import number_format
from mlsys_evidence.rows import shipped_rows


def test_all_rows(benchmark):
    rows = shipped_rows()
    validation = benchmark.pedantic(validate, args=(rows,), rounds=3, warmup_rounds=1)
    assert len(validation.predictions) == len(rows)


def test_one_evaluation_of_a_setting_in_the_fit(benchmark):
    cases = settings()["compiled network on GPU"]
    stack, values = stack_of(cases), Parameters().vectorised()
    assert np.isfinite(benchmark(calibrated_times, stack, values)).all()


def test_resnet_calibrated(benchmark):
    from mlsys.hardware import view
    from mlsys.models.estimate import snapshot

    engine = snapshot(view(Hardware.Cloud.A100, "fp16"))
    work = kernels_of(zoo.network("resnet50", batch=32, precision="fp16"), number_format("fp16"))
    stack = CaseBatch.of([(engine, work, True)])
    benchmark(calibrated_times, stack, Parameters().vectorised())


def test_resnet_roofline_for_comparison(benchmark):
    network = zoo.network("resnet50", batch=32, precision="fp16")
    benchmark(roofline, Hardware.Cloud.A100, network)
