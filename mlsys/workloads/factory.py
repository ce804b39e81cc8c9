"""Import of user modules given as ``package.module:factory``."""

import contextlib
import importlib
import sys
from typing import Any

from mlsys.errors import ArgumentError, did_you_mean, first_line

_SHOWN = 100


def module_of(model: str, *, meta: bool) -> tuple[Any, Any, str]:
    """Return the module made by ``package.module:factory``, its example inputs or None, and its name.

    Parameters
    ----------
    model
        ``package.module:factory``; the current folder is searched, too. The factory takes no arguments and returns a
        ``torch.nn.Module`` or ``(module, example_inputs)``, or is a module itself.
    meta
        Whether to build it without allocating weights.

    Raises
    ------
    ArgumentError
        If the package or factory does not exist, or returns something else.

    Examples
    --------
    >>> module_of("torch.nn:Identity", meta=True)
    (Identity(), None, 'Identity')
    """
    factory, name = named_object(model), model.partition(":")[2]
    import torch

    try:
        # output of user code must not mix with ours, which may be JSON
        with contextlib.redirect_stdout(sys.stderr), torch.device("meta" if meta else "cpu"):
            made = factory if isinstance(factory, torch.nn.Module) else factory()
    except TypeError as error:
        raise ArgumentError(f"{model!r} cannot be called without arguments: {first_line(error)}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # user code may raise anything
        raise ArgumentError(f"{model!r} failed to build a module: {_message(error)}") from error
    module, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(module, torch.nn.Module):
        raise ArgumentError(
            f"{model!r} returned {type(module).__name__}; expected a torch.nn.Module or (module, example_inputs)"
        )
    return module, inputs, name


def named_object(model: str) -> Any:
    """Return the object named by ``package.module:name``; the current folder is searched, too.

    Raises
    ------
    ArgumentError
        If the package does not exist, or has no such name.

    Examples
    --------
    >>> named_object("math:pi")
    3.141592653589793
    """
    home, _, name = model.partition(":")
    if not name.isidentifier() or not all(part.isidentifier() for part in home.split(".")):
        raise ArgumentError(
            f"{model[:_SHOWN]!r} must be package.module:factory, not a path. Run it in the folder of the module"
        )
    sys.path.insert(0, "")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            module = importlib.import_module(home)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # user code may raise anything
        file, dot, ending = home.rpartition(".")
        advice = f"Write {file}:{name}" if dot and ending == "py" else "Run it in the folder of the module"
        raise ArgumentError(f"{model!r}: cannot import {home!r}: {_message(error)}. {advice}") from error
    finally:
        sys.path.remove("")
    try:
        factory = getattr(module, name, None)
    except Exception as error:
        raise ArgumentError(f"{model!r}: {home} has no {name!r}: {_message(error)}") from error
    if factory is None:
        raise ArgumentError(f"{model!r}: {home} has no {name!r}.{did_you_mean(name, vars(module))}")
    return factory


def _message(error: BaseException) -> str:
    text = first_line(error)
    return text if text == type(error).__name__ else f"{type(error).__name__}: {text}"
