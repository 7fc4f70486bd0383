"""Tokens that a function returns, fresh for every connection."""

import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from lance_sdk.errors import ConfigError, DeadlineExceeded

TokenSource: TypeAlias = Callable[[], str] | Callable[[], Awaitable[str]]
"""What the ``token`` option is when it is not text."""


def checked(token: object) -> str:
    """Return what a token function returned, when it is a token.

    Raises:
        ConfigError: the token is not text.
    """
    if isinstance(token, str):
        return token
    if inspect.iscoroutine(token):
        token.close()  # or Python would complain that nobody awaited it
        raise ConfigError("token: an async function needs an async API, such as AsyncProducer")
    raise ConfigError(f"token: its function returned {type(token).__name__} instead of text")


def late(timeout: float) -> DeadlineExceeded:
    """Return the error for a token that does not come."""
    return DeadlineExceeded(f"the token function took over {timeout:.1f} s (connect_timeout)")


class TokenCall:
    """One call of a token function, on a thread of its own, so that it may hang.

    Args:
        source: the function.
        done: called on that thread when it has ended.

    Attributes:
        finished: whether it has ended.
    """

    def __init__(self, source: TokenSource, done: Callable[[], object]) -> None:
        self._source = source
        self._done = done
        self._result: object = None
        self._error: Exception | None = None
        self.finished = False
        threading.Thread(target=self._run, name="lance token", daemon=True).start()

    def __repr__(self) -> str:
        return f"<TokenCall finished={self.finished}>"

    def _run(self) -> None:
        try:
            self._result = self._source()
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            self._error = error
        self.finished = True
        self._done()

    def token(self) -> str:
        """Return the token, or raise what the function raised."""
        if self._error is not None:
            raise self._error
        return checked(self._result)
