"""``mlsys compile-bench``: speed-up of a compiled network on this machine."""

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from mlsys.cli.common import WrongUsage, kept_inputs, needed_extra, progress, say
from mlsys.cli.parameters import Output, Whole
from mlsys.escaping import printable
from mlsys.files import write_text

_PROBE_ROUNDS, _STEPS = 45, 2  # for the machine's rates; one eager and one compiled call per round


def _with_exit_codes(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn library errors into one line and the exit code of their kind."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        from mlsys.measure.errors import MeasureError, OutputsDifferError

        try:
            with kept_inputs():
                return command(*args, **kwargs)
        except OutputsDifferError as error:
            raise _Different(str(error)) from error
        except MeasureError as error:
            raise _Impossible(str(error)) from error
        except ModuleNotFoundError as missing:
            raise _Wrong(needed_extra(missing)) from missing
        except (ValueError, LookupError, OSError, ImportError) as error:
            raise _Wrong(printable(str(error))) from error

    return wrapped


class _Different(click.ClickException):
    """The compiled model returns different results."""

    exit_code = 1


class _Wrong(click.ClickException):
    """The request is invalid."""

    exit_code = 2


class _Impossible(click.ClickException):
    """The measurement is impossible on this machine."""

    exit_code = 3


@click.command("compile-bench")
@click.argument("model")
@click.option("--batch", type=Whole(min=1), default=1, show_default=True, help="Images or sequences.")
@click.option("--image", type=Whole(min=1), help="Side of a square image.")
@click.option("--sequence", type=Whole(min=1), help="Tokens; by default a typical number for the network.")
@click.option("--freeze", is_flag=True, help="Let the compiler treat the weights as constants.")
@click.option("--passes", is_flag=True, help="Time a convolutional network with one more compiler pass at a time.")
@click.option("--repeats", type=Whole(min=2), default=30, show_default=True, help="Timed rounds.")
@click.option("--warmup", type=Whole(min=1), default=5, show_default=True, help="Warm-up calls.")
@click.option("--threads", type=Whole(min=1), default=1, show_default=True, help="Number of threads.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, including samples.")
@click.option("--output", type=Output(), help="Write the JSON object to a file.")
@_with_exit_codes
def compile_bench(
    model: str, freeze: bool, passes: bool, as_json: bool, output: Path | None, **options: int | None
) -> None:
    """Time MODEL on this CPU in eager PyTorch and compiled by Inductor, and compare with the prediction.

    MODEL is a network known to `mlsys flops` that has PyTorch code, or a `package.module:factory` that returns a torch
    module or (module, inputs).

    The two are timed alternately, round by round. Exit code 0: measured. 1: the compiled model returns different
    results. 2: invalid request. 3: cannot be measured here (no C++ compiler, not enough memory, not compilable).
    """
    if passes and freeze:
        raise WrongUsage("--passes times both with the weights as inputs and frozen: omit --freeze")
    sizes = {name: options[name] for name in ("batch", "image", "sequence")}
    timing = {name: options[name] for name in ("batch", "repeats", "warmup", "threads")}
    with _bar(int(options["repeats"] or 0)) as tick:
        result = _measured(model, sizes, freeze, passes, {**timing, "tick": tick})
    text = json.dumps(result.record(), indent=1, ensure_ascii=False)
    if output is not None:
        write_text(output, text + "\n")
    say(text if as_json else result.explain())


def _measured(model: str, sizes: dict[str, Any], freeze: bool, passes: bool, timing: dict[str, Any]) -> Any:
    """Build the model and measure it."""
    from mlsys import measure

    module, inputs, name = measure.ready_model(model, **sizes)
    if passes:
        return measure.pass_bench(module, inputs, name=name, **timing)
    return measure.compile_bench(module, inputs, name=name, freeze=freeze, **timing)


@contextmanager
def _bar(repeats: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar on standard error; silent if that is not a terminal."""
    rounds = _PROBE_ROUNDS + _STEPS + repeats
    with progress(range(rounds), "compile and time") as bar:
        yield lambda: bar.update(1)
