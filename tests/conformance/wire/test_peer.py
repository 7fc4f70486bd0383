"""One connection to a target: what counts, what is passed over, what ends it."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import cast

import pytest

from lance_conformance.dialect import SPECIFIED
from lance_conformance.engine.deadline import Deadline
from lance_conformance.engine.event_reader import FLOOD
from lance_conformance.engine.expectations import Closed, Violation, closed
from lance_conformance.engine.failures import Blocked, Failure, KitError
from lance_conformance.engine.raw_connection import RawConnection, connect
from lance_conformance.engine.transcript import KEEP_PER_CONNECTION, Transcript
from lance_conformance.server.expect import ack, answer, keepalive
from lance_conformance.server.golden.server import serving
from lance_conformance.server.peer import Peer
from lance_conformance.wire.control import KEEPALIVE, LIST_TOPICS
from lance_conformance.wire.crc import crc32c
from lance_conformance.wire.frame import Command, Flag, Frame

ACK_7 = Frame(flags=Flag.ACK, batch_id=7).encode(crc32c)
BACKPRESSURE = Frame(flags=Flag.BACKPRESSURE).encode(crc32c)
PING = KEEPALIVE.encode(crc32c)
PLENTY = 10.0


class Scripted(asyncio.Protocol):
    """Sends fixed bytes on connecting, then perhaps closes or resets."""

    def __init__(self, said: bytes, end: str) -> None:
        self._said = said
        self._end = end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say what there is to say."""
        stream = cast("asyncio.Transport", transport)
        stream.write(self._said)
        if self._end == "rst":
            raw = stream.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if self._end:
            stream.close()


