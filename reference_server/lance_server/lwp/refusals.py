"""Refusals of the server: one error that both dialects can word."""

from collections.abc import Mapping
from typing import Any, Final

from lance_server.storage.contract import DISK_FULL, UndecidedError
from lance_spec.enums import ErrorCode

_WORDS: Final = {
    ErrorCode.BACKPRESSURE: "Rate limit exceeded: ",
    ErrorCode.CONNECTION_LIMIT: "Rate limit exceeded: ",
    ErrorCode.CLUSTER_NOT_READY: "FORWARD_FAILED: ",
    ErrorCode.QUORUM_NOT_REACHED: "FORWARD_FAILED: Quorum not reached: ",
}
"""How the published server begins a refusal that may pass: clients try again where they read it."""


class Refusal(Exception):  # noqa: N818 - it is an answer to a request, not a failure of the server
    """A request that is answered with an ErrorResponse (LWP section 12, AMB-10).

    Attributes:
        code: the code of LWP section 12.2.
        message: a sentence for people.
        details: what JSON errors add.
        text: how the published server words it, for clients that match on the words; by default its
            beginning for a code that may pass, and the message.
        ends_connection: whether nothing more is answered on a connection whose batch is refused so:
            the client goes on at another host, and sends the batches after it again, in order.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        text: str | None = None,
        ends_connection: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = dict(details or {})
        self.text = text or _WORDS.get(code, "") + message
        self.ends_connection = ends_connection

    def __repr__(self) -> str:
        return f"<Refusal {self.code.name}: {self.message}>"


class TopicClosedError(OSError):
    """A topic is closed for writing: a worker makes certain what the disk has of it."""


def is_disk_full(error: OSError) -> bool:
    """Whether there was no room, and nothing was stored: nothing is broken."""
    return error.errno in DISK_FULL and not isinstance(error, UndecidedError)


def storage_refusal(error: OSError) -> Refusal:
    """Return the answer to a request that the disk did not carry out.

    A full disk refuses the frame for now (AMB-35); anything else leaves open what was stored.
    """
    reason = error.strerror or str(error)
    if isinstance(error, TopicClosedError):
        return Refusal(
            ErrorCode.BACKPRESSURE,
            f"Nothing was stored: the topic is closed for writing: {reason}. This is tried again "
            "until the disk allows it.",
            text=f"I/O error: {reason}",
        )
    if is_disk_full(error):
        return Refusal(
            ErrorCode.BACKPRESSURE,
            f"Nothing was stored: {reason}. Free space on the server's disk, then retry.",
            text=f"I/O error: {reason}",
        )
    unknown = " Whether it was done is not known." if isinstance(error, UndecidedError) else ""
    return Refusal(
        ErrorCode.STORAGE_ERROR,
        f"The server's disk failed: {reason}.{unknown}",
        text=f"I/O error: {reason}",
    )


def not_leader(address: str, message: str) -> Refusal:
    """Return the answer to a request that another node takes: at ``HOST:PORT`` (LWP section 12)."""
    return Refusal(
        ErrorCode.NOT_LEADER,
        message,
        details={"leader_addr": address},
        text=f"NOT_LEADER: redirect to {address}",
    )


def topic_not_found(topic_id: int, *, existed: bool, text: str) -> Refusal:
    """Return the answer to a request for a topic that is not there (AMB-34).

    Args:
        topic_id: the id that was asked for.
        existed: whether a topic ever had it.
        text: the published server's words for it, which differ by command.
    """
    if existed:
        return Refusal(ErrorCode.TOPIC_DELETED, f"Topic {topic_id} was deleted", text=text)
    return Refusal(ErrorCode.TOPIC_NOT_FOUND, f"Topic {topic_id} not found", text=text)
