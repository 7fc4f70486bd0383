"""Operations of a client and their allowed results, as data."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lance_conformance.client.scripted.model import TOPIC_ID, TOPIC_NAME
from lance_conformance.client.scripted.script import On

KINDS = ("retriable", "redirect", "auth", "fatal", "protocol", "closed", "timeout")
"""Kinds of errors that a driver tells apart."""
TOPIC = {"id": TOPIC_ID, "name": TOPIC_NAME}


@dataclass(frozen=True, slots=True)
class Want:
    """What may come of an operation.

    Attributes:
        ok: It may succeed, if the server said so.
        error: It may fail.
        kinds: The kinds of error it may fail with; all of them when empty.
        result: Fields that the result of a success must have.
    """

    ok: bool = True
    error: bool = False
    kinds: tuple[str, ...] = ()
    result: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        told = f"an error of kind {' or '.join(self.kinds)}" if self.kinds else "an error"
        parts = ["success"] if self.ok else []
        return " or ".join(parts + ([told] if self.error else []))


@dataclass(frozen=True, slots=True)
class Op:
    """One operation.

    Attributes:
        name: As the driver knows it.
        arguments: As the driver gets them.
        want: What may come of it.
        refused_here: The client itself must refuse it, with or without a faulty server.
        optional: A driver that does not support it goes on with the next one.
        enough: It is left out once so many records have been read, or several polls in a row
            brought none; 0 for never.
        meanwhile: Where the server departs from the right answers while it lasts, before the
            case's own script; counted from its beginning.
        if_news: It is left out where the subscription has read the whole log.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    want: Want = Want()
    refused_here: bool = False
    optional: bool = False
    enough: int = 0
    meanwhile: tuple[On, ...] = ()
    if_news: bool = False

    def __str__(self) -> str:
        return self.name

    def fails(self, *kinds: str) -> "Op":
        """It must fail, with an error of one of these kinds."""
        return replace(self, want=Want(ok=False, error=True, kinds=kinds))

    def safe(self, *kinds: str) -> "Op":
        """It may succeed where the server said so, and fail otherwise, but it must end."""
        return replace(self, want=replace(self.want, ok=True, error=True, kinds=kinds))

    def gives(self, **result: Any) -> "Op":
        """It must succeed with this result."""
        return replace(self, want=replace(self.want, result=result))

    def during(self, *meanwhile: On) -> "Op":
        """The server departs from the right answers while it lasts."""
        return replace(self, meanwhile=meanwhile)

    def refused(self) -> "Op":
        """The client itself refuses it."""
        return replace(self.fails(), refused_here=True)


def encoded(value: bytes) -> str:
    """Bytes as drivers get and give them."""
    return base64.b64encode(value).decode()


def _records(values: Sequence[bytes | tuple[int, bytes]]) -> list[dict[str, Any]]:
    pairs = [(1, each) if isinstance(each, bytes) else each for each in values]
    return [{"type": kind, "value": encoded(value)} for kind, value in pairs]


def send(*values: bytes | tuple[int, bytes]) -> Op:
    """Send records as one batch, and wait for its acknowledgement."""
    return Op("send", {"topic": TOPIC, "records": _records(values)})


def send_alike(value: bytes, count: int) -> Op:
    """Send so many equal records as one batch, and wait for its acknowledgement."""
    return Op("send", {"topic": TOPIC, "records": _records([value]) * count})


def send_async(*values: bytes | tuple[int, bytes]) -> Op:
    """Send records as one batch, and do not wait."""
    return Op("send_async", {"topic": TOPIC, "records": _records(values)})


def flush() -> Op:
    """Wait until every batch is acknowledged or has failed."""
    return Op("flush")


def fetch(offset: int = 0, max_bytes: int = 65536) -> Op:
    """Read records from an offset on, once."""
    return Op("fetch", {"topic": TOPIC, "offset": offset, "max_bytes": max_bytes})


def subscribe(offset: int = 0, max_bytes: int = 65536, consumer: str = "kit-consumer") -> Op:
    """Begin to read from an offset on; `poll` gives what comes."""
    return Op("subscribe", {"topic": TOPIC, "offset": offset, "max_bytes": max_bytes,
                            "consumer": consumer})  # fmt: skip


def poll(enough: int = 0) -> Op:
    """The next records of a subscription; none when none come in time.

    Args:
        enough: It is left out once so many records have been read; 0 for never.
    """
    return Op("poll", enough=enough)


def commit(offset: int) -> Op:
    """Commit an offset of the subscription at the server."""
    return Op("commit", {"offset": offset})


def create(name: str = "kit-new") -> Op:
    """Create a topic."""
    return Op("create_topic", {"name": name})


def create_limited(name: str = "kit-new") -> Op:
    """Create a topic with retention."""
    return Op("create_topic", {"name": name, "max_age_secs": 3600, "max_bytes": 1_048_576})


def list_topics() -> Op:
    """List the topics."""
    return Op("list_topics")


def get_topic(topic_id: int = TOPIC_ID) -> Op:
    """Ask about a topic."""
    return Op("get_topic", {"topic_id": topic_id})


def delete_topic() -> Op:
    """Delete the topic."""
    return Op("delete_topic", {"topic_id": TOPIC_ID})


def set_retention() -> Op:
    """Limit the topic."""
    return Op("set_retention", {"topic_id": TOPIC_ID, "max_age_secs": 3600, "max_bytes": 1_048_576})


WAIT = "$wait"
RENEW = "$renew"


def renew() -> Op:
    """End the client and begin with another one, in the same process, at the same server."""
    return Op(RENEW)


def wait(part: float = 0.0) -> Op:
    """Let the client be: what the case waits for comes by itself.

    Args:
        part: For how long, in parts of the time of an operation.
    """
    return Op(WAIT, {"part": part})
