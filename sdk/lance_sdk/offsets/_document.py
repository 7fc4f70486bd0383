"""A commit as JSON: what the lock file store and Redis keep."""

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from lance_sdk.errors import ConfigError
from lance_sdk.offsets.contract import Commit, Fingerprint, TopicIdentity
from lance_sdk.offsets.errors import StoreCorrupt
from lance_spec.checksum import Buffer

VERSION: Final = 1
MAX_DOCUMENT: Final = 16 * 1024
"""Bytes; names have 255 at most, so this project never writes a longer document."""


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """What is kept for one consumer and topic.

    Attributes:
        commit: with ``generation`` as the highest one that was claimed or saved.
        written: whether there ever was a commit; False after a claim alone.
    """

    commit: Commit
    written: bool = True

    @property
    def found(self) -> Commit | None:
        """The commit, if there is one."""
        return self.commit if self.written else None

    def claimed(self, generation: int) -> "StoredOffset":
        """Return the entry after a claim."""
        return replace(self, commit=replace(self.commit, generation=generation))


def encode(entry: StoredOffset) -> bytes:
    """Return an entry as one line of JSON."""
    commit, mark = entry.commit, entry.commit.fingerprint
    body = {
        "version": VERSION,
        "consumer": commit.consumer,
        "topic": {
            "id": commit.topic.id,
            "name": commit.topic.name,
            "created_at": commit.topic.created_at,
            "epoch": commit.topic.epoch,
        },
        "offset": commit.offset if entry.written else None,
        "fingerprint": None
        if mark is None
        else {"start": mark.start, "length": mark.length, "digest": mark.digest},
        "generation": commit.generation,
        "committed_at_ns": commit.committed_at_ns,
    }
    return f"{json.dumps(body, ensure_ascii=False)}\n".encode()


def decode(data: Buffer, place: str) -> StoredOffset:
    """Read an entry.

    Args:
        data: its bytes.
        place: file or key, for the error.

    Raises:
        StoreCorrupt: naming the field that is missing or of the wrong kind.
    """
    try:
        body = json.loads(bytes(data[: MAX_DOCUMENT + 1]))
    except (ValueError, RecursionError) as error:
        raise StoreCorrupt(place, f"it is not JSON: {error}") from None
    reader = _Reader(body, place)
    if (version := reader.number("version")) != VERSION:
        raise StoreCorrupt(place, f"it has version {version} and this program reads {VERSION}")
    offset = reader.number("offset", optional=True)
    try:
        commit = Commit(
            consumer=reader.text("consumer"),
            topic=_topic(reader.part("topic")),
            offset=offset or 0,
            fingerprint=_fingerprint(reader),
            generation=reader.number("generation"),
            committed_at_ns=reader.number("committed_at_ns"),
        )
    except ConfigError as error:
        raise StoreCorrupt(place, str(error)) from None
    return StoredOffset(commit, written=offset is not None)


def _topic(reader: "_Reader") -> TopicIdentity:
    return TopicIdentity(
        id=reader.number("id"),
        name=reader.text("name", optional=True),
        created_at=reader.number("created_at", optional=True),
        epoch=reader.number("epoch", optional=True),
    )


def _fingerprint(reader: "_Reader") -> Fingerprint | None:
    if reader.body.get("fingerprint") is None:
        return None
    mark = reader.part("fingerprint")
    return Fingerprint(mark.number("start"), mark.number("length"), mark.text("digest"))


class _Reader:
    """Takes fields out of a decoded object, and says which one is wrong."""

    def __init__(self, body: Any, place: str) -> None:
        if not isinstance(body, dict):
            raise StoreCorrupt(place, f"expected a JSON object, got {type(body).__name__}")
        self.body = body
        self._place = place

    def number(self, name: str, *, optional: bool = False) -> Any:
        value = self.body.get(name)
        if value is None and optional:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
            raise self._wrong(name, "a number", value)
        return value

    def text(self, name: str, *, optional: bool = False) -> Any:
        value = self.body.get(name)
        if value is None and optional:
            return None
        if not isinstance(value, str):
            raise self._wrong(name, "text", value)
        return value

    def part(self, name: str) -> "_Reader":
        return _Reader(self.body.get(name), f"{self._place}, {name}")

    def _wrong(self, name: str, expected: str, value: object) -> StoreCorrupt:
        return StoreCorrupt(self._place, f"{name}: expected {expected}, got {repr(value)[:80]}")
