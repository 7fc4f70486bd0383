"""Reading to the end of a topic, and giving up when nothing comes."""

import threading
from typing import Any

import pytest

from lance_sdk.cli._settings import Settings
from lance_sdk.cli.console.exit_codes import Failure
from lance_sdk.cli.records.batch_reader import to_the_end
from lance_sdk.types import RecordBatch

BATCHES = [RecordBatch("t", 0, 1, b"\1\0\0\0\0"), RecordBatch("t", 5, 1, b"\1\0\0\0\0")]


class Topic:
    """A consumer of two batches; behind them is the end, or silence."""

    def __init__(self, *, ends: bool) -> None:
        self._left = list(BATCHES)
        self._ends = ends

    def poll(self, timeout: float) -> RecordBatch | None:
        """The next batch, the end, or nothing within the time."""
        if self._left:
            return self._left.pop(0)
        if not self._ends:
            threading.Event().wait(timeout)
        return None


def read(topic: Any) -> list[RecordBatch]:
    """Everything, with little patience."""
    return list(to_the_end(topic, Settings(timeout=0.02)))


def test_reading_stops_at_the_end() -> None:
    """All batches, no error."""
    assert read(Topic(ends=True)) == BATCHES


def test_silence_is_told_after_the_timeout() -> None:
    """A consumer reconnects for ever; a command does not wait for ever."""
    with pytest.raises(Failure, match=r"nothing came for 0\.02 s"):
        read(Topic(ends=False))
