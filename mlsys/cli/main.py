"""The ``mlsys`` command and its subcommands."""

import atexit
import contextlib
import gc
import os
import sys
import threading
from time import sleep

import click

from mlsys.cli.common import say
from mlsys.cli.installed import InstalledCommands

# Module of each command; a command is imported when it is invoked, or all of them for `mlsys --help`.
_MODULES = {
    "analyze": "analyze",
    "calibrate": "calibrate",
    "check": "devices",
    "claims": "claims",
    "collective": "collective",
    "compare": "analyze",
    "compile-bench": "compile_bench",
    "cost": "cost",
    "device": "devices",
    "devices": "devices",
    "edge": "edge",
    "explain": "explain",
    "flops": "flops",
    "grade": "grade",
    "mapper": "mapper",
    "measure": "calibrate",
    "memory": "memory",
    "plan": "plan",
    "questions": "questions",
    "serve-sim": "serve_sim",
    "size": "size",
    "sweep": "sweep",
    "systolic": "systolic",
    "tiles": "tiles",
    "train": "train",
}
# A command is short and leaves little cyclic garbage, yet the collector takes a fifth of its time, including a pass at
# exit.
_SELDOM = 100_000, 50, 50
_PATIENCE = 10.0  # seconds to wait for threads that outlive the command


@click.group(cls=InstalledCommands, modules=_MODULES)
@click.version_option(package_name="mlsys")
def main() -> None:
    """Hardware acceleration for machine learning, in numbers with sources.

    Completion of commands, options, devices and networks is enabled by

    \b
        eval "$(_MLSYS_COMPLETE=bash_source mlsys)"    # in ~/.bashrc; zsh_source in zsh
        _MLSYS_COMPLETE=fish_source mlsys | source     # in fish

    Exit codes: 0 success, 1 refused, 2 usage error, 3 negative answer, 4 undecided, 130 interrupted;
    `mlsys COMMAND --help` describes codes with a meaning of their own.
    """  # noqa: D301
    gc.set_threshold(*_SELDOM)
    atexit.register(gc.disable)


def _end_soon(code: int) -> None:
    """End the process after a while even if threads are still running: a user's factory may never return."""

    def end() -> None:
        sleep(_PATIENCE)
        own = threading.current_thread()
        names = [t.name for t in threading.enumerate() if not t.daemon and t not in (own, threading.main_thread())]
        say(f"ended while threads were still running, {_PATIENCE:g} s later: {', '.join(names)}", err=True)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()
        os._exit(code)

    threading.Thread(target=end, daemon=True).start()


def run_and_end() -> None:
    """Run the command, and end the process without freeing its memory object by object.

    A long answer leaves millions of small objects, and freeing them takes longer than many a command. Exit handlers
    still run, and so do exits with a non-integer code or with threads to wait for.
    """
    try:
        main()
        code = 0
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        code = end.code
        if threading.active_count() > 1:
            _end_soon(code)
            raise
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # closed, or never there
            stream.flush()
    os._exit(code)
