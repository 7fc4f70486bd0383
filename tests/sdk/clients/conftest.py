"""Behaviour is tested once and run on three clients: threads, asyncio, trio."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Self

import pytest
import trustme
from anyio import to_thread

from lance_sdk import (
    AsyncClient,
    AsyncConsumer,
    AsyncProducer,
    Client,
    Consumer,
    Deliveries,
    Delivery,
    Producer,
)
from lance_sdk.testing import FakeServer
from lance_spec.dialect import DEPLOYED

_END = object()


class Threaded:
    """A sync object behind async names: every call runs in a worker thread."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def __repr__(self) -> str:
        return repr(self.target)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.target, name)
        if not callable(value) or name in {"stats", "done", "exception", "add_done_callback"}:
            return value
        if name in {"batches", "values"}:
            return lambda: _iterate(value())
        return partial(_call, value)

    def __await__(self) -> Any:
        return _call(self.target.result).__await__()

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


async def _call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    result = await to_thread.run_sync(partial(function, *args, **kwargs))
    return Threaded(result) if isinstance(result, Delivery | Deliveries) else result


async def _iterate(iterator: Iterator[Any]) -> AsyncIterator[Any]:
    while (item := await to_thread.run_sync(next, iterator, _END)) is not _END:
        yield item


class Lifecycle:
    """Makes the three objects of one client.

    Args:
        name: threads, asyncio or trio.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def _make(self, sync: Any, async_: Any, url: str, options: dict[str, Any]) -> Any:
        options = {"backoff_base": 0.001, **options}
        return Threaded(sync(url, **options)) if self.name == "threads" else async_(url, **options)

    def producer(self, url: str, **options: Any) -> Any:
        """Return a producer with async methods."""
        return self._make(Producer, AsyncProducer, url, options)

    def consumer(self, url: str, **options: Any) -> Any:
        """Return a consumer with async methods."""
        return self._make(Consumer, AsyncConsumer, url, options)

    def client(self, url: str, **options: Any) -> Any:
        """Return a client with async methods."""
        return self._make(Client, AsyncClient, url, options)


@pytest.fixture(params=["threads", "asyncio", "trio"])
def api(request: pytest.FixtureRequest) -> Lifecycle:
    """Return each client in turn."""
    return Lifecycle(request.param)


@pytest.fixture
def anyio_backend(api: Lifecycle) -> str:
    """Run the test on the client's own event loop; threads need any."""
    return "trio" if api.name == "trio" else "asyncio"


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """Return a well-behaved server of dialect `specified`."""
    with FakeServer() as server:
        yield server


@pytest.fixture
def deployed() -> Iterator[FakeServer]:
    """Return a server of dialect `deployed`."""
    with FakeServer(DEPLOYED) as server:
        yield server


@pytest.fixture
def until() -> Callable[[FakeServer, Callable[[], bool]], Awaitable[None]]:
    """Return what waits, off the event loop, for something to be true of a server."""

    async def wait(server: FakeServer, condition: Callable[[], bool]) -> None:
        await to_thread.run_sync(server.wait_for, condition)

    return wait


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """Return a certificate authority, made for this run."""
    return trustme.CA()


@pytest.fixture
def tls_server(authority: trustme.CA) -> Iterator[FakeServer]:
    """Return a server that speaks TLS and is called localhost."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with FakeServer(tls=context) as server:
        yield server


@pytest.fixture
def tls_context(authority: trustme.CA) -> ssl.SSLContext:
    """Return a client's context that trusts that server."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context
