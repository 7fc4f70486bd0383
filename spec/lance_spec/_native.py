"""The compiled loops, where they were built and are wanted."""

import os
from types import ModuleType
from typing import Final


def _load() -> ModuleType | None:
    if os.environ.get("LANCE_PURE_PYTHON"):
        return None
    try:
        from lance_spec import _accelerator  # noqa: PLC0415 - it may not have been built
    except ImportError:
        return None
    is_current = hasattr(_accelerator, "FrameFields")  # else it was built of older sources
    return _accelerator if is_current else None


accelerator: Final = _load()
"""The compiled module; None without a compiler at installation or with ``LANCE_PURE_PYTHON`` set.

Everything it does is also there in Python, which judges whatever it stops at: the two differ in
speed alone.
"""
