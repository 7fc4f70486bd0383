"""The generated class of a message, by the message's name."""

from functools import cache
from importlib import import_module
from typing import Any

from lance_spec.ir.families import families


@cache
def codec(name: str) -> Any:
    """Return the generated class called ``name``; those that nest by family and name.

    Raises:
        KeyError: no family has such a message.
    """
    system, _, short = name.rpartition(".")
    found = [system] if system else _homes(name)
    if not found:
        raise KeyError(f"no generated class {name!r}")
    return getattr(import_module(f"lance_spec.messages.{found[0]}"), short)


def _homes(name: str) -> list[str]:
    """Return the families of flat messages that have a message."""
    return [
        family.name
        for family in families().values()
        if any(name == each.name for each in family.messages)
    ]
