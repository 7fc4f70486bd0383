"""What Spark says when a query fails, as the error of this package that is in it."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from lance_sdk import errors
from lance_sdk.errors import LanceError
from lance_sdk.spark import errors as spark_errors
from lance_sdk.spark.errors import SparkFailed

_OURS: Final = re.compile(
    r"(?:^|: )[^\S\n]*(?:lance_sdk|lance_spec)[\w.]*\.(\w+): (.*)$", re.MULTILINE
)
"""An exception's class and its text: the last line of a traceback of Python, or without one."""
_ENDS: Final = re.compile(
    r"\s*(?:at [\w.$/]+\(|SQLSTATE|Traceback|During handling|The above|File \"|$)"
)
"""What does not belong to an exception's text any more."""
_CALLS: Final = (
    "An error occurred while calling ",
    "An exception was thrown from the Python worker:",
)
_FROM_SPARK: Final = ("pyspark.", "py4j.")
_WITHOUT_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"
"""What PySpark's worker looks at when it tells Java of an exception, before it ends."""


@contextmanager
def plainly() -> Iterator[None]:
    """Have a worker of Spark's tell an error of this package without its traceback.

    The first line that a user sees says what went wrong then, and not where in this package.
    """
    try:
        yield
    except LanceError:
        os.environ[_WITHOUT_TRACEBACK] = "1"
        raise


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise what went wrong in a query in this package's words.

    Raises:
        LanceError: of the class that was raised in a task, or on the driver by the source or the
            sink; `SparkFailed` with Spark's first line where Spark itself failed.
    """
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(_FROM_SPARK):
            raise
        found = own_error(str(error))
        if found is None:
            found = SparkFailed(f"Spark: {first_line(error)}")
        raise found from error


def own_error(text: str) -> LanceError | None:
    """Return the error of this package that a text of Spark's tells; None where it tells none."""
    found = list(_OURS.finditer(text))
    if not found:
        return None
    last = found[-1]
    lines = [last[2]]
    for line in text[last.end() :].split("\n")[1:]:
        if _ENDS.match(line):
            break
        lines.append(line.strip())
    return _made(last[1], " ".join(lines).partition(" SQLSTATE")[0])


def first_line(error: Exception) -> str:
    """Return the first line of an error's text that says something.

    Where a call of Java's or a task of Python's failed, that is the second one.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith(_CALLS):
        return lines[1].removeprefix(": ")
    return lines[0] if lines else repr(error)


def _made(name: str, text: str) -> LanceError:
    kind = getattr(errors, name, None) or getattr(spark_errors, name, None)
    if isinstance(kind, type) and issubclass(kind, LanceError):
        try:
            return kind(text)
        except TypeError:  # it is made of more than a text
            pass
    return LanceError(text)
