"""Bad cases for every command and every option that there is, found by walking the tree of commands.

What is added to the command line later is in the corpus at once: an option gets the bad values of its type, a switch is
added to a question that is wrong otherwise, and every option once stands without its value.
"""

from collections.abc import Iterator
from typing import Any

import click

__all__ = ["commands", "option_pool", "walked"]


def commands(group: Any = None, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command that does something, with the words that call it."""
    from mlsys.cli import main

    group = main if group is None else group
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*before, name))
        else:
            yield (*before, name), command


def option_pool(grammar: dict[str, Any], words: tuple[str, ...], option: click.Option) -> str:
    """Return which pool has the bad values of an option."""
    from mlsys.cli.parameters import Finite, Output, OutputFolder, QuantityType, Whole

    name, kind, types = option.opts[0], option.type, grammar["types"]
    if (path := " ".join((*words, name))) in grammar["places"]:
        return str(grammar["places"][path])
    if isinstance(kind, QuantityType):
        return f"amount {kind.unit}"
    if isinstance(kind, click.Choice):
        return str(types["choice"])
    if isinstance(kind, (Output, OutputFolder)):
        return str(types["write" if isinstance(kind, Output) else "write folder"])
    if isinstance(kind, click.Path):
        return str(types["read"])
    if isinstance(kind, (Whole, Finite)):
        return str(types["whole" if isinstance(kind, Whole) else "number"])
    texts: dict[str, str] = grammar["texts"]
    assert name in texts, f"no pool of bad values for {name}: give it one in tests/torture/commands.yaml"
    return texts[name]


def limits(option: click.Option) -> Iterator[str]:
    """Yield the numbers just outside the limits of an option."""
    kind: Any = option.type
    if isinstance(kind, (click.IntRange, click.FloatRange)):
        if kind.min is not None:
            yield f"{kind.min - 1:g}"
        if kind.max is not None:
            yield f"{kind.max + 1:g}"


def walked(grammar: dict[str, Any], pool: Any) -> Iterator[dict[str, Any]]:
    """Yield what is a case, for every option that the bases of the grammar do not name.

    Parameters
    ----------
    grammar
        Of the commands; ``pool`` gives the values of a pool of it by name.
    """
    named = {
        (command, option)
        for base in grammar["bases"]
        for command, _ in commands()
        if tuple(base["words"][: len(command)]) == command
        for option in base["options"]
    }
    for words, command in commands():
        example = grammar["walked"][" ".join(words)]
        right, wrong, files = (*words, *example["right"]), (*words, *example["wrong"]), example.get("files", {})
        yield {"words": (*right, "--no-such-option"), "files": files}
        for option in (param for param in command.params if isinstance(param, click.Option)):
            if option.is_flag:
                for switch in (*option.opts, *option.secondary_opts):
                    yield {"words": (*wrong, switch)}
                continue
            name = option.opts[-1]
            yield {"words": (*right, name), "files": files, "names": name}
            if (words, name) in named:
                continue
            for value in dict.fromkeys([*pool(option_pool(grammar, words, option)), *limits(option)]):
                given = value.replace("{long}", "n" * 3000)
                yield {"words": (*_without(right, name), name, given), "files": files, "names": name}


def _without(words: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Return the words without an option that is given once already."""
    if name not in words or name == "--point":
        return words
    position = words.index(name)
    return (*words[:position], *words[position + 2 :])
