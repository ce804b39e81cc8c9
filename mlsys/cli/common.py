"""Shared parts of the subcommands: plain error messages, exit codes, rows in and out."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mlsys.errors import UnwrittenError
from mlsys.escaping import printable
from mlsys.faults import short
from mlsys.files import csv_text, inputs_kept
from mlsys.inputs import FILES_READ, csv_records

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar


Item = TypeVar("Item")

EXIT_CODES = {
    0: "answered",
    1: "refused, and one line gives the reason; claims diff --exit-code: something changed; "
    "compile-bench: the compiled model returns different results",
    2: "wrong usage: an option, a file name or their combination; compile-bench: any invalid request",
    3: "answered in the negative: plan: no placement meets the caps; explain guide: no platform is feasible; "
    "memory --buffers: proved not to fit; compile-bench: cannot be measured here",
    4: "unknown: memory --buffers or plan found nothing within --seconds, and no proof that nothing exists",
    130: "stopped by Ctrl-C; a sweep or an edge run resumes when the same command is given again",
}
"""Exit codes of the commands."""


_INTERRUPTED = 130
_SYSTEM_FILES = (".yaml", ".yml")
# Parameters that name something of the catalogue or a file, and the endings of such files.
_FILES = {
    "model": (".onnx", ".json", ".tflite", ".gguf", ".safetensors"),
    **dict.fromkeys(("name", "system", "machine"), _SYSTEM_FILES),
}
# `claims` uses no units; `sweep` may pass quantities to Dask.
_PINT_UNCHANGED = ("claims", "sweep")
PICTURES = (".png", ".svg", ".pdf")


@contextlib.contextmanager
def kept_inputs() -> Iterator[None]:
    """Refuse, during the current command, to overwrite any file that it reads; see ``files.inputs_kept``.

    Raises
    ------
    WrongUsage
        If the command line names one file as an input and an output, or as two outputs.
    """
    from mlsys.cli.parameters import named_files

    context = click.get_current_context(silent=True)
    for parameter, suffixes in _FILES.items():
        name = context.params.get(parameter) if context else None
        if isinstance(name, str) and Path(name).suffix in suffixes and not os.path.lexists(name):
            raise WrongUsage(f"there is no file {printable(name)[:200]!r}")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(inputs_kept(*(named_files(context) if context else ((), ()))))
        except UnwrittenError as error:
            raise WrongUsage(printable(str(error))) from error
        yield


class WrongUsage(click.ClickException):
    """An option that conflicts with another or has no effect."""

    exit_code = 2


def _import_pint_alone() -> None:
    """Import pint without the packages it supports and no command uses: Dask alone takes longer than NumPy."""
    context = click.get_current_context(silent=True)
    if "pint" in sys.modules or (context and context.find_root().invoked_subcommand in _PINT_UNCHANGED):
        return
    hidden = [name for name in ("babel", "dask", "scipy") if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        import pint  # noqa: F401
    finally:
        for name in hidden:
            del sys.modules[name]


def speak_plainly(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command so that library errors become one line on standard error; see :data:`EXIT_CODES`."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            _import_pint_alone()
            with kept_inputs():
                return command(*args, **kwargs)
        except BrokenPipeError:
            raise  # whoever read our output has enough: no error of the question
        except ModuleNotFoundError as missing:
            raise click.ClickException(needed_extra(missing)) from missing
        except (ValueError, LookupError, OSError) as error:
            raise click.ClickException(printable(str(error))) from error
        except OverflowError as error:
            raise click.ClickException(f"a number is too large to compute with ({printable(str(error))})") from error
        except MemoryError as error:
            raise click.ClickException("not enough memory. Try a smaller size") from error

    return wrapped


EXTRAS = {
    "matplotlib": "viz", "mpl_toolkits": "viz", "torch": "torch", "transformers": "hf", "onnx": "onnx",
    "pyarrow": "sweep", "distributed": "cluster", "dask": "cluster", "ipywidgets": "labs", "IPython": "labs",
    "sklearn": "guide", "torch_pruning": "edge", "onnxruntime": "measure", "openvino": "measure",
    "ai_edge_litert": "measure", "flatbuffers": "measure", "serial": "measure", "tvm": "tvm",
    "jinja2": "viz", "nbformat": "grade", "nbclient": "run",
    "ipykernel": "run", "psutil": "run",
}  # fmt: skip


def needed_extra(missing: ModuleNotFoundError) -> str:
    """Return a line that names the missing package and the command that installs it.

    Examples
    --------
    >>> needed_extra(ModuleNotFoundError("No module named 'onnx'", name="onnx"))
    "this needs onnx, which is not installed. Type: pip install 'mlsys[onnx]'"
    """
    module = (missing.name or "").partition(".")[0]
    if module not in EXTRAS:
        return f"this needs {module or missing}, which is not installed. Type: pip install {module or 'it'}"
    context = click.get_current_context(silent=True)
    of_edge = context is not None and " edge " in f" {context.command_path} " and module in ("torch", "sklearn")
    extra = "edge" if of_edge else EXTRAS[module]
    return f"this needs {module}, which is not installed. Type: pip install 'mlsys[{extra}]'"


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text with escaped control characters; every command prints through this function."""
    click.echo(printable(str(text)), err=err, nl=nl)


