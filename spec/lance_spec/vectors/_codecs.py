"""The generated class of a message, by the message's name."""

from functools import cache
from importlib import import_module
from typing import Any

from lance_spec.families import families


@cache
def codec(name: str) -> Any:
    """Return the generated class called ``name``.

    Raises:
        KeyError: no family has such a message.
    """
    for family in families().values():
        if any(name == each.name for each in family.messages):
            return getattr(import_module(f"lance_spec.messages.{family.name}"), name)
    raise KeyError(f"no generated class {name!r}")
