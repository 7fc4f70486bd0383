"""Position: a rule holds for the thousandth frame of a connection as for the first."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from lance_conformance.engine.expectations import Allowed, closed
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import BOTH, SPECIFIED
from lance_conformance.server.cases.variation.common import (
    batches,
    holds,
    joined,
    ordinal,
    register,
    send_all,
)
from lance_conformance.server.expect import keepalive, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import KEEPALIVE, get_topic
from lance_conformance.wire.frame import MAX_PAYLOAD, Flag, Frame

POSITIONS = (2, 9, 100, 1000)


@dataclass(frozen=True, slots=True)
class Fault:
    """A frame with one fault, and what must come of it.

    Attributes:
        name: In the ids of its cases.
        clause: The clause that asks for it.
        field: The field in which the frame is wrong.
        words: The fault in a sentence about "the 9th frame".
        spoil: Makes a right batch wrong.
        allowed: What must come.
        dialects: Where the rule is so.
    """

    name: str
    clause: str
    field: str
    words: str
    spoil: Callable[[CaseContext, Frame], Frame]
    allowed: Callable[[CaseContext], Allowed]
    dialects: tuple[str, ...] = BOTH


def _closes(clause: str) -> Callable[[CaseContext], Allowed]:
    return lambda _: closed(clause)


def _refuses(clause: str, *codes: int) -> Callable[[CaseContext], Allowed]:
    return lambda ctx: ctx.error(*codes, cite=clause, text="topic")


def _wrong_header_crc(ctx: CaseContext, frame: Frame) -> Frame:
    return replace(frame, header_crc=ctx.dialect.compute(frame.prefix) ^ 1)


def _wrong_payload_crc(ctx: CaseContext, frame: Frame) -> Frame:
    return replace(frame, payload_crc=ctx.dialect.compute(frame.payload) ^ 1)


FAULTS = (
    Fault("magic", "11.1/magic", "magic", "whose magic bytes are wrong closes the connection",
          lambda _, frame: replace(frame, magic=b"LANX"), _closes("11.1/magic")),
    Fault("version", "11.2/version", "version", "of another version closes the connection",
          lambda _, frame: replace(frame, version=2), _closes("11.2/version")),
    Fault("header-crc", "11.3/header-crc", "header_crc",
          "whose header checksum is wrong closes the connection",
          _wrong_header_crc, _closes("11.3/header-crc")),
    Fault("payload-crc", "11.3/payload-crc", "payload_crc",
          "whose payload checksum is wrong closes the connection",
          _wrong_payload_crc, _closes("11.3/payload-crc")),
    Fault("reserved", "3.2/reserved", "reserved",
          "whose reserved bytes are not zero closes the connection",
          lambda _, frame: replace(frame, reserved=0x0100), _closes("3.2/reserved"), SPECIFIED),
    Fault("flag-bit-7", "3.3/bit-7", "flags", "with flag bit 7 closes the connection",
          lambda _, frame: replace(frame, flags=frame.flags | Flag.RESERVED),
          _closes("3.3/bit-7"), SPECIFIED),
    Fault("unknown-topic", "6.4/unknown-topic", "topic_id",
          "for a topic that does not exist is refused",
          lambda ctx, frame: replace(frame, topic_id=ctx.unknown_topic),
          _refuses("6.4/unknown-topic", ErrorCode.TOPIC_NOT_FOUND)),
    Fault("record-count", "4.1/record-count", "record_count",
          "whose record count is wrong is refused",
          lambda _, frame: replace(frame, record_count=frame.record_count + 1),
          _refuses("4.1/record-count", ErrorCode.INVALID_PAYLOAD), SPECIFIED),
    Fault("chain", "8.4/chain", "payload", "whose records are cut is refused",
          lambda _, frame: replace(frame, payload=frame.payload[:-1]),
          _refuses("8.4/chain", ErrorCode.INVALID_PAYLOAD), SPECIFIED),
    Fault("batch-id-zero", "4.1/batch-id", "batch_id", "with batch id 0 is refused",
          lambda _, frame: replace(frame, batch_id=0),
          _refuses("4.1/batch-id", ErrorCode.INVALID_PAYLOAD), SPECIFIED),
)  # fmt: skip


async def _faulty(ctx: CaseContext, fault: Fault, position: int) -> None:
    topic, peer = await ctx.topic(), await ctx.open()
    *right, last = batches(ctx, topic, position)
    async with ctx.precondition(f"storing the {position - 1} batches before it"):
        await send_all(peer, right)
    peer.send_faulty(fault.spoil(ctx, last), fault.field)
    await peer.expect(fault.allowed(ctx))
    await holds(ctx, topic, joined(right))


Right = Callable[[CaseContext, Peer, Topic, list[Frame]], Awaitable[None]]


async def _oversize(ctx: CaseContext, position: int) -> None:
    """A frame that announces too much is not read on, wherever it stands."""
    topic, peer = await ctx.topic(), await ctx.open()
    *right, last = batches(ctx, topic, position)
    async with ctx.precondition(f"storing the {position - 1} batches before it"):
        await send_all(peer, right)
    peer.send_faulty(replace(last, payload=b"", payload_length=MAX_PAYLOAD + 1), "payload_length")
    said = ctx.error(ErrorCode.PAYLOAD_TOO_LARGE, cite="8.7/oversize")
    event = await peer.expect(closed("8.7/oversize"), said)
    if isinstance(event, Frame):
        await peer.expect(closed("8.7/oversize"))


async def _keepalive(ctx: CaseContext, position: int) -> None:
    topic, peer = await ctx.topic(), await ctx.open()
    right = batches(ctx, topic, position - 1)
    async with ctx.precondition(f"storing the {position - 1} batches before it"):
        await send_all(peer, right)
    await peer.ask(KEEPALIVE, keepalive())


async def _command(ctx: CaseContext, position: int) -> None:
    topic, peer = await ctx.topic(), await ctx.open()
    request = get_topic(topic.id)
    peer.send(*[request] * (position - 1))
    async with ctx.precondition(f"asking {position - 1} times before"):
        for _ in range(position - 1):
            await peer.frame(topic_response("5.5/get"))
    await peer.ask(request, topic_response("5.5/get"))
    wrong = get_topic(ctx.unknown_topic)
    codes = ErrorCode.TOPIC_NOT_FOUND, ErrorCode.TOPIC_DELETED
    await peer.ask(wrong, ctx.error(*codes, cite="5.5/not-found", text="not found"))


async def _ack(ctx: CaseContext, position: int) -> None:
    topic, peer = await ctx.topic(), await ctx.open()
    frames = batches(ctx, topic, position)
    await send_all(peer, frames, "4.2/batch-id")
    await holds(ctx, topic, joined(frames))


for _position in POSITIONS:
    _nth = ordinal(_position)
    _weight = 1 + _position // 250
    for _fault in FAULTS:
        register(
            f"pos/{_fault.name}-at-{_position}",
            _fault.clause,
            f"The {_nth} frame of a connection, {_fault.words}.".replace(", whose", " whose"),
            partial(_faulty, fault=_fault, position=_position),
            dialects=_fault.dialects,
            weight=_weight,
        )
    register(
        f"pos/oversize-at-{_position}", "8.7/oversize",
        f"The {_nth} frame of a connection ends it where it announces too large a payload.",
        partial(_oversize, position=_position), weight=_weight,
    )  # fmt: skip
    register(
        f"pos/keepalive-at-{_position}", "4.3/answer",
        f"A Keepalive is answered as the {_nth} frame of a connection.",
        partial(_keepalive, position=_position), weight=_weight,
    )  # fmt: skip
    register(
        f"pos/command-at-{_position}", "5.5/not-found",
        f"The {_nth} command of a connection finds a topic, and misses one that is not there.",
        partial(_command, position=_position), weight=_weight,
    )  # fmt: skip
    register(
        f"pos/ack-at-{_position}", "4.2/batch-id",
        f"Each of {_position} batches of a connection is acknowledged by its id and stored.",
        partial(_ack, position=_position), weight=2 * _weight,
    )  # fmt: skip
