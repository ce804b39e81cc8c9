"""Measurements on this machine: timing, machine description, and predictions to compare with.

Importing this package does not load torch; measuring does.
"""

from mlsys.bench.compile import compile_bench
from mlsys.bench.errors import CompileFailedError, MeasureError, NoCompilerError, OutOfMemoryError, OutputsDifferError
from mlsys.bench.machine import Machine, this_machine
from mlsys.bench.models import ready_model
from mlsys.bench.passes import PassResult, PassStep, pass_bench
from mlsys.bench.predict import PredictedTimes, predict, predict_workload
from mlsys.bench.probes import MachineRates, machine_rates
from mlsys.bench.result import CompileResult
from mlsys.bench.stored import stored_compile_results, stored_pass_results
from mlsys.bench.tables import compile_table, pass_table
from mlsys.bench.timing import Ratio, Timing, measure, ratio_of_medians

__all__ = [
    "CompileFailedError",
    "CompileResult",
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
    "Timing",
    "compile_bench",
    "compile_table",
    "machine_rates",
    "measure",
    "pass_bench",
    "pass_table",
    "predict",
    "predict_workload",
    "ratio_of_medians",
    "ready_model",
    "stored_compile_results",
    "stored_pass_results",
    "this_machine",
]
