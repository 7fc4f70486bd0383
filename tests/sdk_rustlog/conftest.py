"""A broker, and clients of both APIs in both dialects."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from lance_sdk.rustlog import AsyncRustlogClient, RustlogClient
from lance_server.listeners.rustlog.testing import Broker, broker

APIS = ("threads", "asyncio", "trio")


class Threaded:
    """A client for threads behind async names: every call runs in a worker thread."""

    def __init__(self, target: RustlogClient) -> None:
        self._target = target

    def __repr__(self) -> str:
        return repr(self._target)

    def __getattr__(self, name: str) -> Any:
        return partial(to_thread.run_sync, _called, getattr(self._target, name))

    async def records(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        """Yield what the client yields."""
        records = self._target.records(*args, **options)
        while (record := await to_thread.run_sync(next, records, None)) is not None:
            yield record


def _called(method: Callable[..., Any], *args: Any) -> Any:
    """Call a method; keywords come as the last argument, in a `Options`."""
    if args and isinstance(args[-1], Options):
        return method(*args[:-1], **args[-1])
    return method(*args)


class Options(dict[str, Any]):
    """Keywords on their way to a thread."""


class Client:
    """A client of one of the clients, called the same way."""

    def __init__(self, api: str, address: str, **options: Any) -> None:
        self._threaded = api == "threads"
        self._client: Any = (
            Threaded(RustlogClient(address, **options))
            if self._threaded
            else AsyncRustlogClient(address, **options)
        )

    def __repr__(self) -> str:
        return repr(self._client)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if not self._threaded or name == "records":
            return found
        return lambda *args, **options: found(*args, Options(options))


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    """Return the client that is tested."""
    return str(request.param)


@pytest.fixture
def anyio_backend(api: str) -> str:
    """Return what the test runs on."""
    return "trio" if api == "trio" else "asyncio"


@pytest.fixture
def rustlog(tmp_path: Path) -> Iterator[Broker]:
    """Return a broker."""
    with broker(tmp_path / "data") as running:
        yield running


@pytest.fixture
def address(rustlog: Broker) -> str:
    """Return where the broker is."""
    host, port = rustlog.address
    return f"{host}:{port}"


@pytest.fixture
async def client(api: str, address: str) -> AsyncIterator[Client]:
    """Return a client that speaks binary, at a broker with the topic ``demo``."""
    found = Client(api, address)
    await found.create_topic("demo", partitions=2)
    yield found
    await found.close()


@pytest.fixture
async def in_json(api: str, address: str, client: Client) -> AsyncIterator[Client]:
    """Return a client that speaks JSON, at the same broker."""
    del client
    found = Client(api, address, dialect="json")
    yield found
    await found.close()
