"""Cases about TLS (LWP section 7.1); they need a target that is asked over TLS."""

from collections.abc import Callable

from lance_conformance.engine.access import EntryMode
from lance_conformance.engine.expectations import closed
from lance_conformance.engine.failures import Failure
from lance_conformance.engine.registry import CaseFunction
from lance_conformance.server.case_context import ALIVE, CaseContext
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import ack, answer
from lance_conformance.server.peer import Peer
from lance_conformance.wire.control import LIST_TOPICS, fetch, get_topic, ingest
from lance_conformance.wire.frame import Command, Frame

LARGE = 100_000
"""Bytes of a value that takes several TLS records, which have 16 KiB at most."""
HALF_A_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(40))
"""The beginning of a ClientHello of 200 bytes."""
VISITORS = 8


def _over(need: str) -> Callable[[str, str], Callable[[CaseFunction], CaseFunction]]:
    def declared(case_id: str, clause: str) -> Callable[[CaseFunction], CaseFunction]:
        return case(case_id, clause, needs=(need,), quick=False)

    return declared


tls = _over("tls")
mtls = _over("mtls")


async def _not_served(ctx: CaseContext, peer: Peer, why: str) -> None:
    """Whatever a TLS server says to one it does not serve, it is not a frame; then it hangs up."""
    try:
        event = await peer.receive()
    except OSError:
        return
    ctx.check(not isinstance(event, Frame), "unauthorised-accepted", why)


@tls("tls/plain-text", "7.1/tls-only")
async def plain_text(ctx: CaseContext) -> None:
    """A right LWP frame without TLS is not served on a TLS port."""
    peer = await ctx.open(way=EntryMode.PLAIN, authenticated=False)
    peer.send(LIST_TOPICS)
    await _not_served(ctx, peer, "a request without TLS was answered")
    await ctx.still_alive()


@tls("tls/no-hello", "7.1/hostile-hello")
async def no_hello(ctx: CaseContext) -> None:
    """A connection that begins with noise is closed."""
    connection = await ctx.connected(way=EntryMode.PLAIN)
    connection.write(bytes(range(250, 256)) * 100, "ClientHello")
    while connection.closed is None and await connection.wait(ctx.deadline):
        connection.take()
    ctx.check(connection.closed is not None, "not-closed", "noise must end the connection")
    await ctx.still_alive()


@tls("tls/half-hello", "7.1/hostile-hello")
async def half_hello(ctx: CaseContext) -> None:
    """Clients that stop in the middle of the handshake hold nobody up."""
    for _ in range(VISITORS):
        (await ctx.connected(way=EntryMode.PLAIN)).write(HALF_A_HELLO, "ClientHello")
    peer = await ctx.open()
    await peer.ask(LIST_TOPICS, ALIVE)


@tls("tls/silent-visitors", "7.1/hostile-hello")
async def silent_visitors(ctx: CaseContext) -> None:
    """Clients that connect and never begin the handshake hold nobody up."""
    for _ in range(VISITORS):
        await ctx.connected(way=EntryMode.PLAIN)
    await ctx.still_alive()


@tls("tls/frame-in-many-records", "7.1/records")
async def frame_in_many_records(ctx: CaseContext) -> None:
    """A frame whose every byte comes in a TLS record of its own is served."""
    topic = await ctx.topic()
    peer = await ctx.open()
    for byte in peer.encode(get_topic(topic.id)):
        peer.send_bytes(bytes([byte]))
    await peer.expect(answer(Command.TOPIC_RESPONSE, "7.1/records"))


@tls("tls/frames-in-one-record", "7.1/records")
async def frames_in_one_record(ctx: CaseContext) -> None:
    """Several frames in one TLS record are all served, in order."""
    topic = await ctx.topic()
    peer = await ctx.open()
    frames = [ingest(topic.id, ctx.batch(), ctx.values(1)) for _ in range(5)]
    peer.send(*frames)
    for frame in frames:
        await peer.expect(ack(frame.batch_id, "7.1/records"))


@tls("tls/large-frame", "7.1/records")
async def large_frame(ctx: CaseContext) -> None:
    """A frame that is larger than a TLS record is stored whole."""
    topic = await ctx.topic()
    frame = ingest(topic.id, ctx.batch(), [bytes([7]) * LARGE])
    await (await ctx.open()).ask(frame, ack(frame.batch_id, "7.1/records"))
    size = len((await ctx.fetch(topic, 0, 2 * LARGE)).data)
    ctx.check(size == len(frame.payload), "data", f"{len(frame.payload)} bytes sent, {size} stored")


@tls("tls/large-answer", "7.1/records")
async def large_answer(ctx: CaseContext) -> None:
    """An answer that is larger than a TLS record comes whole."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, [bytes([number]) * 20_000 for number in range(5)])
    peer = await ctx.open()
    peer.send(fetch(topic.id, 0, 2 * LARGE), LIST_TOPICS)
    frame = await peer.frame(answer(Command.FETCH_RESPONSE, "7.1/records"))
    ctx.check(ctx.read(peer, frame).data == payload, "data", "the answer must be the five records")
    await peer.expect(ALIVE)


@tls("tls/bad-frame-closes", "11.1/magic")
async def bad_frame_closes(ctx: CaseContext) -> None:
    """A frame that is not LWP ends a TLS connection as it ends a plain one."""
    peer = await ctx.open()
    peer.send_bytes(b"XANC" + peer.encode(LIST_TOPICS)[4:])
    await peer.expect(closed("11.1/magic"))
    await ctx.still_alive()


async def _turned_away(ctx: CaseContext, way: EntryMode, why: str) -> None:
    """The handshake fails, or (as in TLS 1.3) the first request goes unanswered."""
    try:
        peer = await ctx.open(way=way, authenticated=False)
    except Failure:
        return
    peer.send(LIST_TOPICS)
    await _not_served(ctx, peer, why)


@mtls("tls/no-certificate", "7.1/client-certificate")
async def no_certificate(ctx: CaseContext) -> None:
    """A client without a certificate is not served."""
    await _turned_away(ctx, EntryMode.ANONYMOUS, "a client without a certificate was served")
    await ctx.still_alive()


@mtls("tls/unknown-authority", "7.1/client-certificate")
async def unknown_authority(ctx: CaseContext) -> None:
    """A client whose certificate is of an unknown authority is not served."""
    await _turned_away(ctx, EntryMode.STRANGER, "a client of an unknown authority was served")
    await ctx.still_alive()
