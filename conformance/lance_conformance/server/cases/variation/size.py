"""Size: a rule holds for large frames as for small ones."""

from dataclasses import replace
from functools import partial

from lance_conformance.engine.expectations import closed
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.variation.common import holds, register
from lance_conformance.server.consumers import pushed, subscribe_ack
from lance_conformance.server.expect import ack, topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import subscribe
from lance_conformance.wire.control import create_topic, ingest, read_json

SIZES = (1, 255, 256, 257, 1024, 4096, 65536, 1 << 20)
"""Bytes of the value of the one record."""
LIMITS = (255, 4096, 65536, 1_500_000)
"""Bytes to ask a Fetch for."""
PUSHES = (255, 5000, 100_000)
"""Bytes to ask for in a push."""
WHOLE = (5_000, 100_000, 1_200_000, 9_000_000)
"""Bytes of a record that a Fetch brings whole."""
NAMES = (65, 129, 250)
"""Bytes of a name."""
FLIPPED = {"first": 0, "middle": 0.5, "last": 1}


def _spoilt(payload: bytes, share: float) -> bytes:
    """The payload with one bit of one byte inverted."""
    at = round(share * (len(payload) - 1))
    return payload[:at] + bytes([payload[at] ^ 0x10]) + payload[at + 1 :]


async def _changed(ctx: CaseContext, size: int) -> None:
    """Changes a byte at the beginning, in the middle and at the end, each on a connection."""
    topic = await ctx.topic()
    frame = ingest(topic.id, ctx.batch(), ctx.values(1, size))
    async with ctx.precondition("storing the same batch unchanged"):
        await ctx.side.ask(frame, ack(frame.batch_id))
    crc = ctx.dialect.compute(frame.payload)
    for share in FLIPPED.values():
        wrong = replace(
            frame,
            batch_id=ctx.batch(),
            payload=_spoilt(frame.payload, share),
            payload_crc=crc,
        )
        peer = await ctx.open()
        peer.send_faulty(wrong, "payload")
        await peer.expect(closed("11.3/payload-crc"))
    await holds(ctx, topic, frame.payload)


async def _cut(ctx: CaseContext, size: int) -> None:
    """A batch whose last record misses one byte is refused, and leaves nothing."""
    topic, payload = await ctx.filled(1, 8)
    right = ingest(topic.id, ctx.batch(), ctx.values(1, size))
    cut = replace(right, payload=right.payload[:-1])
    ctx.side.send_faulty(cut, "payload")
    await ctx.side.expect(ctx.error(ErrorCode.INVALID_PAYLOAD, cite="8.4/chain"))
    await holds(ctx, topic, payload)


async def _trailing(ctx: CaseContext, size: int) -> None:
    """A batch with three bytes after its last record is refused, and leaves nothing."""
    topic, payload = await ctx.filled(1, 8)
    right = ingest(topic.id, ctx.batch(), ctx.values(1, size))
    ctx.side.send_faulty(replace(right, payload=right.payload + bytes(3)), "payload")
    await ctx.side.expect(ctx.error(ErrorCode.INVALID_PAYLOAD, cite="8.4/chain"))
    await holds(ctx, topic, payload)


async def _counted(ctx: CaseContext, size: int) -> None:
    """A batch that announces one record more than it has is refused."""
    topic, payload = await ctx.filled(1, 8)
    wrong = ingest(topic.id, ctx.batch(), ctx.values(1, size))
    ctx.side.send_faulty(replace(wrong, record_count=2), "record_count")
    await ctx.side.expect(ctx.error(ErrorCode.INVALID_PAYLOAD, cite="4.1/record-count"))
    await holds(ctx, topic, payload)


async def _unfinished(ctx: CaseContext, size: int) -> None:
    """Nothing is stored of a batch before its last byte comes, at any size."""
    topic, payload = await ctx.filled(1, 8)
    peer = await ctx.open()
    frame = ingest(topic.id, ctx.batch(), ctx.values(1, size))
    data = peer.encode(frame)
    peer.send_bytes(data[:-1])
    await ctx.still_alive()
    await holds(ctx, topic, payload)
    peer.send_bytes(data[-1:])
    await peer.expect(ack(frame.batch_id, "3.4/whole"))


