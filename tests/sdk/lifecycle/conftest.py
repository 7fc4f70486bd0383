"""Programs that are run as processes of their own, against a scripted server."""

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator

import pytest

from lance_sdk.testing import FakeServer

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """Return a well-behaved server."""
    with FakeServer() as server:
        yield server


@pytest.fixture
def start() -> Iterator[Start]:
    """Return what starts a Python program; whatever still runs in the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def start(program: str, *args: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program), *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def run(start: Start) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Return what runs a Python program to its end, within 20 seconds."""

    def run(program: str, *args: str) -> "subprocess.CompletedProcess[str]":
        process = start(program, *args)
        out, err = process.communicate(timeout=20)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    return run
