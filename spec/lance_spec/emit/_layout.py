"""Laying out Python source by the rules of the formatter, so that its output needs none."""

import textwrap
from collections.abc import Sequence

WIDTH = 100


def call(indent: int, head: str, arguments: Sequence[str], tail: str = ")") -> list[str]:
    """Return a call: on one line, on an indented second line, or one argument a line.

    Args:
        indent: columns before the statement.
        head: the text up to and including the opening bracket.
        arguments: the arguments.
        tail: the closing bracket and what follows it.
    """
    pad = " " * indent
    inner = ", ".join(arguments)
    line = f"{pad}{head}{inner}{tail}"
    if len(line) <= WIDTH:
        return [line]
    if len(pad) + 4 + len(inner) <= WIDTH:
        return [f"{pad}{head}", f"{pad}    {inner}", f"{pad}{tail}"]
    return [f"{pad}{head}", *(f"{pad}    {each}," for each in arguments), f"{pad}{tail}"]


def imported(module: str, names: Sequence[str]) -> list[str]:
    """Return an import, one name a line when it does not fit on one line."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return [line]
    return [f"from {module} import (", *(f"    {each}," for each in names), ")"]


def assignment(indent: int, names: Sequence[str], value: str) -> list[str]:
    """Return ``a, b = value``, with the targets one a line when they do not fit."""
    pad = " " * indent
    targets = ", ".join(names) if len(names) > 1 else f"({names[0]},)"
    line = f"{pad}{targets} = {value}"
    if len(line) <= WIDTH:
        return [line]
    return [f"{pad}(", *(f"{pad}    {each}," for each in names), f"{pad}) = {value}"]


def docstring(indent: int, text: str, more: Sequence[str] = ()) -> list[str]:
    """Return a docstring of one sentence and further paragraphs."""
    pad = " " * indent
    line = f'{pad}"""{text}"""'
    if not more and len(line) <= WIDTH:
        return [line]
    lines = [f'{pad}"""{text}']
    for paragraph in more:
        lines += ["", *(pad + each for each in textwrap.wrap(paragraph, WIDTH - indent))]
    return [*lines, f'{pad}"""']
