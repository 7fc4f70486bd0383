"""Senders are tested once and run on three clients: threads, asyncio, trio."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from anyio import to_thread

from lance_sdk.journal import AsyncStoreAndForwardSender, StoreAndForwardSender
from lance_sdk.testing import FakeServer


class Threaded:
    """A sync sender behind async names: every call runs in a worker thread."""

    def __init__(self, target: StoreAndForwardSender) -> None:
        self.target = target

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.target, name)
        return partial(_call, value) if callable(value) and name != "stats" else value

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
    return await to_thread.run_sync(partial(function, *args, **kwargs))


class Lifecycle:
    """Makes the senders of one client.

    Args:
        name: threads, asyncio or trio.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def sender(self, url: str, path: Path | None = None, **options: Any) -> Any:
        """Return a sender with async methods."""
        options = {"backoff_base": 0.001, "on_missing_topic": "create", **options}
        if self.name == "threads":
            return Threaded(StoreAndForwardSender(url, path, **options))
        return AsyncStoreAndForwardSender(url, path, **options)


@pytest.fixture(params=["threads", "asyncio", "trio"])
def api(request: pytest.FixtureRequest) -> Lifecycle:
    """Return each client in turn."""
    return Lifecycle(request.param)


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run the test on the client's own event loop; threads need any."""
    apis = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    return "trio" if apis.get("api") == "trio" else "asyncio"


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """Return a well-behaved server of dialect `specified` with the topic ``readings``."""
    with FakeServer(topics=("readings",)) as server:
        yield server