def in_one_line(error: click.UsageError) -> click.ClickException:
    """Return a command-line error without the usage text; a call without any argument gets the help.

    Examples
    --------
    >>> in_one_line(click.UsageError("No such option '--x'."))
    WrongUsage("No such option '--x'.")
    """
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error
    text = " ".join(error.format_message().split())
    see = f" (see {error.ctx.command_path} --help)" if error.ctx is not None else ""
    return WrongUsage(f"{text}{see}")


class Commands(click.Group):
    """A command group that ends quietly on a closed pipe, and prints on terminals of any encoding."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; Ctrl-C has its own exit code."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise in_one_line(error) from error
        except BrokenPipeError:  # the reader closed the pipe: not an error
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(0) from None
        except (KeyboardInterrupt, click.Abort):
            click.echo("\nstopped", err=True)
            raise SystemExit(_INTERRUPTED) from None

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the command line; errors are reported in one line."""
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise in_one_line(error) from error

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command; characters that the terminal cannot encode are escaped."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, ValueError):
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        FILES_READ.clear()
        try:
            return super().main(*args, **kwargs)
        finally:
            try:
                if sys.stdout is not None:  # the shell may have closed it
                    sys.stdout.flush()
            except OSError:  # the reader is gone, or the disk is full, which was reported before
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def one_form(as_json: bool, as_csv: bool) -> None:
    """Refuse two output formats at once.

    Raises
    ------
    WrongUsage
        If both are requested.
    """
    if as_json and as_csv:
        raise WrongUsage("give either --json or --csv, not both")


def refuse_unused(why: str, names: Iterable[str] | None = None, *, but: Iterable[str] = ()) -> None:
    """Refuse options that were given but would have no effect.

    Parameters
    ----------
    why
        Reason, printed after the name of the option.
    names
        Parameters without effect; by default all parameters of the command except those in ``but``.

    Raises
    ------
    WrongUsage
        If one of them was given.
    """
    context = click.get_current_context()
    for option in (param for param in context.command.params if isinstance(param, click.Option)):
        if option.name in but or (names is not None and option.name not in names):
            continue
        if context.get_parameter_source(str(option.name)) is click.core.ParameterSource.COMMANDLINE:
            raise WrongUsage(f"{option.opts[0]} {why}")


def checked_picture(path: Path) -> None:
    """Refuse a file name that no figure can be written to, before anything is computed for it.

    Raises
    ------
    WrongUsage
        If it does not end in one of ``PICTURES``.
    ModuleNotFoundError
        If no plotting library is installed.
    """
    if path.suffix.lower() not in PICTURES:
        raise WrongUsage(f"--figure must end in {', '.join(PICTURES)}, got {path.name!r}")
    if importlib.util.find_spec("matplotlib") is None:
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")


def progress(items: Iterable[Item], label: str, **more: Any) -> ProgressBar[Item]:
    """Return a progress bar on standard error; silent if that is not a terminal."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return click.progressbar(items, label=label, file=sys.stderr if terminal else io.StringIO(), **more)


def print_record(data: Mapping[str, Any] | Iterable[Mapping[str, Any]], overrides: Sequence[str] = ()) -> None:
    """Write a record, or a list of them, as JSON with format version and units, for ``--json``."""
    from mlsys.models.record import with_units

    records = with_units(data) if isinstance(data, Mapping) else [with_units(record) for record in data]
    say_json(records, overrides)


def say_json(answer: Mapping[str, object] | Sequence[Mapping[str, object]], overrides: Sequence[str] = ()) -> None:
    """Print data as JSON, with the user's overrides."""
    from mlsys.models.user_overrides import with_user_overrides

    say(json.dumps(with_user_overrides(answer, overrides), indent=1, ensure_ascii=False))


def say_overrides(overrides: Sequence[str]) -> None:
    """Print the user's overrides, if there are any."""
    if overrides:
        say(f"User overrides: {'; '.join(overrides)}")


def print_csv(
    rows: Iterable[Mapping[str, object]], heads: Iterable[str] | None = None, overrides: Sequence[str] = ()
) -> None:
    """Write rows to standard output as CSV; columns default to those of the first row."""
    if overrides:
        from mlsys.models.user_overrides import with_user_overrides

        rows, heads = with_user_overrides(list(rows), overrides), None if heads is None else [*heads, "user_overrides"]
    say(csv_text(rows, heads), nl=False)


def read_csv(path: Path, columns: Iterable[str]) -> list[dict[str, str]]:
    """Return the rows of a CSV file that must have the named columns.

    Raises
    ------
    ValueError
        If a column is missing, a row is longer or shorter than the header, or there is no row.
    """
    records = csv_records(path)
    heads = records[0][1] if records else []
    missing = [name for name in columns if name not in heads]
    if missing:
        raise ValueError(
            f"{path}: columns missing: {', '.join(missing)}; found: {short(heads)}. "
            f"The first line must name {', '.join(columns)}"
        )
    twice = sorted(name for name, times in Counter(heads).items() if times > 1)
    if twice:
        raise ValueError(f"{path}: line 1: duplicate columns: {', '.join(twice)}. Give each column its own name")
    for number, cells in records[1:]:
        if len(cells) != len(heads):
            raise ValueError(f"{path}, line {number}: expected {len(heads)} cells, one per column, got {len(cells)}")
    if not records[1:]:
        raise ValueError(f"{path}: no rows after the first line")
    return [dict(zip(heads, cells, strict=True)) for _, cells in records[1:]]
