"""The Java side of a session, and the Python that it starts.

Spark starts Java with an incubator module that only its machine learning uses. No option leaves the
module out, and Java writes a line about it before any code of Spark runs: the first line that a
user would see.

Spark puts PySpark, as an archive of sources, before everything else that Python finds. So each of
the ten Pythons that a query starts would compile it again, which takes half a second.
"""

import os
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark import SparkConf

_STDERR: Final = 2
_LAST_WORDS: Final = 2.0
"""Seconds to wait for what a Java has said that ended at once."""
_PROBE: Final = 30.0
"""Seconds that starting a Python may take."""
_NOTICE: Final = b"WARNING: Using incubator modules: "


def quick_python(folder: Path) -> str:
    """Return a Python for Spark that finds PySpark where it is installed, and compiled.

    Args:
        folder: where it is put; it has to last as long as Java runs.

    Returns:
        This Python itself, where a folder's programs cannot be run.
    """
    program = folder / "python"
    path = shlex.quote(os.environ.get("PYTHONPATH", ""))
    start = f'exec {shlex.quote(sys.executable)} "$@"'
    program.write_text(f"#!/bin/sh\nPYTHONPATH={path}\nexport PYTHONPATH\n{start}\n")
    program.chmod(0o700)
    try:
        subprocess.run(  # noqa: S603 - the program that was just written
            [program, "-c", ""], check=True, capture_output=True, timeout=_PROBE
        )
    except (OSError, subprocess.SubprocessError):
        return sys.executable
    return str(program)


def start_java(conf: "SparkConf") -> None:
    """Start Java as PySpark would, unless it runs, and pass on what it writes to standard error.

    Args:
        conf: settings that Java needs when it starts.

    Raises:
        PySparkRuntimeError: it does not start; what it said of that has been passed on.
    """
    from pyspark import SparkContext  # noqa: PLC0415 - heavy
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415 - likewise
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - likewise

    if SparkContext._gateway is not None:  # noqa: SLF001 - PySpark keeps it nowhere else
        return
    reading, writing = os.pipe()
    listener = Thread(target=_pass_on, args=(reading,), name="lwp-java", daemon=True)
    listener.start()
    try:
        with os.fdopen(writing, "wb") as stderr:
            gateway = launch_gateway(conf, popen_kwargs={"stderr": stderr})
    except PySparkRuntimeError:
        listener.join(_LAST_WORDS)
        raise
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - it takes one nowhere else


def _pass_on(descriptor: int) -> None:
    """Write every line to standard error but Java's own notice."""
    with open(descriptor, "rb") as lines:
        for line in lines:
            if not line.startswith(_NOTICE):
                with suppress(OSError):  # nobody reads it; Java must not wait for that
                    os.write(_STDERR, line)
