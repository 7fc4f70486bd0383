"""The generated classes of other systems' messages, by name."""

from importlib import import_module
from typing import Any


def codec(name: str) -> Any:
    """Return the generated class called ``family.Message``.

    Raises:
        KeyError: there is none.
    """
    family, _, message = name.partition(".")
    try:
        return getattr(import_module(f"lance_spec.messages.{family}"), message)
    except (ModuleNotFoundError, AttributeError):
        raise KeyError(f"no generated class {name!r}") from None
