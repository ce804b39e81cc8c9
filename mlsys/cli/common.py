"""What the subcommands share: plain errors, amounts with units, rows in and out."""

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
    1: "refused: what was asked for cannot be done, and one line says why; claims diff --exit-code: something moved; "
    "compile-bench: the compiled model answers something else",
    2: "wrong usage: an option, a name of a file or their combination; compile-bench: any wrong question",
    3: "answered, and the answer is no: plan: no placement meets the caps; explain guide: no platform is feasible; "
    "memory --buffers: proved not to fit; compile-bench: it cannot be measured here",
    4: "not known: memory --buffers or plan found nothing in --seconds, and no proof that there is nothing",
    130: "stopped by Ctrl-C; a sweep or an edge run goes on when the same is run again",
}
"""What a command ends with."""


_INTERRUPTED = 130
_MODEL_FILES = (".onnx", ".json", ".tflite")
PICTURES = (".png", ".svg", ".pdf")


@contextlib.contextmanager
def kept_inputs() -> Iterator[None]:
    """Refuse, while the current command runs, to write over any file that it reads; see ``files.inputs_kept``.

    Raises
    ------
    WrongUsage
        If the command line names one file as an input and an output, or for two outputs.
    """
    from mlsys.cli.parameters import named_files

    context = click.get_current_context(silent=True)
    model = context.params.get("model") if context else None
    if isinstance(model, str) and Path(model).suffix in _MODEL_FILES and not os.path.lexists(model):
        raise WrongUsage(f"there is no file {printable(model)[:200]!r}")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(inputs_kept(*(named_files(context) if context else ((), ()))))
        except UnwrittenError as error:
            raise WrongUsage(printable(str(error))) from error
        yield


class WrongUsage(click.ClickException):
    """Options that do not go together, or that say nothing."""

    exit_code = 2


def speak_plainly(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn the errors of the library into one line on standard error and exit code 1; see :data:`EXIT_CODES`."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
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
            raise click.ClickException("not enough memory for this. Ask for less, such as a smaller size") from error

    return wrapped


EXTRAS = {
    "matplotlib": "viz", "mpl_toolkits": "viz", "torch": "torch", "transformers": "hf", "onnx": "onnx",
    "pyarrow": "sweep", "distributed": "cluster", "dask": "cluster", "ipywidgets": "labs", "IPython": "labs",
    "sklearn": "guide", "torch_pruning": "edge", "onnxruntime": "explain", "openvino": "explain",
    "ai_edge_litert": "explain", "flatbuffers": "explain", "serial": "explain", "tvm": "tvm",
}  # fmt: skip


def needed_extra(missing: ModuleNotFoundError) -> str:
    """Return in one line which part of the package is not installed, and the command that installs it.

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
    """Print a text, its control characters written out; the one voice of every command."""
    click.echo(printable(str(text)), err=err, nl=nl)


def in_one_line(error: click.UsageError) -> click.ClickException:
    """Return an error of the command line without the usage above it; whoever gave nothing at all gets the help.

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
    """A group of commands that ends quietly when its output is cut off, and prints on any terminal."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; Ctrl-C has an exit code of its own."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise in_one_line(error) from error
        except BrokenPipeError:  # whoever reads has enough: nothing was refused
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(0) from None
        except (KeyboardInterrupt, click.Abort):
            click.echo("\nstopped", err=True)
            raise SystemExit(_INTERRUPTED) from None

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the command line; what is wrong with it is said in one line."""
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise in_one_line(error) from error

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command; what the terminal's encoding lacks is written out."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, ValueError):
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        FILES_READ.clear()
        try:
            return super().main(*args, **kwargs)
        finally:
            try:
                if sys.stdout is not None:  # there is none where the shell closed it
                    sys.stdout.flush()
            except OSError:  # the reader has gone, or the disk is full, which was said before
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def one_form(as_json: bool, as_csv: bool) -> None:
    """Refuse two forms of one answer.

    Raises
    ------
    WrongUsage
        If both are asked for.
    """
    if as_json and as_csv:
        raise WrongUsage("give either --json or --csv, not both")


def refuse_unused(why: str, names: Iterable[str] | None = None, *, but: Iterable[str] = ()) -> None:
    """Refuse options that were given and would play no part, so that nobody believes that they did.

    Parameters
    ----------
    why
        Said after the name of the option.
    names
        Of the parameters that play no part; by default all of the command except those of ``but``.

    Raises
    ------
    WrongUsage
        If one of them stands on the command line.
    """
    context = click.get_current_context()
    for option in (param for param in context.command.params if isinstance(param, click.Option)):
        if option.name in but or (names is not None and option.name not in names):
            continue
        if context.get_parameter_source(str(option.name)) is click.core.ParameterSource.COMMANDLINE:
            raise WrongUsage(f"{option.opts[0]} {why}")


def checked_picture(path: Path) -> None:
    """Refuse the name of a picture that no picture can be written under, before anything is computed for it.

    Raises
    ------
    WrongUsage
        If it does not end in one of ``PICTURES``.
    ModuleNotFoundError
        If nothing is installed that draws.
    """
    if path.suffix.lower() not in PICTURES:
        raise WrongUsage(f"--figure must end in {', '.join(PICTURES)}, got {path.name!r}")
    if importlib.util.find_spec("matplotlib") is None:
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")


def progress(items: Iterable[Item], label: str, **more: Any) -> ProgressBar[Item]:
    """Return a progress bar on standard error; silent where that is no terminal."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return click.progressbar(items, label=label, file=sys.stderr if terminal else io.StringIO(), **more)


def print_record(data: Mapping[str, Any] | Iterable[Mapping[str, Any]], overrides: Sequence[str] = ()) -> None:
    """Write a record, or a list of them, as JSON: the one form of ``--json``, with its version and its units."""
    from mlsys.models.record import with_units

    told = with_units(data) if isinstance(data, Mapping) else [with_units(record) for record in data]
    say_json(told, overrides)


def say_json(answer: Mapping[str, object] | Sequence[Mapping[str, object]], overrides: Sequence[str] = ()) -> None:
    """Print data as JSON, with whose numbers they rest on."""
    from mlsys.models.user_overrides import with_user_overrides

    say(json.dumps(with_user_overrides(answer, overrides), indent=1, ensure_ascii=False))


def say_overrides(overrides: Sequence[str]) -> None:
    """Print whose numbers an answer rests on, where not all are ours."""
    if overrides:
        say(f"User overrides: {'; '.join(overrides)}")


def print_csv(
    rows: Iterable[Mapping[str, object]], heads: Iterable[str] | None = None, overrides: Sequence[str] = ()
) -> None:
    """Write rows to standard output, under the heads of the first row unless others are given."""
    if overrides:
        from mlsys.models.user_overrides import with_user_overrides

        rows, heads = with_user_overrides(list(rows), overrides), None if heads is None else [*heads, "user_overrides"]
    say(csv_text(rows, heads), nl=False)


def read_csv(path: Path, columns: Iterable[str]) -> list[dict[str, str]]:
    """Return the rows of a CSV file that must have the named columns.

    Raises
    ------
    ValueError
        If a column is missing, a row is longer or shorter than the head, or there is no row.
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
        raise ValueError(f"{path}: line 1: columns named twice: {', '.join(twice)}. Give each column a name of its own")
    for number, cells in records[1:]:
        if len(cells) != len(heads):
            raise ValueError(f"{path}, line {number}: wanted {len(heads)} cells, one for each column of the first line")
    if not records[1:]:
        raise ValueError(f"{path}: no rows under the first line")
    return [dict(zip(heads, cells, strict=True)) for _, cells in records[1:]]
