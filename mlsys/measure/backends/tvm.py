"""Apache TVM on this CPU: the network compiled to machine code, without tuning."""

import os
from typing import Any

import numpy as np

from mlsys.inputs import read_bytes
from mlsys.measure.backends.base import Array, Backend, flat, seeded_input
from mlsys.measure.errors import BackendMissingError
from mlsys.measure.networks.export import as_onnx
from mlsys.measure.networks.subjects import Subject


class Tvm(Backend):
    """Apache TVM: ONNX to Relax, default passes, LLVM for this CPU; without a tuning log."""

    name, package, extra = "tvm", "tvm", "tvm"
    kinds, formats = ("chain", "onnx"), ("fp32",)

    def setup(self, subject: Subject, threads: int) -> None:
        """Compile the network and load the result."""
        os.environ.setdefault("TVM_NUM_THREADS", str(threads))  # read once, at import
        import onnx
        import tvm
        from tvm import relax
        from tvm.relax.frontend.onnx import from_onnx

        model = onnx.load_from_string(as_onnx(subject.chain) if subject.file is None else read_bytes(subject.file))
        try:
            compiled = tvm.compile(from_onnx(model, keep_params_in_input=False), target=tvm.target.Target("llvm"))
        except Exception as error:  # the compiler has its own class for every unsupported operator
            raise BackendMissingError(f"tvm cannot compile {subject.name}: {str(error)[:200]}") from error
        self._run_once = relax.VirtualMachine(compiled, tvm.cpu())["main"]
        weights = {each.name for each in model.graph.initializer}
        wanted = [each for each in model.graph.input if each.name not in weights]
        if subject.net is not None:
            given = [subject.batch.transpose(0, 3, 1, 2).astype(np.float32)]
        else:
            shapes = [[side.dim_value for side in each.type.tensor_type.shape.dim] for each in wanted]
            given = [seeded_input(shape, np.float32) for shape in shapes]
        self._inputs = [tvm.runtime.tensor(np.ascontiguousarray(values)) for values in given]
        self._output: Any = None

    def _run(self) -> None:
        self._output = self._run_once(*self._inputs)

    def output(self) -> Array:
        """Return the first output."""
        first = self._output if hasattr(self._output, "numpy") else self._output[0]
        return flat(first.numpy())
