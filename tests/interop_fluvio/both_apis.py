"""The sync and the async API in one form, so that one test asks both."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from inspect import isawaitable
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from anyio.from_thread import BlockingPortal

from lance_sdk.fluvio import AsyncFluvioClient, AsyncFluvioConsumer, AsyncFluvioProducer

Connect: TypeAlias = Callable[..., AbstractContextManager[Any]]
"""Takes settings and returns a client: `FluvioClient`, or one that looks like it."""
_END: Final = object()


class Blocking:
    """Something of the async API that is used as if it were of the sync one.

    Args:
        portal: where its coroutines run.
        wrapped: a client, a producer or a consumer.
    """

    def __init__(self, portal: BlockingPortal, wrapped: Any) -> None:
        self._portal = portal
        self._wrapped = wrapped

    def __repr__(self) -> str:
        return f"<Blocking {self._wrapped!r}>"

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._wrapped, name)
        if not callable(found):
            return found
        return lambda *given, **named: self._portal.call(self._called, found, given, named)

    async def _called(self, method: Callable[..., Any], given: Any, named: Any) -> Any:
        found = method(*given, **named)
        if isawaitable(found):
            found = await found
        if isinstance(found, AsyncFluvioProducer | AsyncFluvioConsumer):
            return Blocking(self._portal, found)
        return found

    def __enter__(self) -> Self:
        self._portal.call(self._wrapped.__aenter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._portal.call(self._wrapped.__aexit__, kind, error, trace)

    def __iter__(self) -> Iterator[Any]:
        each = aiter(self._wrapped)

        async def following() -> Any:
            return await anext(each, _END)

        while (found := self._portal.call(following)) is not _END:
            yield found


def blocking_client(portal: BlockingPortal, address: str, **options: Any) -> Blocking:
    """Return an async client that looks like a sync one."""

    async def client() -> AsyncFluvioClient:
        return AsyncFluvioClient(address, **options)

    return Blocking(portal, portal.call(client))
