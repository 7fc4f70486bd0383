"""Combination: of two faults in one frame, a broken checksum counts first."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from lance_conformance.engine.expectations import closed
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.variation.common import register
from lance_conformance.server.expect import keepalive
from lance_conformance.wire.consumers import commit_offset, subscribe
from lance_conformance.wire.control import (
    KEEPALIVE,
    control,
    create_topic,
    delete_topic,
    fetch,
    get_topic,
    ingest,
    set_retention,
)
from lance_conformance.wire.frame import Frame

Refused = Callable[[CaseContext], Awaitable[Frame]]


async def _batch(ctx: CaseContext) -> Frame:
    return ingest((await ctx.topic()).id, ctx.batch(), ctx.values(1))


async def _lost(ctx: CaseContext) -> Frame:
    return ingest(ctx.unknown_topic, ctx.batch(), ctx.values(1))


async def _late(ctx: CaseContext) -> Frame:
    topic = await ctx.disposable_topic()
    ctx.side.send(delete_topic(topic.id))
    await ctx.side.receive_any()
    return ingest(topic.id, ctx.batch(), ctx.values(1))


async def _miscounted(ctx: CaseContext) -> Frame:
    return replace(await _batch(ctx), record_count=2)


async def _broken(ctx: CaseContext) -> Frame:
    right = await _batch(ctx)
    return replace(right, payload=right.payload[:-1])


def _asks(frame: Callable[[CaseContext], Frame]) -> Refused:
    async def made(ctx: CaseContext) -> Frame:
        return frame(ctx)

    return made


REFUSED: tuple[tuple[str, str, Refused], ...] = (
    ("lost-batch", "a batch for a topic that is not there", _lost),
    ("late-batch", "a batch for a topic that is deleted", _late),
    ("miscounted-batch", "a batch with a wrong record count", _miscounted),
    ("broken-batch", "a batch whose last record is cut", _broken),
    ("lost-get", "a GetTopic of a topic that is not there",
     _asks(lambda ctx: get_topic(ctx.unknown_topic))),
    ("lost-fetch", "a Fetch from a topic that is not there",
     _asks(lambda ctx: fetch(ctx.unknown_topic, 0, 64))),
    ("lost-subscribe", "a Subscribe to a topic that is not there",
     _asks(lambda ctx: subscribe(ctx.unknown_topic, ctx.consumer))),
    ("lost-commit", "a CommitOffset of a topic that is not there",
     _asks(lambda ctx: commit_offset(ctx.unknown_topic, ctx.consumer, 0))),
    ("lost-retention", "a SetRetention of a topic that is not there",
     _asks(lambda ctx: set_retention(ctx.unknown_topic, 3600, 1 << 30))),
    ("bad-name", "a CreateTopic with a slash in its name",
     _asks(lambda ctx: create_topic(ctx.name("/a")))),
    ("unknown-command", "an unknown command", _asks(lambda _: control(0x7E, b"kit"))),
)  # fmt: skip
"""Name, words, and a frame that would be refused if its checksum were right."""


async def _closes(ctx: CaseContext, refused: Refused, field: str) -> None:
    """No answer comes before the connection is closed, whatever else is wrong with the frame."""
    frame, peer = await refused(ctx), await ctx.open()
    async with ctx.precondition("a Keepalive on the same connection"):
        await peer.ask(KEEPALIVE, keepalive())
    crc = ctx.dialect.compute
    if field == "payload":
        last = bytes([frame.payload[-1] ^ 0x10])
        wrong = replace(frame, payload=frame.payload[:-1] + last, payload_crc=crc(frame.payload))
    else:
        wrong = replace(frame, header_crc=crc(frame.prefix) ^ 0x10)
    peer.send_faulty(wrong, field)
    await peer.expect(closed(f"11.3/{field.removesuffix('_crc')}-crc"))
    await ctx.still_alive()


for _name, _words, _refused in REFUSED:
    _title = f"A wrong checksum of {_words} closes the connection."
    register(
        f"crc/payload-of-{_name}", "11.3/payload-crc", _title,
        partial(_closes, refused=_refused, field="payload"), twin_of="each/payload-crc-ingest",
    )  # fmt: skip
    if _refused not in {_miscounted, _broken}:  # the header tells nothing of that
        register(
            f"crc/header-of-{_name}", "11.3/header-crc", _title,
            partial(_closes, refused=_refused, field="header_crc"),
            twin_of="each/header-crc-keepalive",
        )  # fmt: skip
