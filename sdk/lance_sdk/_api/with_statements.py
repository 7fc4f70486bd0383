"""``with`` where ``async with`` is needed, and the other way round: says so.

Only at run time: a type checker finds the mistake by itself.
"""

from typing import TYPE_CHECKING, Any, NoReturn


class OpenedByWith:
    """Base of the classes of the sync API."""

    if not TYPE_CHECKING:

        async def __aenter__(self) -> NoReturn:
            name = type(self).__name__
            raise TypeError(f"{name} is opened by a plain `with`; `async with` takes Async{name}")

        async def __aexit__(self, *_: Any) -> None:
            """Never called."""


class OpenedByAsyncWith:
    """Base of the classes of the async API."""

    if not TYPE_CHECKING:

        def __enter__(self) -> NoReturn:
            name = type(self).__name__
            raise TypeError(f"{name} is opened by `async with`; a plain `with` takes {name[5:]}")

        def __exit__(self, *_: Any) -> None:
            """Never called."""
