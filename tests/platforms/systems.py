"""Which tests need what only some systems have."""

import os
import sys

import pytest

_WINDOWS = sys.platform == "win32" or os.environ.get("LANCE_PLATFORM") == "windows"


def needs_posix(what: str) -> pytest.MarkDecorator:
    """Return a marker that leaves a test out on Windows, and where packages are shown Windows.

    Args:
        what: the thing that Windows lacks, and what the packages do there, for the report.
    """
    return pytest.mark.skipif(_WINDOWS, reason=f"Windows: {what}")
