"""What a broker to compare with is, and what it shares with the others."""

import importlib.util
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker to compare with.

    Attributes:
        name: in the names of its scenarios.
        program: its server.
        client: the module of its client.
        compared: says what is measured, and how durable it is; the program must be there.
        served: starts it in a process of its own, and yields its port on 127.0.0.1.
        publish: publishes so many copies of a value to the broker on that port, and returns how
            many a second were acknowledged.
        records: how many to publish in a run.
    """

    name: str
    program: str
    client: str
    compared: Callable[[], str]
    served: Callable[[], AbstractContextManager[int]]
    publish: Callable[[int, bytes, int], float]
    records: int


def located(program: str) -> str | None:
    """Return where a program is; distributions keep servers where not every user looks."""
    folders = [os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin"]
    return shutil.which(program, path=os.pathsep.join(folders))


def missing(broker: Broker) -> str | None:
    """Return what would have to be installed first, or None."""
    if located(broker.program) is None:
        return broker.program
    if importlib.util.find_spec(broker.client) is None:
        return f"Python client {broker.client!r}"
    return None


def parse_version(text: str) -> Version:
    """Return the version that a program prints of itself.

    Raises:
        ValueError: there is none in the text.
    """
    found = re.search(r"\bv=?(\d+)\.(\d+)\.(\d+)", text)
    if found is None:
        raise ValueError(f"no version in {text!r}")
    major, minor, patch = map(int, found.groups())
    return major, minor, patch


def version_of(program: str) -> Version:
    """Ask a program for its version.

    Raises:
        OSError: it is not there, or cannot be started.
        subprocess.CalledProcessError: it failed.
        ValueError: it did not say.
    """
    path = located(program) or program
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    return parse_version(said.stdout + said.stderr)


def dotted(version: Version) -> str:
    """Return a version as it is written."""
    return ".".join(map(str, version))


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody uses at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
