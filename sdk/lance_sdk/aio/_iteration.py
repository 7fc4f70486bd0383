"""Iteration over what a coroutine function returns."""

from collections.abc import Awaitable, Callable
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class UntilNone(Generic[T]):
    """Iterates until None; unlike an async generator it may be left without being closed.

    Args:
        advance: returns the next item, or None at the end.
    """

    __slots__ = ("_next",)

    def __init__(self, advance: Callable[[], Awaitable[T | None]]) -> None:
        self._next = advance

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if (item := await self._next()) is None:
            raise StopAsyncIteration
        return item
