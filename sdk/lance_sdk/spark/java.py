"""Whether the Java that Spark needs is there; ``python -m lance_sdk.spark.java``.

As a program it needs nothing but Python, so that it can be asked before anything is installed.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

_LEAST_JAVA: Final = 17
_ADVICE: Final = (
    "Spark 4 needs Java 17 or later: install it (Debian, Ubuntu: apt-get install "
    "openjdk-17-jre-headless) or point JAVA_HOME at one"
)


class NoJava(Exception):  # noqa: N818 - it says what is missing
    """There is no Java that Spark can use; says what to install."""


def check_java() -> int:
    """Return the major version of the Java that Spark will use.

    Raises:
        ConfigError: there is none, or it is too old; says what to install.
    """
    from lance_sdk.errors import ConfigError  # noqa: PLC0415 - the program does without

    try:
        return find_java()
    except NoJava as error:
        raise ConfigError(str(error)) from None


def find_java() -> int:
    """Return the major version of the Java that Spark will use.

    Raises:
        NoJava: there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        where = f"JAVA_HOME={home} has no bin/java" if home else "there is no java on the PATH"
        raise NoJava(f"{where}. {_ADVICE}")
    try:
        told = subprocess.run(  # noqa: S603 - the program that Spark would start
            [java, "-version"], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoJava(f"{java} cannot be run: {error}. {_ADVICE}") from None
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    if found is None or int(found[1]) < _LEAST_JAVA:
        version = found[1] if found else "of an unknown version"
        raise NoJava(f"{java} is Java {version}. {_ADVICE}")
    return int(found[1])


def main() -> int:
    """Say which Java there is, or what to install; return the exit code."""
    try:
        version = find_java()
    except NoJava as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write(f"Java {version}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
