"""A small model of a server, or of nodes that redirect: topics of numbered records."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import anyio
from tests.simulation.groups.network import ServerEnd

from lance_sdk.offsets import TopicIdentity
from lance_spec.bodies import ErrorBody, PartitionInfo, TopicInfo, encode_json
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import Frame, FrameKind, FrameSplitter, encode_control, encode_keepalive
from lance_spec.limits import END_OFFSET
from lance_spec.messages.lwp import Fetch, FetchResponse, GetTopic
from lance_spec.records import encode_records

RECORD: Final = len(encode_records([bytes(8)]))
"""Bytes of one record."""


@dataclass(eq=False)
class Topic:
    """One topic.

    Attributes:
        info: what the server tells of it.
        count: records in it.
        gone: whether it was deleted.
    """

    info: TopicInfo
    count: int = 0
    gone: bool = False

    @property
    def identity(self) -> TopicIdentity:
        """The topic's identity."""
        return TopicIdentity.of(self.info)


class ServerModel:
    """Answers as a server of the dialect ``specified`` that does not push.

    Attributes:
        topics: by number, deleted ones among them.
        hosts: returns the names of the nodes that are there; they share the topics, and a node
            names another one for a topic of that.
    """

    def __init__(self) -> None:
        self.topics: dict[int, Topic] = {}
        self.hosts: Callable[[], Sequence[str]] = lambda: ["server"]

    def extend(self, name: str) -> Topic:
        """Add a partition to a partitioned topic; the first one makes it."""
        parts = [each for each in self.alive if each.info.partition is not None]
        for index, each in enumerate(parts):
            told = PartitionInfo(name, index, len(parts) + 1, "murmur2")
            each.info = replace(each.info, partition=told)
        index = len(parts)
        return self.create(f"{name}-{index}", PartitionInfo(name, index, index + 1, "murmur2"))

    def create(self, name: str, partition: PartitionInfo | None = None) -> Topic:
        """Create a topic; one of the same name is deleted first."""
        epoch = 1
        for topic in self.topics.values():
            if topic.info.name == name:
                topic.gone, epoch = True, epoch + 1
        number = len(self.topics) + 1
        info = TopicInfo(
            id=number, name=name, created_at=1000 + number, topic_epoch=epoch, partition=partition
        )
        self.topics[number] = Topic(info)
        return self.topics[number]

    @property
    def alive(self) -> list[Topic]:
        """The topics that are there."""
        return [topic for topic in self.topics.values() if not topic.gone]

    def node(self, name: str) -> Callable[[ServerEnd], Awaitable[None]]:
        """Return what answers the connections of one node."""
        return partial(self._serve, name)

    def host_of(self, topic_id: int) -> str:
        """Return the node that has a topic now."""
        hosts = self.hosts()
        return hosts[topic_id % len(hosts)]

    async def _serve(self, name: str, stream: ServerEnd) -> None:
        splitter = FrameSplitter((SPECIFIED,))
        while True:
            try:
                data = await stream.receive(65536)
                for frame in splitter.receive_data(data):
                    await stream.send(self._answer(frame, name))
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return

    def _answer(self, frame: Frame, node: str) -> bytes:
        if frame.kind is FrameKind.KEEPALIVE:
            return encode_keepalive(SPECIFIED)
        if frame.command is Command.LIST_TOPICS:
            topics = [topic.info.to_body() for topic in self.alive]
            return _control(Command.TOPIC_RESPONSE, encode_json({"topics": topics}))
        if frame.command is Command.GET_TOPIC:
            return self._of_topic(GetTopic.decode(frame.payload), node)
        if frame.command is Command.FETCH:
            return self._of_topic(Fetch.decode(frame.payload), node)
        return _error(ErrorCode.INVALID_PAYLOAD, "this model does not know that")

    def _of_topic(self, asked: GetTopic | Fetch, node: str) -> bytes:
        topic = self._find(asked.topic_id)
        if topic is None:
            return _error(ErrorCode.TOPIC_NOT_FOUND, "no such topic")
        if (host := self.host_of(asked.topic_id)) != node:
            return _error(ErrorCode.NOT_LEADER, "ask the host", leader_addr=f"{host}:1992")
        if isinstance(asked, Fetch):
            return _fetched(topic, asked)
        return _control(Command.TOPIC_RESPONSE, encode_json(topic.info.to_body()))

    def _find(self, topic_id: int) -> Topic | None:
        topic = self.topics.get(topic_id)
        return None if topic is None or topic.gone else topic


def _fetched(topic: Topic, asked: Fetch) -> bytes:
    end = topic.count * RECORD
    if asked.start_offset >= end:
        at = end if asked.start_offset == END_OFFSET else max(end, 0)
        response = FetchResponse(at, 0, 0, b"")
        return _control(Command.FETCH_RESPONSE, response.encode())
    first = asked.start_offset // RECORD
    last = min(topic.count, first + max(1, asked.max_bytes // RECORD))
    data = encode_records([number.to_bytes(8, "big") for number in range(first, last)])
    response = FetchResponse(last * RECORD, len(data), last - first, data)
    return _control(Command.FETCH_RESPONSE, response.encode())


def _control(command: Command, payload: bytes) -> bytes:
    return encode_control(SPECIFIED, command, payload)


def _error(code: ErrorCode, message: str, **details: Any) -> bytes:
    body = ErrorBody(int(code), message, details)
    return _control(Command.ERROR_RESPONSE, body.encode(SPECIFIED))
