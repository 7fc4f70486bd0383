"""Size: a rule holds for large frames as for small ones."""

from dataclasses import replace
from functools import partial

from lance_conformance.engine.expectations import closed
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.variation.common import holds, register
from lance_conformance.server.expect import ack
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import ingest

SIZES = (1, 255, 256, 257, 1024, 4096, 65536, 1 << 20)
"""Bytes of the value of the one record."""
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


async def _counted(ctx: CaseContext, size: int) -> None:
    """A batch that announces one record more than it has is refused."""
    topic, payload = await ctx.filled(1, 8)
    wrong = ingest(topic.id, ctx.batch(), ctx.values(1, size))
    ctx.side.send_faulty(replace(wrong, record_count=2), "record_count")
    await ctx.side.expect(ctx.error(ErrorCode.INVALID_PAYLOAD, cite="4.1/record-count"))
    await holds(ctx, topic, payload)


async def _unfinished(ctx: CaseContext, size: int) -> None:
    """All but the last byte of a batch is no batch, whatever its size."""
    topic, payload = await ctx.filled(1, 8)
    peer = await ctx.open()
    frame = ingest(topic.id, ctx.batch(), ctx.values(1, size))
    data = peer.encode(frame)
    peer.send_bytes(data[:-1])
    await ctx.still_alive()
    await holds(ctx, topic, payload)
    peer.send_bytes(data[-1:])
    await peer.expect(ack(frame.batch_id, "3.4/whole"))


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
