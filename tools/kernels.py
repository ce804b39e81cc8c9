"""Kernels for pages, forked from one process that has imported what almost every page imports.

Each is a process of its own. It saves the import of IPython, NumPy, pint, Matplotlib and the parts of `mlsys` that draw
and compute, four seconds of CPU time for each page, and of PyTorch, three seconds for each that captures a network.
`make notebooks` starts a whole interpreter for each page: one that forgot an import of its own fails there.
"""

import multiprocessing
import os
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver, popen_forkserver, process
from multiprocessing.context import ForkServerProcess
from types import ModuleType
from typing import Any

LIBRARIES = (
    "ipykernel.kernelapp", "ipykernel.ipkernel", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg",
    "matplotlib_inline.backend_inline", "ipywidgets", "numba", "pint", "scipy.optimize", "torch",
)  # fmt: skip
OURS = ("mlsys.formulas", "mlsys.hardware", "mlsys.tables", "mlsys.viz", "mlsys.widgets", "mlsys.workloads")
"""Our modules that are imported before the fork. Their import reads no fact, which a page would record. They do without
``mlsys.claims``, which when imported begins to watch the cells of the kernel that it is in."""
_SEEN_AT_IMPORT = ("MLSYS_", "MPL", "NPY_", "NUMBA_", "OMP_", "OPENBLAS_", "MKL_", "PYTHON", "ATEN_", "ONEDNN_")
_starting = threading.Lock()
_environment: dict[str, str] = {}


class Kernel(ForkServerProcess):
    """A kernel's process with the interface of `subprocess.Popen` that jupyter_client uses."""

    stdin = stdout = stderr = None

    @staticmethod
    def _Popen(process_obj: process.BaseProcess) -> Any:
        # The kernel would run the main program, such as tools/book.py, as a module of its own.
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            return popen_forkserver.Popen(process_obj)
        finally:
            sys.modules["__main__"] = main

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""
        return self.exitcode

    def wait(self) -> int | None:
        """Wait for its end and return its exit code."""
        self.join()
        return self.exitcode

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        assert self.ident is not None
        os.kill(self.ident, number)


def serve(arguments: Sequence[str], folder: str, environment: Mapping[str, str], path: Sequence[str]) -> None:
    """Run a kernel in this process, as `python -m ipykernel_launcher` would."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = path
    sys.argv[:] = ["ipykernel_launcher", *arguments]
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(silent, stream)
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined] # a page may have workers
    threading.Thread(target=_end_with_its_parent, daemon=True).start()
    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance(argv=list(arguments))


def _end_with_its_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _read_at_import(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_SEEN_AT_IMPORT)}


def launch(command: Sequence[str], env: Mapping[str, str], cwd: str | None = None, **_: Any) -> Kernel:
    """Fork the kernel that a command would start.

    Raises
    ------
    RuntimeError
        If it has another environment than the process it is forked from, which has read it already.
    """
    if _read_at_import(env) != _environment:
        raise RuntimeError("the environment has changed since forking of kernels was prepared")
    arguments = command[command.index("ipykernel_launcher") + 1 :]
    path = [folder for folder in sys.path if folder != os.path.dirname(__file__)]
    kernel = Kernel(target=serve, args=(arguments, cwd or os.getcwd(), dict(env), path), daemon=True)
    with _starting:
        kernel.start()
    assert kernel.ident is not None
    while (
        os.getpgid(kernel.ident) != kernel.ident
    ):  # the kernel's process group is killed at the end: it must not be ours
        time.sleep(0.001)
    return kernel


def fork_from_now_on() -> None:
    """Make jupyter_client fork its kernels."""
    from jupyter_client.provisioning import local_provisioner

    local_provisioner.launch_kernel = launch  # type: ignore[attr-defined, assignment]
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # read when matplotlib is imported
    _environment.clear()
    _environment.update(_read_at_import(os.environ))
    multiprocessing.set_forkserver_preload([*LIBRARIES, *OURS])


WORTHWHILE = 4
"""Number of pages from which forking saves more time than the imports before it cost."""


@contextmanager
def forked_kernels(pages: int) -> Iterator[None]:
    """Fork kernels for so many pages while the context is open; the environment must not change in it."""
    if pages < WORTHWHILE or os.name != "posix":
        yield
        return
    from jupyter_client.provisioning import local_provisioner

    usual = local_provisioner.launch_kernel  # type: ignore[attr-defined]
    fork_from_now_on()
    try:
        yield
    finally:
        local_provisioner.launch_kernel = usual  # type: ignore[attr-defined]
        end()


def prepare(folder: str) -> None:
    """Make nbval fork its kernels and use file sockets in a folder.

    A kernel's TCP ports are chosen, released, and bound by the kernel a moment later: another process may take one
    in between, and the kernel dies before its first reply. File names do not collide.
    """
    import nbval.kernel
    from jupyter_client.manager import KernelManager

    class FileSockets(KernelManager):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings, transport="ipc", ip=f"{folder}/{uuid.uuid4().hex[:8]}")

    nbval.kernel.KernelManager = FileSockets
    fork_from_now_on()


def end() -> None:
    """End the fork server, and count the CPU time of all kernels as this process's."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
