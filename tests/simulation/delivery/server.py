"""A model of a server that stores, syncs, acknowledges, refuses, and forgets in a crash."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

import anyio
from tests.simulation.groups.loop import SimulatedLoop
from tests.simulation.groups.network import ServerEnd

from lance_spec.bodies import ErrorBody, TopicInfo, encode_json
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import (
    Frame,
    FrameKind,
    FrameSplitter,
    encode_ack,
    encode_control,
    encode_keepalive,
)
from lance_spec.limits import END_OFFSET
from lance_spec.messages.lwp import Fetch, FetchResponse, GetTopic
from lance_spec.records import encode_records

RECORD: Final = len(encode_records([bytes(8)]))
"""Bytes of one record."""
NAME: Final = "orders"
_HEAD: Final = RECORD - 8
_LARGE: Final = 1 << 20


@dataclass(eq=False)
class Topic:
    """One topic.

    Attributes:
        info: what the server tells of it.
        log: its records, stored and perhaps not yet durable.
        synced: records that are durable; only they are read.
        batches: by identifier where each batch ends: the duplicate window.
        gone: whether it was deleted.
    """

    info: TopicInfo
    log: list[int] = field(default_factory=list)
    synced: int = 0
    batches: dict[int, int] = field(default_factory=dict)
    gone: bool = False

    def store(self, batch_id: int, numbers: list[int]) -> int:
        """Store a batch, once; return where it ends."""
        if batch_id not in self.batches:
            self.log += numbers
            self.batches[batch_id] = len(self.log)
        return self.batches[batch_id]

    def crash(self, random: Random) -> None:
        """Lose some or all of what was not synced; what is left counts as durable."""
        ends = [end for end in self.batches.values() if end > self.synced]
        kept = random.choice([self.synced, *ends])
        self.batches = {number: end for number, end in self.batches.items() if end <= kept}
        del self.log[kept:]
        self.synced = kept


class ServerModel:
    """Takes batches and hands out records, in one dialect at a time.

    Args:
        loop: simulated time.
        random: decides how long a sync takes.
        dialect: in which it speaks.

    Attributes:
        topics: by number, deleted ones among them.
        sync_time: seconds that a sync takes.
        refusing: the code with which batches are refused for the moment.
        limit: bytes of the largest batch that it takes.
    """

    def __init__(self, loop: SimulatedLoop, random: Random, dialect: Dialect) -> None:
        self._loop = loop
        self._random = random
        self._life = 0
        self.dialect = self.usual = dialect
        self.topics: dict[int, Topic] = {}
        self.sync_time = 0.01
        self.refusing: ErrorCode | None = None
        self.limit = _LARGE

    def create(self) -> Topic:
        """Create the topic; an earlier one is deleted."""
        for topic in self.topics.values():
            topic.gone = True
        number = len(self.topics) + 1
        info = TopicInfo(id=number, name=NAME, created_at=1000 + number, topic_epoch=number)
        self.topics[number] = Topic(info)
        return self.topics[number]

    @property
    def topic(self) -> Topic:
        """The topic that is there."""
        return self.topics[len(self.topics)]

    def mend(self) -> None:
        """End all faults but those of the network."""
        self.sync_time, self.refusing, self.limit = 0.01, None, _LARGE
        self.dialect = self.usual

    def crash(self) -> None:
        """End without a word."""
        self._life += 1
        for topic in self.topics.values():
            topic.crash(self._random)

    def sync(self, topic: Topic, end: int, done: Callable[[], object]) -> None:
        """Have records durable up to a place, after a while, unless it crashes before."""
        life = self._life

        def synced() -> None:
            if life == self._life:
                topic.synced = max(topic.synced, end)
                done()

        self._loop.call_later(self._random.uniform(0.0, self.sync_time), synced)

    async def serve(self, stream: ServerEnd) -> None:
        """Answer one connection, in order."""
        splitter = FrameSplitter((self.dialect,))
        answers: asyncio.Queue[asyncio.Future[bytes]] = asyncio.Queue()
        writing = self._loop.create_task(_write(stream, answers))
        try:
            while splitter.fault is None:
                data = await stream.receive(65536)
                for frame in splitter.receive_data(data):
                    answers.put_nowait(self._answer(frame))
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            pass
        finally:
            writing.cancel()

    def _answer(self, frame: Frame) -> "asyncio.Future[bytes]":
        answer: asyncio.Future[bytes] = self._loop.create_future()
        if frame.kind is FrameKind.INGEST:
            self._ingest(frame, answer)
        else:
            answer.set_result(self._control(frame))
        return answer

    def _ingest(self, frame: Frame, answer: "asyncio.Future[bytes]") -> None:
        topic, refusal = self.topics.get(frame.topic_id), self.refusing
        if topic is None or topic.gone:
            refusal = ErrorCode.TOPIC_NOT_FOUND
        elif len(frame.payload) > self.limit:
            refusal = ErrorCode.PAYLOAD_TOO_LARGE
        if topic is None or refusal is not None:
            details = {"batch_id": frame.batch_id}
            answer.set_result(self._error(refusal or ErrorCode.TOPIC_NOT_FOUND, details))
            return
        dialect, batch_id = self.dialect, frame.batch_id
        end = topic.store(batch_id, numbers_of(frame.payload))

        def acknowledge() -> None:
            if not answer.done():
                answer.set_result(encode_ack(dialect, batch_id))

        self.sync(topic, end, acknowledge)

    def _control(self, frame: Frame) -> bytes:
        if frame.kind is FrameKind.KEEPALIVE:
            return encode_keepalive(self.dialect)
        if frame.command is Command.LIST_TOPICS:
            body = {"topics": [self.topic.info.to_body()]}
            return self._says(Command.TOPIC_RESPONSE, encode_json(body))
        if frame.command is Command.GET_TOPIC:
            topic = self.topics.get(GetTopic.decode(frame.payload).topic_id)
            if topic is None or topic.gone:
                return self._error(ErrorCode.TOPIC_NOT_FOUND, {})
            return self._says(Command.TOPIC_RESPONSE, encode_json(topic.info.to_body()))
        if frame.command is Command.FETCH:
            return self._fetch(Fetch.decode(frame.payload))
        return self._error(ErrorCode.INVALID_PAYLOAD, {})

    def _fetch(self, asked: Fetch) -> bytes:
        topic = self.topics.get(asked.topic_id)
        if topic is None or topic.gone:
            return self._error(ErrorCode.TOPIC_NOT_FOUND, {})
        end = topic.synced * RECORD
        if asked.start_offset >= end:
            at = end if asked.start_offset == END_OFFSET else max(end, 0)
            return self._says(Command.FETCH_RESPONSE, FetchResponse(at, 0, 0, b"").encode())
        first = asked.start_offset // RECORD
        last = min(topic.synced, first + max(1, asked.max_bytes // RECORD))
        data = encode_records([number.to_bytes(8, "big") for number in topic.log[first:last]])
        response = FetchResponse(last * RECORD, len(data), last - first, data)
        return self._says(Command.FETCH_RESPONSE, response.encode())

    def _says(self, command: Command, payload: bytes) -> bytes:
        return encode_control(self.dialect, command, payload)

    def _error(self, code: ErrorCode, details: dict[str, int]) -> bytes:
        body = ErrorBody(int(code), code.name.replace("_", " ").capitalize(), details)
        return self._says(Command.ERROR_RESPONSE, body.encode(self.dialect))


async def _write(stream: ServerEnd, answers: "asyncio.Queue[asyncio.Future[bytes]]") -> None:
    try:
        while True:
            await stream.send(await (await answers.get()))
    except anyio.BrokenResourceError:
        pass


def numbers_of(payload: bytes | memoryview) -> list[int]:
    """Return the numbers of the records of a batch."""
    starts = range(_HEAD, len(payload), RECORD)
    return [int.from_bytes(payload[start : start + 8], "big") for start in starts]


def other(dialect: Dialect) -> Dialect:
    """Return the dialect that a server does not speak which speaks this one."""
    return SPECIFIED if dialect is DEPLOYED else DEPLOYED
