"""Requests: what goes out, and how the answer is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from typing import Generic, TypeVar

from lance_conformance.fluvio.wire import responses
from lance_conformance.fluvio.wire.errors import Outcome
from lance_conformance.fluvio.wire.objects import ObjectKind
from lance_conformance.fluvio.wire.primitives import (
    Reader,
    i16,
    i32,
    i64,
    many,
    option,
    sized,
    text,
    u32,
)

A = TypeVar("A")

CLIENT_ID = "fluvio"
OBJECTS = 19
"""Version in which objects are spoken of: that of the newest published clients."""
SPU_VERSION = 24
"""Version of the other requests: that of the client in the published Python package."""
FETCH_BYTES = 1_048_890
TIMEOUT_MS = 1500

Entries = Sequence[tuple[str, Sequence[tuple[int, bytes]]]]
"""By topic: partitions, each with its batches back to back."""


class Key(IntEnum):
    """What is asked for; SC and SPU use the same numbers for different requests."""

    PRODUCE = 0
    API_VERSIONS = 18
    CREATE = 1001
    DELETE = 1002
    LIST = 1003
    WATCH = 1004
    FETCH_OFFSETS = 1002
    STREAM_FETCH = 1003
    UPDATE_OFFSETS = 1005
    UPDATE_CONSUMER_OFFSET = 1006
    DELETE_CONSUMER_OFFSET = 1007
    FETCH_CONSUMER_OFFSETS = 1008


@dataclass(frozen=True, slots=True)
class Call(Generic[A]):
    """A request before it has its correlation id.

    Attributes:
        name: What it is, for reports.
        key: What is asked for.
        version: The version of request and response.
        body: What follows the header.
        read: Reads the body of its response.
    """

    name: str
    key: int
    version: int
    body: bytes
    read: Callable[[Reader], A]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    def message(self, correlation: int, client_id: str = CLIENT_ID) -> bytes:
        """The bytes of the request after the length of its frame."""
        return i16(self.key) + i16(self.version) + i32(correlation) + text(client_id) + self.body

    def frame(self, correlation: int, client_id: str = CLIENT_ID) -> bytes:
        """The bytes of the request."""
        return sized(self.message(correlation, client_id))

    def at(self, version: int) -> "Call[A]":
        """The same bytes under another version, for cases about versions."""
        return replace(self, version=version)


def api_versions() -> Call[responses.Versions]:
    """Which requests the server knows."""
    body = text("0.15.2") + text("linux") + text("x86_64")
    return Call("ApiVersions", Key.API_VERSIONS, 2, body, responses.read_versions)


# The SC ------------------------------------------------------------------------------------------


def watch(kind: ObjectKind, version: int = OBJECTS) -> Call[responses.Watched]:
    """All objects of a kind, and whatever changes."""
    body = text(kind) + sized(i64(0) + b"\0")
    read = partial(responses.read_watched, kind=kind, version=version)
    return Call(f"Watch {kind}", Key.WATCH, version, body, read)


def list_objects(
    kind: ObjectKind, names: Sequence[str] = (), version: int = OBJECTS, *, system: bool = False
) -> Call[responses.Listed]:
    """The objects of a kind, or those with some names; users' topics, or the cluster's own."""
    body = text(kind) + sized(many(map(text, names)) + bytes([False, system]))
    read = partial(responses.read_listed, kind=kind, version=version)
    return Call(f"List {kind}", Key.LIST, version, body, read)


def create_topic(
    name: str, partitions: int = 1, *, dry_run: bool = False, version: int = OBJECTS
) -> Call[responses.Status]:
    """A topic, its partitions placed by the cluster, every compression allowed."""
    spec = (
        b"\1" + u32(partitions) + u32(1) + b"\0" + option(None) * 2 + b"\4" + option(None) + b"\0"
    )
    body = text(name) + bytes([dry_run]) + option(None) + spec
    return Call("Create", Key.CREATE, version, text("Topic") + sized(body), responses.read_status)


def delete_topic(name: str, version: int = OBJECTS) -> Call[responses.Status]:
    """Remove a topic."""
    body = text("Topic") + sized(text(name) + b"\0")
    return Call("Delete", Key.DELETE, version, body, responses.read_status)


# The SPU -----------------------------------------------------------------------------------------


def produce(
    entries: Entries,
    *,
    isolation: int = 1,
    timeout_ms: int = TIMEOUT_MS,
    version: int = SPU_VERSION,
) -> Call[responses.Produced]:
    """Batches to append.

    Args:
        entries: The batches, by topic and partition; a partition may occur more than once.
        isolation: Negative to be answered when they are committed, else when they are written.
        timeout_ms: How long the server may wait.
        version: SmartModules are spoken of from 8 on.
    """
    topics = many(
        text(name) + many(u32(number) + sized(batches) for number, batches in parts)
        for name, parts in entries
    )
    body = option(None) + i16(isolation) + i32(timeout_ms) + topics
    if version >= 8:
        body += many([])
    read = partial(responses.read_produced, version=version)
    return Call("Produce", Key.PRODUCE, version, body, read)


def fetch_offsets(
    topics: Sequence[tuple[str, Sequence[int]]], version: int = SPU_VERSION
) -> Call[responses.Offsets]:
    """Where partitions begin and end; only version 23 has room for a consumer."""
    body = many(text(name) + many(map(u32, partitions)) for name, partitions in topics)
    if version == 23:
        body += option(None)
    return Call("FetchOffsets", Key.FETCH_OFFSETS, version, body, responses.read_offsets)


def stream_fetch(
    topic: str,
    partition: int = 0,
    offset: int = 0,
    *,
    max_bytes: int = FETCH_BYTES,
    isolation: int = 0,
    consumer: str | None = None,
    version: int = SPU_VERSION,
) -> Call[responses.StreamPiece]:
    """Records of a partition, and those to come.

    Args:
        topic: Its topic.
        partition: Its number.
        offset: Where to begin.
        max_bytes: Most bytes of records in one piece.
        isolation: 0 for what is written, 1 for what is committed.
        consumer: Who reads; from version 23 on.
        version: 19 or later: earlier ones speak of SmartModules in another way.
    """
    body = text(topic) + u32(partition) + i64(offset) + i32(max_bytes)
    body += bytes([isolation]) + many([])
    if version >= 23:
        body += option(None if consumer is None else text(consumer))
    read = partial(responses.read_piece, version=version)
    return Call("StreamFetch", Key.STREAM_FETCH, version, body, read)


def update_offsets(*acks: tuple[int, int]) -> Call[list[responses.StreamOutcome]]:
    """How far streams were read: offset and stream, each lets one go on."""
    body = many(i64(offset) + u32(stream) for offset, stream in acks)
    return Call("UpdateOffsets", Key.UPDATE_OFFSETS, 0, body, responses.read_stream_outcomes)


def commit(offset: int, stream: int, version: int = SPU_VERSION) -> Call[responses.Committed]:
    """Store the last offset that the consumer of a stream has read."""
    body = i64(offset) + u32(stream)
    return Call(
        "UpdateConsumerOffset", Key.UPDATE_CONSUMER_OFFSET, version, body, responses.read_committed
    )


def forget(
    topic: str, consumer: str, partition: int = 0, version: int = SPU_VERSION
) -> Call[Outcome]:
    """Forget what a consumer has stored."""
    body = text(topic) + u32(partition) + text(consumer)
    return Call(
        "DeleteConsumerOffset", Key.DELETE_CONSUMER_OFFSET, version, body, responses.read_forgotten
    )


def committed(
    topic: str | None = None,
    consumer: str | None = None,
    partition: int = 0,
    version: int = SPU_VERSION,
) -> Call[responses.ConsumerOffsets]:
    """What consumers have stored: of one partition, of one consumer, or of all.

    Args:
        topic: Only of this topic's partition.
        consumer: Only of this consumer.
        partition: Number of the partition.
        version: Filters are spoken of from 24 on.
    """
    replica = None if topic is None else text(topic) + u32(partition)
    wanted = option(replica) + option(None if consumer is None else text(consumer))
    body = option(wanted) if version >= 24 else b""
    return Call(
        "FetchConsumerOffsets",
        Key.FETCH_CONSUMER_OFFSETS,
        version,
        body,
        responses.read_consumer_offsets,
    )
