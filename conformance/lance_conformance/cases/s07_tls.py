"""Cases about TLS (LWP section 7.1); they need a target that is asked over TLS."""

from collections.abc import Callable

from lance_conformance.cases.registry import case
from lance_conformance.peer.access import Way
from lance_conformance.peer.conn import Peer
from lance_conformance.peer.dialogue import ALIVE, Dialogue
from lance_conformance.peer.expect import ack, answer
from lance_conformance.peer.verdict import Failure
from lance_conformance.protocols.outcomes import closed
from lance_conformance.protocols.questions import Question
from lance_conformance.wire.control import LIST_TOPICS, fetch, get_topic, ingest
from lance_conformance.wire.frame import Command, Frame

LARGE = 100_000
"""Bytes of a value that takes several TLS records, which have 16 KiB at most."""
HALF_A_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(40))
"""The beginning of a ClientHello of 200 bytes."""
VISITORS = 8


def _over(need: str) -> Callable[[str, str], Callable[[Question], Question]]:
    def declared(case_id: str, clause: str) -> Callable[[Question], Question]:
        return case(case_id, clause, needs=(need,), quick=False)

    return declared


tls = _over("tls")
mtls = _over("mtls")


async def _not_served(c: Dialogue, peer: Peer, why: str) -> None:
    """Whatever a TLS server says to one it does not serve, it is no frame; then it hangs up."""
    try:
        event = await peer.receive()
    except OSError:
        return
    c.check(not isinstance(event, Frame), "unauthorised-accepted", why)


@tls("tls/plain-text", "7.1/tls-only")
async def plain_text(c: Dialogue) -> None:
    """A right LWP frame without TLS is not served on a TLS port."""
    peer = await c.open(way=Way.PLAIN, authenticated=False)
    peer.send(LIST_TOPICS)
    await _not_served(c, peer, "a request without TLS was answered")
    await c.still_alive()


@tls("tls/no-hello", "7.1/hostile-hello")
async def no_hello(c: Dialogue) -> None:
    """A connection that begins with noise is closed."""
    link = await c.connected(way=Way.PLAIN)
    link.write(bytes(range(250, 256)) * 100, "ClientHello")
    while link.closed is None and await link.wait(c.deadline):
        link.take()
    c.check(link.closed is not None, "not-closed", "noise must end the connection")
    await c.still_alive()


@tls("tls/half-hello", "7.1/hostile-hello")
async def half_hello(c: Dialogue) -> None:
    """Clients that stop in the middle of the handshake hold nobody up."""
    for _ in range(VISITORS):
        (await c.connected(way=Way.PLAIN)).write(HALF_A_HELLO, "ClientHello")
    peer = await c.open()
    await peer.ask(LIST_TOPICS, ALIVE)


@tls("tls/silent-visitors", "7.1/hostile-hello")
async def silent_visitors(c: Dialogue) -> None:
    """Clients that connect and never begin the handshake hold nobody up."""
    for _ in range(VISITORS):
        await c.connected(way=Way.PLAIN)
    await c.still_alive()


@tls("tls/frame-in-many-records", "7.1/records")
async def frame_in_many_records(c: Dialogue) -> None:
    """A frame whose every byte comes in a TLS record of its own is served."""
    topic = await c.topic()
    peer = await c.open()
    for byte in peer.encode(get_topic(topic.id)):
        peer.send_bytes(bytes([byte]))
    await peer.expect(answer(Command.TOPIC_RESPONSE, "7.1/records"))


@tls("tls/frames-in-one-record", "7.1/records")
async def frames_in_one_record(c: Dialogue) -> None:
    """Several frames in one TLS record are all served, in order."""
    topic = await c.topic()
    peer = await c.open()
    frames = [ingest(topic.id, c.batch(), c.values(1)) for _ in range(5)]
    peer.send(*frames)
    for frame in frames:
        await peer.expect(ack(frame.batch_id, "7.1/records"))


@tls("tls/large-frame", "7.1/records")
async def large_frame(c: Dialogue) -> None:
    """A frame that is larger than a TLS record is stored whole."""
    topic = await c.topic()
    frame = ingest(topic.id, c.batch(), [bytes([7]) * LARGE])
    await (await c.open()).ask(frame, ack(frame.batch_id, "7.1/records"))
    size = len((await c.fetch(topic, 0, 2 * LARGE)).data)
    c.check(size == len(frame.payload), "data", f"{len(frame.payload)} bytes sent, {size} stored")


@tls("tls/large-answer", "7.1/records")
async def large_answer(c: Dialogue) -> None:
    """An answer that is larger than a TLS record comes whole."""
    topic = await c.topic()
    payload = await c.store(topic, [bytes([number]) * 20_000 for number in range(5)])
    peer = await c.open()
    peer.send(fetch(topic.id, 0, 2 * LARGE), LIST_TOPICS)
    frame = await peer.frame(answer(Command.FETCH_RESPONSE, "7.1/records"))
    c.check(c.read(peer, frame).data == payload, "data", "the answer must be the five records")
    await peer.expect(ALIVE)


@tls("tls/bad-frame-closes", "11.1/magic")
async def bad_frame_closes(c: Dialogue) -> None:
    """A frame that is no LWP ends a TLS connection as it ends a plain one."""
    peer = await c.open()
    peer.send_bytes(b"XANC" + peer.encode(LIST_TOPICS)[4:])
    await peer.expect(closed("11.1/magic"))
    await c.still_alive()


async def _turned_away(c: Dialogue, way: Way, why: str) -> None:
    """The handshake fails, or (as in TLS 1.3) the first request goes unanswered."""
    try:
        peer = await c.open(way=way, authenticated=False)
    except Failure:
        return
    peer.send(LIST_TOPICS)
    await _not_served(c, peer, why)


@mtls("tls/no-certificate", "7.1/client-certificate")
async def no_certificate(c: Dialogue) -> None:
    """A client without a certificate is not served."""
    await _turned_away(c, Way.ANONYMOUS, "a client without a certificate was served")
    await c.still_alive()


@mtls("tls/unknown-authority", "7.1/client-certificate")
async def unknown_authority(c: Dialogue) -> None:
    """A client whose certificate is of an unknown authority is not served."""
    await _turned_away(c, Way.STRANGER, "a client of an unknown authority was served")
    await c.still_alive()
