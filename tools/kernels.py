"""Kernels for nbval, forked from one process that has imported what almost every page imports.

Each is a process of its own and imports `mlsys` itself. It saves the import of IPython, NumPy, pint and Matplotlib,
a second of CPU time for each of thirty notebooks, and of PyTorch, two seconds for each that captures a network.
"""

import multiprocessing
import os
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from typing import Any

LIBRARIES = (
    "ipykernel.kernelapp", "ipykernel.ipkernel", "matplotlib.backends.backend_agg", "pint", "scipy.optimize",
    "torch",
)  # fmt: skip


class Kernel(ForkServerProcess):
    """A kernel's process with the interface of `subprocess.Popen` that jupyter_client uses."""

    stdin = stdout = stderr = None

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
    threading.Thread(target=_end_with_the_tests, daemon=True).start()
    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance(argv=list(arguments))


def _end_with_the_tests() -> None:
    tests = multiprocessing.parent_process()
    assert tests is not None
    tests.join()
    os._exit(1)


def launch(command: Sequence[str], env: Mapping[str, str], cwd: str | None = None, **_: Any) -> Kernel:
    """Fork the kernel that a command would start."""
    arguments = command[command.index("ipykernel_launcher") + 1 :]
    path = [folder for folder in sys.path if folder != os.path.dirname(__file__)]
    kernel = Kernel(target=serve, args=(arguments, cwd or os.getcwd(), dict(env), path), daemon=True)
    kernel.start()
    assert kernel.ident is not None
    while (
        os.getpgid(kernel.ident) != kernel.ident
    ):  # the kernel's process group is killed at the end: it must not be ours
        time.sleep(0.001)
    return kernel


def prepare(folder: str) -> None:
    """Make nbval fork its kernels and use file sockets in a folder.

    A kernel's TCP ports are chosen, released, and bound by the kernel a moment later: another process may take one
    in between, and the kernel dies before its first reply. File names do not collide.
    """
    import nbval.kernel
    from jupyter_client.manager import KernelManager
    from jupyter_client.provisioning import local_provisioner

    class FileSockets(KernelManager):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings, transport="ipc", ip=f"{folder}/{uuid.uuid4().hex[:8]}")

    nbval.kernel.KernelManager = FileSockets
    local_provisioner.launch_kernel = launch  # type: ignore[attr-defined, assignment]
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # read when matplotlib is imported
    multiprocessing.set_forkserver_preload(list(LIBRARIES))


def end() -> None:
    """End the fork server, and count the CPU time of all kernels as this process's."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
