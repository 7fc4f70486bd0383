"""What cases of several axes use."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from inspect import getdoc
from typing import Any

from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import ack, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import create_topic, ingest, read_json
from lance_conformance.wire.frame import Frame

NONCE = 0x5A5A5A << 40
"""A producer nonce: batch ids from 2^40 on are known on every connection (AMB-25)."""
NOT_FOUND = (ErrorCode.TOPIC_NOT_FOUND, ErrorCode.TOPIC_DELETED)
"""What is said of a topic that is not there."""
IN_FLIGHT = 256
"""Frames that are sent without waiting for their answers, at most."""

CaseFunction = Callable[[CaseContext], Awaitable[None]]
_FIRST: dict[tuple[str, object], str] = {}
"""The first case of each question about each clause; the others differ in a value only."""


def register(case_id: str, clause: str, title: str, function: CaseFunction, **how: Any) -> None:
    """Register a question that was made from a table, as a twin of the first of its kind.

    Args:
        case_id: ``area/slug``.
        clause: Key into the clauses.
        title: What must hold, as one sentence.
        function: Asks it.
        **how: Further arguments of `CaseRegistry.case`.
    """

    async def asked(ctx: CaseContext) -> None:
        await function(ctx)

    kind = function.func if isinstance(function, partial) else function
    how.setdefault("twin_of", _FIRST.setdefault((clause, kind), case_id))
    details = getdoc(kind)
    asked.__doc__ = f"{title}\n\n{details}" if details else title
    case(case_id, clause, quick=False, **how)(asked)


def ordinal(number: int) -> str:
    """A number as a word of order: 2nd, 9th, 101st."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def batches(ctx: CaseContext, topic: Topic, count: int, size: int = 8) -> list[Frame]:
    """Batches of one record each; no two hold the same bytes."""
    return [
        ingest(topic.id, ctx.batch(), [number.to_bytes(4, "big") + ctx.rng.randbytes(size - 4)])
        for number in range(count)
    ]


async def created(
    ctx: CaseContext, count: int, cite: str = "6.1/isolation", size: int = 0
) -> list[Topic]:
    """Topics of this case's own, some hundred in a write; here a refusal is the fault looked for.

    Args:
        ctx: The case.
        count: How many.
        cite: The clause that a refusal breaks.
        size: Bytes that each name has at least.
    """
    topics: list[Topic] = []
    while len(topics) < count:
        some = range(min(IN_FLIGHT, count - len(topics)))
        names = [ctx.name("-").ljust(size, "x") for _ in some]
        ctx.side.send(*map(create_topic, names))
        for name in names:
            frame = await ctx.side.frame(topic_response(cite))
            topics.append(Topic(int((read_json(frame.payload) or {}).get("id") or 0), name))
    return topics


async def send_all(peer: Peer, frames: Sequence[Frame], cite: str = "10.2/ack-order") -> None:
    """Send batches, some hundred at a time, and take an Ack of each in their order."""
    for start in range(0, len(frames), IN_FLIGHT):
        some = frames[start : start + IN_FLIGHT]
        peer.send(*some)
        for frame in some:
            await peer.expect(ack(frame.batch_id, cite))


async def read_all(ctx: CaseContext, topic: Topic, size: int, step: int = 1 << 16) -> bytes:
    """All data of a topic, fetched step by step from the beginning to the end.

    Args:
        ctx: The case.
        topic: The topic.
        size: Bytes that it holds; what is read ends soon after, for a log may seem endless.
        step: Bytes to ask for at a time.
    """
    parts: list[bytes] = []
    offset = 0
    while offset <= size:
        got = await ctx.fetch(topic, offset, step)
        if not got.data:
            break
        ctx.check(
            got.next_offset == offset + len(got.data),
            "field:next_offset",
            f"{len(got.data)} bytes from {offset} end at {offset + len(got.data)}, "
            f"not at {got.next_offset}",
        )
        parts.append(got.data)
        offset = got.next_offset
    return b"".join(parts)


def joined(frames: Sequence[Frame]) -> bytes:
    """The data that batches leave in the log, in their order."""
    return b"".join(frame.payload for frame in frames)


async def holds(ctx: CaseContext, topic: Topic, right: bytes) -> None:
    """A topic must hold exactly this.

    Raises:
        Failure: It holds something else; the message says from which byte on.
    """
    data = await read_all(ctx, topic, len(right))
    if data == right:
        return
    pairs = zip(data, right, strict=False)
    at = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(data), len(right)))
    ctx.check(
        False,
        "data",
        f"topic {topic.id} must hold {len(right)} bytes and holds {len(data)}; "
        f"the first byte that differs is {at}",
    )
