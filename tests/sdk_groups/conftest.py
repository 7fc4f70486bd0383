"""Members of groups on three clients, with a real coordinator and a real server."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import pytest
from anyio import to_thread

from lance_sdk import Client, Producer, TopicNotFound
from lance_sdk.groups import AsyncGroupConsumer, Coordinator, GroupConsumer
from lance_server import running
from lance_server.embedded import EmbeddedServer

_END = object()
_AT_ONCE = {"position", "committed", "stats"}
"""Methods that wait for nothing, whichever API has them."""


class Threaded:
    """A sync member behind async names: every call runs in a worker thread."""

    def __init__(self, target: GroupConsumer) -> None:
        self.target = target

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.target, name)
        if name == "batches":
            return lambda: _iterate(value())
        if name in _AT_ONCE or not callable(value):
            return value
        return lambda *args, **options: to_thread.run_sync(partial(value, *args, **options))

    def __aiter__(self) -> AsyncIterator[Any]:
        return _iterate(iter(self.target))

    async def __aenter__(self) -> Self:
        await to_thread.run_sync(self.target.__enter__)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await to_thread.run_sync(self.target.__exit__, kind, error, traceback)


async def _iterate(iterator: Iterator[Any]) -> AsyncIterator[Any]:
    while (item := await to_thread.run_sync(next, iterator, _END)) is not _END:
        yield item


@pytest.fixture(params=["threads", "asyncio", "trio"])
def api(request: pytest.FixtureRequest) -> str:
    """Return the name of each client in turn."""
    return str(request.param)


@pytest.fixture
def anyio_backend(api: str) -> str:
    """Run the test on the client's own event loop; threads need any."""
    return "trio" if api == "trio" else "asyncio"


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    """Return a server for all tests of a module; each has topics of its own."""
    with running() as server:
        yield server


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    """Return a coordinator that is quick."""
    with Coordinator("127.0.0.1:0", heartbeat_interval=0.05) as coordinator:
        yield coordinator


class Topics:
    """Topics of one test.

    Attributes:
        names: of the topics.
    """

    def __init__(self, server: EmbeddedServer, count: int) -> None:
        self._server = server
        self.names = [f"{uuid4().hex[:8]}-{number}" for number in range(count)]
        for name in self.names:
            self.append(name, 10)

    def append(self, name: str, count: int, first: int = 0) -> None:
        """Add records that are their own numbers; create the topic when it is not there."""
        append(self._server.url, name, count, first)


def append(server: str, name: str, count: int, first: int = 0) -> None:
    """Add records that are their own numbers to a topic of a server."""
    with Producer(f"{server}/{name}", create_topic=True) as producer:
        for number in range(first, first + count):
            producer.send(b"%d" % number)


@pytest.fixture
def topics(server: EmbeddedServer) -> Iterator[Topics]:
    """Return four topics with ten records each; they go when the test ends."""
    topics = Topics(server, 4)
    yield topics
    with Client(server.url) as client:
        for name in topics.names:
            with suppress(TopicNotFound):  # a test deleted it itself
                client.delete_topic(name)


@pytest.fixture
def member(
    api: str, server: EmbeddedServer, coordinator: Coordinator, topics: Topics
) -> Callable[..., Any]:
    """Return what makes members of the group ``g``, with async methods."""

    def make(*, at: str = "", **options: Any) -> Any:
        kind: Any = GroupConsumer if api == "threads" else AsyncGroupConsumer
        chosen = {
            "group": "g",
            "topics": topics.names,
            "coordinator": coordinator.url,
            "session_timeout": 10.0,
            "poll_interval": 0.01,
            "backoff_base": 0.001,
            "coordinator_options": {"backoff_base": 0.001, "backoff_cap": 0.05},
            **options,
        }
        made = kind(at or server.url, **chosen)
        return Threaded(made) if api == "threads" else made

    return make
