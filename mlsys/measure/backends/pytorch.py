"""PyTorch: eager, and compiled by Inductor."""

import time
from typing import Any

from mlsys.measure.backends.base import Array, Backend, flat, stepped
from mlsys.measure.errors import NoCompilerError
from mlsys.measure.machine import compiler
from mlsys.measure.networks.chains import Net
from mlsys.measure.networks.export import as_torch
from mlsys.measure.networks.subjects import Subject


class Eager(Backend):
    """Eager PyTorch, one kernel per operator."""

    name, package = "eager", "torch"
    kinds = ("chain", "module")

    def setup(self, subject: Subject, threads: int) -> None:
        """Build the module."""
        import torch

        torch.set_num_threads(threads)
        self._subject, self._threads = subject, threads
        if subject.net is not None:
            assert isinstance(subject.chain, Net)
            self._module = as_torch(subject.chain)
            self._inputs = torch.from_numpy(subject.batch.transpose(0, 3, 1, 2).copy())
        else:
            self._module, self._inputs = subject.module, subject.inputs
        self._call = self._module
        self._output: Any = None

    def _run(self) -> None:
        given: Any = self._inputs
        if isinstance(given, dict):
            self._output = self._call(**given)
        else:
            self._output = self._call(*given) if isinstance(given, tuple) else self._call(given)

    def run_inference(self) -> float:
        """Run once."""
        import torch

        with torch.inference_mode():
            return super().run_inference()

    def output(self) -> Array:
        """Return the first tensor of the result."""
        result = self._output
        while not hasattr(result, "numpy"):
            result = next(iter(result.values())) if isinstance(result, dict) else result[0]
        return flat(result.float().numpy())

    def layers(self, iterations: int) -> tuple[str, list[dict[str, float]]]:
        """Time each leaf module inside the whole network, by the clock before and after it."""
        import torch

        leaves = self._leaves()
        started: dict[str, float] = {}
        now: dict[str, float] = {}

        def before(name: str) -> Any:
            return lambda *_: started.__setitem__(name, time.perf_counter())

        def after(name: str) -> Any:
            return lambda *_: now.__setitem__(name, now.get(name, 0.0) + time.perf_counter() - started[name])

        hooks = []
        for name, leaf in leaves:
            hooks += [leaf.register_forward_pre_hook(before(name)), leaf.register_forward_hook(after(name))]
        rounds = []
        try:
            with torch.inference_mode():
                for _ in range(iterations):
                    now.clear()
                    self._run()
                    rounds.append(dict(now))
        finally:
            for hook in hooks:
                hook.remove()
        return "hooks before and after each layer, inside the whole", rounds

    def _leaves(self) -> list[tuple[str, Any]]:
        if self._subject.net is not None:
            names = [layer.name for layer in self._subject.net.layers]
            return list(zip(names, self._module, strict=True))
        return [(name, part) for name, part in self._module.named_modules() if name and not list(part.children())]

    def facts(self) -> dict[str, Any]:
        """Return the instruction set that PyTorch uses."""
        import torch

        return {"instructions": torch.backends.cpu.get_cpu_capability()}


class Inductor(Eager):
    """PyTorch compiled to C++ by Inductor, with frozen weights and empty caches."""

    name = "inductor"

    def refuses(self, subject: Subject) -> str:
        """Return why it cannot run here; it needs a C++ compiler."""
        reason = super().refuses(subject)
        if not reason:
            try:
                compiler()
            except NoCompilerError as error:
                return str(error).partition(": ")[2]
        return reason

    def setup(self, subject: Subject, threads: int) -> None:
        """Build the module and compile it by calling it once."""
        import torch
        import torch._inductor.config as settings
        from torch._inductor.utils import fresh_cache

        super().setup(subject, threads)
        torch._dynamo.reset()
        self._call = torch.compile(self._module)
        with fresh_cache(), settings.patch(freezing=True), torch.inference_mode():
            self._run()

    def layers(self, iterations: int) -> tuple[str, list[dict[str, float]]]:
        """Time each layer compiled separately: in the whole network, Inductor fuses layers into kernels."""
        if self._subject.net is None:
            return super(Eager, self).layers(iterations)
        return stepped(Inductor, self._subject, self._threads, iterations)
