"""A driver that runs blocks of a page, and dies in a transaction of SQLite or just behind it."""

import contextlib
import functools
import json
import os
import signal
import sqlite3
import sys
from types import TracebackType
from typing import Any, Literal

SAID = json.loads(sys.argv[1])


def reach(step: str) -> None:
    """Die here, if that is wanted."""
    if SAID["step"] == step:
        os.kill(os.getpid(), signal.SIGKILL)


class Mortal(sqlite3.Connection):
    """A connection whose process dies at a step."""

    def executemany(self, *args: Any) -> sqlite3.Cursor:
        """Change rows; nothing is committed yet."""
        cursor = super().executemany(*args)
        reach("executed")
        return cursor

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        """Commit."""
        super().__exit__(kind, error, trace)
        reach("committed")
        return False


vars(sqlite3)["connect"] = functools.partial(sqlite3.connect, factory=Mortal)
with contextlib.ExitStack() as stack:
    names = {"__name__": "page", "stack": stack}
    for code in SAID["blocks"]:
        exec(code, names)