class Echo(asyncio.Protocol):
    """Answers a Keepalive with a Keepalive, and adds what it is told to add."""

    def __init__(self, extra: bytes) -> None:
        self._extra = extra

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Echo."""
        self._transport.write(data + self._extra)


def talk(
    protocol: Callable[[], asyncio.BaseProtocol],
    dialogue: Callable[[Peer], Awaitable[object]],
    seconds: float = PLENTY,
) -> Transcript:
    """Open one connection to a server and hold a dialogue on it."""

    async def run() -> Transcript:
        loop = asyncio.get_running_loop()
        transcript = Transcript(loop.time)
        connection = RawConnection(1, transcript)
        async with serving(protocol) as port:
            deadline = loop.time() + seconds
            await connect("127.0.0.1", port, connection, deadline)
            peer = Peer(connection, SPECIFIED, Deadline(deadline))
            try:
                await dialogue(peer)
            finally:
                peer.drop()
        return transcript

    return asyncio.run(run())


def said(data: bytes, end: str = "") -> Callable[[], asyncio.BaseProtocol]:
    """A server that says this."""
    return lambda: Scripted(data, end)


def test_a_frame_before_a_reset_still_counts() -> None:
    """An error that a server sends before it slams the door is not lost."""

    async def dialogue(peer: Peer) -> None:
        await peer.expect(ack(7))
        assert isinstance(await peer.expect(closed("11.1/magic")), Closed)

    talk(said(ACK_7, "fin"), dialogue)


@pytest.mark.parametrize("end", ["fin", "rst"])
def test_a_reset_is_a_close(end: str) -> None:
    """How a connection ends is recorded and not judged."""

    async def dialogue(peer: Peer) -> None:
        event = await peer.expect(closed("11.1/magic"))
        assert event == Closed("rst" if end == "rst" else "fin")

    transcript = talk(said(b"", end), dialogue)
    assert [chunk.note for chunk in transcript.chunks] == [end]


def test_half_a_frame_before_the_end_is_a_violation() -> None:
    """A connection that ends within a frame did not simply close."""

    async def dialogue(peer: Peer) -> None:
        with pytest.raises(Failure, match="20 bytes into a frame") as caught:
            await peer.expect(closed("11.1/magic"))
        assert caught.value.reason == "truncated-frame"

    talk(said(ACK_7[:20], "fin"), dialogue)


def test_backpressure_is_passed_over() -> None:
    """A target may ask for a slower pace at any time."""
    talk(said(BACKPRESSURE + ACK_7), lambda peer: peer.expect(ack(7)))


def test_keepalives_that_answer_nothing_are_passed_over() -> None:
    """A target may send a Keepalive of its own."""
    talk(said(PING + ACK_7), lambda peer: peer.expect(ack(7)))


def test_a_keepalive_that_is_owed_is_not_passed_over() -> None:
    """Once we have sent one, its answer is an event like any other."""

    async def dialogue(peer: Peer) -> None:
        peer.send(KEEPALIVE)
        with pytest.raises(Failure) as caught:
            await peer.expect(ack(7))
        assert caught.value.reason == "unexpected-frame"

    talk(lambda: Echo(b""), dialogue)


def test_a_flood_is_given_up_on() -> None:
    """Endless frames that nobody asked for end the case, not the kit."""

    async def dialogue(peer: Peer) -> None:
        with pytest.raises(Failure) as caught:
            await peer.expect(ack(7))
        assert caught.value.reason == "flood"

    talk(said(BACKPRESSURE * FLOOD), dialogue)


def test_silence_is_proven_by_two_keepalives() -> None:
    """Two answered Keepalives and nothing else is quiet."""
    transcript = talk(lambda: Echo(b""), lambda peer: peer.expect_quiet("4.2/one-ack"))
    assert [chunk.direction for chunk in transcript.chunks].count("sent") == 2


def test_an_answer_behind_the_first_keepalive_is_heard() -> None:
    """What a target sends after it has answered the first Keepalive breaks the silence."""

    async def dialogue(peer: Peer) -> None:
        with pytest.raises(Failure, match="expected no answer") as caught:
            await peer.expect_quiet("4.2/one-ack")
        assert caught.value.reason == "unexpected-frame"

    talk(lambda: Echo(ACK_7), dialogue)


def test_without_keepalives_silence_proves_nothing() -> None:
    """Where the barrier is not answered, the case is blocked, not passed."""

    async def dialogue(peer: Peer) -> None:
        with pytest.raises(Blocked) as caught:
            await peer.expect_quiet("4.2/one-ack")
        assert caught.value.timing

    talk(said(b""), dialogue, 0.05)


@pytest.mark.parametrize(
    ("wanted", "reason"), [(ack(7), "timeout"), (closed("11.1/magic"), "not-closed")]
)
def test_silence_has_a_reason(wanted: object, reason: str) -> None:
    """A missing answer and a missing close are told apart."""

    async def dialogue(peer: Peer) -> None:
        with pytest.raises(Failure) as caught:
            await peer.expect(wanted)  # type: ignore[arg-type]  # parametrized
        assert (caught.value.reason, caught.value.timing) == (reason, True)

    talk(said(b""), dialogue, 0.05)


def test_garbage_is_told_in_words() -> None:
    """A failure on bytes that are no frame says what is wrong with them, and where."""

    async def dialogue(peer: Peer) -> None:
        with pytest.raises(Failure, match="magic at byte 0") as caught:
            await peer.expect(keepalive(), ack(7))
        assert caught.value.reason == "bad-magic"
        assert len(caught.value.expected) == 2

    talk(said(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), dialogue)


def test_the_kit_does_not_send_faults_by_mistake() -> None:
    """Steps that are meant to be right go through the strict decoder first."""

    async def dialogue(peer: Peer) -> None:
        with pytest.raises(KitError, match="not a right frame"):
            peer.send(replace(KEEPALIVE, version=2))

    assert talk(said(b""), dialogue).chunks == []


def test_a_violation_stays_one() -> None:
    """After bytes that are no frame, nothing on the connection is trusted."""

    async def dialogue(peer: Peer) -> None:
        first = await peer.receive()
        assert isinstance(first, Violation)
        assert await peer.receive() == first

    talk(said(bytes(44) + ACK_7), dialogue)


def test_a_transcript_keeps_the_beginning_of_a_flood() -> None:
    """What is kept of one connection is bounded, and the rest is counted."""
    transcript = Transcript(lambda: 0.0)
    transcript.received(1, bytes(KEEP_PER_CONNECTION - 1))
    transcript.received(1, bytes(11))
    transcript.received(1, bytes(7))
    assert [len(chunk.data) for chunk in transcript.chunks] == [KEEP_PER_CONNECTION - 1, 1]
    assert transcript.chunks[-1].note == "10 bytes not kept"


def test_a_dialogue_is_recorded() -> None:
    """Both directions are in the transcript, byte by byte."""
    tail = answer(Command.TOPIC_RESPONSE, "5.4/answer")

    async def dialogue(peer: Peer) -> None:
        with pytest.raises(Failure):
            await peer.ask(LIST_TOPICS, tail)

    transcript = talk(lambda: Echo(b""), dialogue)
    request = LIST_TOPICS.encode(crc32c)
    chunks = [(chunk.direction, chunk.data) for chunk in transcript.chunks]
    assert chunks == [("sent", request), ("received", request)]
