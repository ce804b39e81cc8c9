"""Measurements on this machine and on boards: timing, logs with every sample, counters, energy, and what explains them.

`timing` and `machine` serve all others. `compile` compares eager PyTorch with compiled code. `protocol` measures a
network of `networks` with one of the `backends`, or a board through `firmware`, and keeps a `log`; `attribution`,
`doubts` and `hypotheses` explain logs, and `recommend` says what to change or to choose.

Importing this package loads neither torch nor a runtime; measuring does.
"""

from mlsys.measure.attribution import CAUSES, Attribution, Cause, LayerShare, attribute, attribute_times
from mlsys.measure.compile.comparison import compile_bench
from mlsys.measure.compile.passes import PassResult, PassStep, pass_bench
from mlsys.measure.compile.predict import PredictedTimes, predict, predict_workload
from mlsys.measure.compile.result import CompileResult
from mlsys.measure.compile.tables import compile_table, pass_table
from mlsys.measure.doubts import LIMITS, Limits, doubts
from mlsys.measure.errors import CompileFailedError, MeasureError, NoCompilerError, OutOfMemoryError, OutputsDifferError
from mlsys.measure.log import Cold, LayerWork, Log, Sample, read_log
from mlsys.measure.machine import Machine, this_machine
from mlsys.measure.networks.modules import ready_model
from mlsys.measure.rates import MachineRates, machine_rates
from mlsys.measure.stored import stored_compile_results, stored_logs, stored_pass_results
from mlsys.measure.timing import Ratio, Timing, measure, ratio_of_medians

__all__ = [
    "CAUSES",
    "LIMITS",
    "Attribution",
    "Cause",
    "Cold",
    "CompileFailedError",
    "CompileResult",
    "LayerShare",
    "LayerWork",
    "Limits",
    "Log",
    "Machine",
    "MachineRates",
    "MeasureError",
    "NoCompilerError",
    "OutOfMemoryError",
    "OutputsDifferError",
    "PassResult",
    "PassStep",
    "PredictedTimes",
    "Ratio",
    "Sample",
    "Timing",
    "attribute",
    "attribute_times",
    "compile_bench",
    "compile_table",
    "doubts",
    "machine_rates",
    "measure",
    "pass_bench",
    "pass_table",
    "predict",
    "predict_workload",
    "ratio_of_medians",
    "read_log",
    "ready_model",
    "stored_compile_results",
    "stored_logs",
    "stored_pass_results",
    "this_machine",
]
