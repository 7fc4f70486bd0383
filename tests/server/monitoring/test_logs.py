"""Log lines: they never make the server wait for a reader who does not read."""

import json
import logging
import os
from collections.abc import Iterator

import pytest

from lance_server.telemetry.logs import DescriptorHandler, JsonFormatter

BOUND = 10_000
"""Lines that no pipe holds."""


class Pipe:
    """A handler that writes into a pipe, which nobody reads until it is asked for."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._descriptors = [self._reading, writing]
        self.handler = DescriptorHandler(writing, write_timeout_ms=0)

    def log(self, text: str) -> None:
        """Log a line."""
        self.handler.handle(logging.LogRecord("x", logging.INFO, "f", 1, text, (), None))

    def fill(self, text: str) -> int:
        """Log until lines are lost; return how many were logged."""
        for count in range(1, BOUND):
            self.log(text)
            if self.handler.lost == 2:
                return count
        raise AssertionError("no line was lost")

    def read(self) -> str:
        """Return all that is in the pipe."""
        data = b""
        try:
            while part := os.read(self._reading, 1 << 20):
                data += part
        except BlockingIOError:
            pass
        return data.decode()

    def close(self) -> None:
        """Close both ends."""
        for each in self._descriptors:
            os.close(each)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """Yield a handler on a pipe."""
    made = Pipe()
    yield made
    made.close()


def test_lines_are_written_as_they_come(pipe: Pipe) -> None:
    """Nothing is added, nothing waits."""
    pipe.log("one")
    pipe.log("zw\u00f6lf \ud800")
    assert pipe.read() == "one\nzw\u00f6lf \\ud800\n"


def test_a_pipe_that_nobody_reads_holds_nobody_up(pipe: Pipe) -> None:
    """What it does not take is lost, and what it took is whole."""
    count = pipe.fill("x" * 99)
    assert pipe.read().startswith("x" * 99 + "\n" + "x" * 99)
    assert count > 100


def test_a_reader_that_comes_back_learns_what_was_lost(pipe: Pipe) -> None:
    """Before the next line, on a line of its own."""
    pipe.fill("x" * 99)
    pipe.read()
    pipe.log("back")
    pipe.log("and on")
    told = pipe.read().splitlines()[-3:]
    assert told == ["2 lines of this log were lost: nobody read them", "back", "and on"]
    assert pipe.handler.lost == 0


def test_a_line_that_was_cut_ends_before_the_next(pipe: Pipe) -> None:
    """A long one may be lost half way."""
    pipe.fill("y" * 9999)
    pipe.read()
    pipe.log("back")
    assert pipe.read().lstrip("y\n").startswith("2 lines of this log were lost")


def test_the_word_about_lost_lines_has_the_form_of_the_others(pipe: Pipe) -> None:
    """Whoever reads JSON gets JSON."""
    pipe.handler.setFormatter(JsonFormatter(7))
    pipe.fill("x")
    pipe.read()
    pipe.log("back")
    lost, back = (json.loads(line) for line in pipe.read().splitlines()[-2:])
    assert (lost["level"], lost["node_id"], back["message"]) == ("warning", 7, "back")
