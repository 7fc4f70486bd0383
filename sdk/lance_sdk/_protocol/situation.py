"""The situation of a session, for the texts of errors."""

from dataclasses import dataclass

from lance_sdk._errors.advice import advice, words
from lance_sdk._errors.base import LanceError
from lance_sdk._errors.server import (
    AccessDenied,
    AuthenticationFailed,
    AuthenticationRequired,
    ServerError,
)


@dataclass(frozen=True, slots=True)
class Situation:
    """Where a session stands.

    Attributes:
        server: the server in use, or that is tried next, as ``host:port``.
        ready: whether there is a connection that can be used.
        cause: why the last connection ended, or the last attempt at one; None while all is well.
    """

    server: str = "the server"
    ready: bool = False
    cause: Exception | None = None

    def sentence(self, last: Exception | None = None) -> str:
        """Return how things stand, and what to do.

        Args:
            last: what was last said about what the error is about; by default what ended the last
                connection.
        """
        cause = last or self.cause
        if cause is None and self.ready:
            return "The server has not answered yet; look at its log and at its disk."
        if cause is None:
            return f"There is no connection yet. {advice(None)}"
        return f"{_said(cause, ready=self.ready)} {advice(cause)}"


def about_access(error: ServerError, server: str) -> ServerError:
    """Return a refusal for want of rights with the server and what to do; others as they are."""
    if not isinstance(error, AccessDenied | AuthenticationFailed | AuthenticationRequired):
        return error
    text = f"{server} refuses: {error.message.rstrip('.')}. {advice(error)}"
    return type(error)(text, code=error.code, details=error.details)


def _said(cause: Exception, *, ready: bool) -> str:
    if isinstance(cause, ServerError):
        said = str(cause)
        return f"The server last said: {said if said.endswith(')') else f'{said}.'}"
    text = words(cause)
    if isinstance(cause, LanceError):
        return f"{text[:1].upper()}{text[1:].removesuffix('.')}."
    return f"The last connection ended: {text}." if ready else f"There is no connection: {text}."