async def _limited(ctx: CaseContext, size: int) -> None:
    """A Fetch that asks for half of a log brings no more than that, and begins where it should."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(16, size // 8))
    got = await ctx.fetch(topic, 0, size)
    ctx.check(
        0 < len(got.data) <= size, "data-size", f"{size} bytes were asked for, {len(got.data)} came"
    )
    ctx.check(payload.startswith(got.data), "data", "the data must be the beginning of the log")


async def _whole(ctx: CaseContext, size: int) -> None:
    """A Fetch that asks for as many bytes as the one record of a log has brings it whole."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(1, size))
    got = await ctx.fetch(topic, 0, len(payload))
    ctx.check(
        got.data == payload, "data",
        f"{len(payload)} bytes were asked for and are there, {len(got.data)} came",
    )  # fmt: skip


async def _pushed(ctx: CaseContext, size: int) -> None:
    """A subscriber gets its log in pushes of no more than it asked for."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(16, size // 8))
    peer = await ctx.open()
    async with ctx.precondition("subscribing"):
        request = subscribe(topic.id, ctx.consumer, max_bytes=size)
        await peer.ask(request, subscribe_ack(ctx.consumer, cite="5.12/ack"))
    data = b""
    while len(data) < len(payload):
        got = ctx.read(peer, await peer.frame(pushed(topic.id, "5.12/push"))).data
        ctx.check(
            0 < len(got) <= size, "data-size", f"{size} bytes were asked for, {len(got)} came"
        )
        data += got
    ctx.check(data == payload, "data", "the pushes together must be the log")


async def _names(ctx: CaseContext, size: int) -> None:
    """Two names that differ in their last byte only are two names."""
    start = ctx.name("-")
    start += "x" * (size - 1 - len(start))
    ids = set()
    for last in "ab":
        frame = await ctx.side.ask(create_topic(start + last), topic_response("5.3/name-length"))
        ids.add((read_json(frame.payload) or {}).get("id"))
    ctx.check(len(ids) == 2, "field:id", f"two names have {len(ids)} ids")


for _size in SIZES:
    _weight = 1 + _size // (1 << 17) + (_size > 1 << 15)
    register(
        f"size/payload-crc-of-{_size}", "11.3/payload-crc",
        f"Of a payload with a value of {_size} bytes no bit may change: the connection is closed.",
        partial(_changed, size=_size), weight=_weight,
    )  # fmt: skip
    register(
        f"size/chain-of-{_size}", "8.4/chain",
        f"A batch with a value of {_size} bytes that misses its last byte is refused.",
        partial(_cut, size=_size), thorough=_size == max(SIZES),
        dialects=("specified",), weight=_weight,
    )  # fmt: skip
    register(
        f"size/trailing-of-{_size}", "8.4/chain",
        f"A batch with a value of {_size} bytes and three bytes after it is refused.",
        partial(_trailing, size=_size), thorough=_size == max(SIZES),
        dialects=("specified",), twin_of="size/chain-of-1", weight=_weight,
    )  # fmt: skip
    register(
        f"size/record-count-of-{_size}", "4.1/record-count",
        f"A wrong record count is refused where the value has {_size} bytes.",
        partial(_counted, size=_size), thorough=_size == max(SIZES),
        dialects=("specified",), weight=_weight,
    )  # fmt: skip
    register(
        f"size/unfinished-of-{_size}", "3.4/whole",
        f"A batch with a value of {_size} bytes is none before its last byte.",
        partial(_unfinished, size=_size), thorough=_size == max(SIZES), weight=_weight,
    )  # fmt: skip
for _size in LIMITS:
    register(
        f"size/max-bytes-of-{_size}", "5.8/max-bytes",
        f"A Fetch for {_size} bytes of a log that has more brings no more than that.",
        partial(_limited, size=_size), weight=2 + _size // (1 << 17),
    )  # fmt: skip
for _size in WHOLE:
    register(
        f"size/whole-record-of-{_size}", "5.9/cut",
        f"A record of {_size} bytes comes whole in one answer that may have its size.",
        partial(_whole, size=_size), weight=2 + _size // (1 << 17), thorough=_size == max(WHOLE),
        dialects=("specified",),
    )  # fmt: skip
for _size in PUSHES:
    register(
        f"size/push-max-of-{_size}", "5.12/max-batch-bytes",
        f"No push of a log that has more brings more than the {_size} bytes asked for.",
        partial(_pushed, size=_size), needs=("push",), dialects=("specified",),
        weight=2 + _size // (1 << 17),
    )  # fmt: skip
for _size in NAMES:
    register(
        f"size/name-of-{_size}", "5.3/name-length",
        f"All {_size} bytes of a name count.", partial(_names, size=_size),
    )  # fmt: skip
