"""Long exchanges: the same everywhere, judged in full, by a server that reads before it pushes."""

import asyncio
import itertools
import struct
from dataclasses import replace

import pytest

from lance_conformance.client.cases.variation.exchanges import drawn
from lance_conformance.client.exact import LAST, NTH, Exact
from lance_conformance.client.operations import (
    commit,
    create,
    encoded,
    fetch,
    get_topic,
    poll,
    send,
    set_retention,
    subscribe,
)
from lance_conformance.client.scripted.model import CODES, Model
from lance_conformance.client.scripted.received_frame import FrameReader
from lance_conformance.client.scripted.server import HOST, ScriptedServer
from lance_conformance.dialect import SPECIFIED
from lance_conformance.engine.failures import Failure
from lance_conformance.engine.transcript import Transcript
from lance_conformance.wire.control import control
from lance_conformance.wire.frame import HEADER_SIZE, Flag, Frame
from lance_conformance.wire.tlv import record, records

VALUES = (b"one", b"two", b"three")
ONE = len(record(b"one"))
COMPUTE = SPECIFIED.compute


def a_server(*values: bytes) -> ScriptedServer:
    """A scripted server whose topic has these records."""
    model = Model(SPECIFIED, tuple((1, value) for value in values or VALUES))
    return ScriptedServer(model, (), Transcript(lambda: 0.0), itertools.count(1))


def told(*values: bytes) -> list[dict[str, object]]:
    """Records as a driver tells them."""
    return [{"type": 1, "value": encoded(value)} for value in values]


def asked(server: ScriptedServer, *frames: Frame) -> None:
    """A client has sent these frames, and each was answered rightly."""
    for received in FrameReader(1).feed(b"".join(frame.encode(COMPUTE) for frame in frames)):
        server.seen.append(received)
        server.note_answer(received, server.model.answer(received.frame)[0].payload)


def test_the_same_seed_draws_the_same_exchange() -> None:
    """What a case asks does not depend on the machine."""
    _, ops = drawn("all", 1)
    assert drawn("all", 1)[1] == ops
    assert drawn("all", 2)[1] != ops
    assert [op.name for op in ops[:4]] == ["list_topics", "send", "subscribe", "set_retention"]


def test_a_topic_is_what_the_answer_has() -> None:
    """A name in other letters is another name."""
    server = a_server()
    exact = Exact(server)
    op = exact.begin(get_topic())
    asked(server, control(CODES["get"], struct.pack("<I", 7)))
    exact.judge(op, {"id": 7, "name": "kit-topic"})
    op = exact.begin(get_topic())
    asked(server, control(CODES["get"], struct.pack("<I", 7)))
    with pytest.raises(Failure, match="KIT-topic"):
        exact.judge(op, {"id": 7, "name": "KIT-topic"})


def test_a_request_with_another_number_is_a_stray_one() -> None:
    """Limits in the wrong order change what nobody wanted to be changed."""
    server = a_server()
    exact = Exact(server)
    op = exact.begin(set_retention())
    asked(server, control(CODES["retention"], struct.pack("<IQQ", 7, 1_048_576, 3600)))
    with pytest.raises(Failure, match="set_retention: expected retention"):
        exact.judge(op, {})


def test_a_request_comes_once_where_nothing_is_lost() -> None:
    """Two topics are not one."""
    server = a_server()
    exact = Exact(server)
    op = exact.begin(create())
    asked(server, *[control(CODES["create"], b"kit-new")] * 2)
    with pytest.raises(Failure, match="one request"):
        exact.judge(op, {"id": 8, "name": "kit-new"})


def test_records_are_those_of_the_log() -> None:
    """In order, from the offset on, all that came, and with the offset after them."""
    server = a_server()
    exact = Exact(server)
    op = exact.begin(fetch(NTH - 1))
    assert op.arguments["offset"] == ONE
    asked(server, control(CODES["fetch"], struct.pack("<IQI", 7, ONE, 65536)))
    end = server.model.end
    exact.judge(op, {"records": told(b"two", b"three"), "next_offset": end})
    for wrong, following in (
        (told(b"two"), 2 * ONE), (told(b"three", b"two"), end), (told(b"two", b"three"), end + 1),
        ([{"type": 2, "value": encoded(b"two")}, *told(b"three")], end),
        (told(b"two", b"three", b"four"), end),
    ):  # fmt: skip
        with pytest.raises(Failure):
            exact.judge(op, {"records": wrong, "next_offset": following})


def test_a_subscription_reads_every_record_once() -> None:
    """From where it begins to the end."""
    server = a_server()
    exact = Exact(server)
    exact.judge(exact.begin(subscribe(ONE)), {})
    exact.judge(exact.begin(poll()), {"records": told(b"two")})
    with pytest.raises(Failure, match="has read up to"):
        exact.end()
    with pytest.raises(Failure, match="record 0"):
        exact.judge(exact.begin(poll()), {"records": told(b"two")})
    exact.judge(exact.begin(poll()), {"records": told(b"three")})
    exact.end()
    assert exact.begin(subscribe(LAST)).arguments["offset"] == server.model.end


def test_a_commit_is_of_what_was_read() -> None:
    """Of its topic, too."""
    server = a_server()
    exact = Exact(server)
    exact.judge(exact.begin(subscribe(0)), {})
    exact.judge(exact.begin(poll()), {"records": told(b"one", b"two")})
    op = exact.begin(commit(-1))
    assert op.arguments["offset"] == 2 * ONE
    asked(server, control(CODES["commit"], struct.pack("<IQQ", 8, 1, 2 * ONE)))
    with pytest.raises(Failure, match="topic 7"):
        exact.judge(op, {})


def ingest(batch_id: int, *values: bytes) -> Frame:
    """A batch."""
    payload = records(values)
    return Frame(flags=Flag.BATCH_MODE, batch_id=batch_id, topic_id=7, payload=payload,
                 timestamp_ns=1, record_count=len(values))  # fmt: skip


def test_batches_come_in_order() -> None:
    """The second after the first, on each connection."""
    server = a_server()
    exact = Exact(server)
    first, second = (replace(send(value), name="send_async") for value in (b"1", b"2"))
    exact.judge(exact.begin(first), {})
    op = exact.begin(second)
    asked(server, ingest(2, b"2"), ingest(1, b"1"))
    with pytest.raises(Failure, match="the order"):
        exact.judge(op, {})


async def answers(*frames: Frame) -> list[int]:
    """The commands of what a scripted server says to frames that come in one read."""
    server = a_server()
    async with server.open():
        reader, writer = await asyncio.open_connection(HOST, server.port)
        writer.write(b"".join(frame.encode(COMPUTE) for frame in (*frames, ingest(9, b"news"))))
        codes: list[int] = []
        while len(codes) < len(frames) + 1:
            head = await reader.readexactly(HEADER_SIZE)
            await reader.readexactly(int.from_bytes(head[32:36], "little"))
            codes.append(int.from_bytes(head[12:20], "little"))
        writer.close()
    return codes


def test_a_subscription_that_ends_in_the_same_read_brings_nothing() -> None:
    """A server has read all of it before it pushes."""
    begins = control(CODES["subscribe"], struct.pack("<IQIQ", 7, 0, 1, 5))
    ends = control(CODES["unsubscribe"], struct.pack("<IQ", 7, 5))
    assert asyncio.run(answers(begins, ends)) == [0x23, 5, 9]
    others = control(CODES["unsubscribe"], struct.pack("<IQ", 7, 6))
    assert asyncio.run(answers(begins, others))[:2] == [0x23, 0x11]
