"""What many curves need, made once for all of them: logs of several sizes."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.curves.connections import drive
from bench.curves.frames import ACK, LARGE, large, small
from bench.peers import data_directory, served
from lance_sdk import Client

TOPIC = "log"
_BURST = 1024
"""Frames that are made before any of them is sent."""


@dataclass(frozen=True, slots=True)
class Log:
    """A data directory with one topic, `TOPIC`, of batches of 64 KiB.

    Attributes:
        folder: the directory; its server stopped cleanly.
        topic: the topic's number.
    """

    folder: Path
    topic: int


@dataclass(frozen=True, slots=True)
class Topics:
    """A data directory with many small topics.

    Attributes:
        folder: the directory; its server stopped cleanly.
        numbers: the topics'.
    """

    folder: Path
    numbers: list[int]


class Bed:
    """Logs that curves only read, and topics that they add a little to; all end with this."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._logs: dict[int, Log] = {}
        self._topics: dict[int, Topics] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def log(self, size: int) -> Log:
        """Return a log of so many bytes."""
        if size not in self._logs:
            folder = self._stack.enter_context(data_directory())
            with served(data=folder) as server:
                self._logs[size] = Log(folder, filled(server.address, size))
        return self._logs[size]

    def topics(self, count: int) -> Topics:
        """Return so many topics, each with a batch."""
        if count not in self._topics:
            folder = self._stack.enter_context(data_directory())
            with served(data=folder) as server, Client(f"lance://{server.address}") as client:
                numbers = [client.create_topic(f"topic-{each}").id for each in range(count)]
                drive(server.address, [small(number) for number in numbers], ACK)
            self._topics[count] = Topics(folder, numbers)
        return self._topics[count]


def batches(size: int) -> int:
    """Return how many batches of 64 KiB a log of that size has."""
    return max(1, size // len(LARGE))


def filled(address: str, size: int, window: int = 128) -> int:
    """Create `TOPIC`, store so many bytes in it, and return its number.

    Args:
        address: ``host:port``.
        size: how many bytes.
        window: batches on their way at most.
    """
    with Client(f"lance://{address}") as client:
        topic = client.create_topic(TOPIC).id
    left = batches(size)
    while left > 0:
        burst = min(left, _BURST)
        drive(address, [large(topic) for _ in range(burst)], ACK, window)
        left -= burst
    return topic
