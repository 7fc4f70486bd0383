"""Public modules that stand elsewhere: the old names work for one more release, and warn."""

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any


def moved(old: str, new: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` (PEP 562) of a module whose names another one has now."""

    def get(name: str) -> Any:
        found = getattr(import_module(new), name)
        if not name.startswith("__"):
            warnings.warn(
                f"{old} is deprecated since 0.2; import {new}", DeprecationWarning, stacklevel=2
            )
        return found

    return get
