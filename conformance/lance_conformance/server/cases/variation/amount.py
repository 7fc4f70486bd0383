"""Amount: a log of several segments is the concatenation of its batches."""

from collections.abc import Iterator
from functools import partial
from itertools import accumulate

from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.variation.common import read_all, register, send_all
from lance_conformance.server.expect import ack
from lance_conformance.wire.control import ingest
from lance_conformance.wire.tlv import boundaries, records

KIB, MIB = 1 << 10, 1 << 20
_FAR = 8
"""Batches in flight."""


QUARTERS = (8, 1, 4, 2)
"""By how much the batches of each quarter of a log are smaller than the largest: segments of equal
size then hold numbers of batches that rise and fall, and none is like the one before."""


def _sizes(batch: int, count: int) -> Iterator[int]:
    """The sizes of the batches of a log of `count` times `batch` bytes."""
    for parts in QUARTERS:
        yield from [batch // parts] * (count // len(QUARTERS) * parts)


async def _in_order(ctx: CaseContext, batch: int, count: int, step: int) -> None:
    """Each batch says its number in each record, so that what is out of order says where."""
    topic, peer = await ctx.topic(), await ctx.open()
    right, waiting = [], []
    for number, size in enumerate(_sizes(batch, count)):
        mark = number.to_bytes(8, "big")
        frame = ingest(topic.id, ctx.batch(), [mark + bytes(size // 4 - 8)] * 4)
        peer.send(frame)
        right.append(frame.payload)
        waiting.append(frame.batch_id)
        if len(waiting) == _FAR:
            await peer.expect(ack(waiting.pop(0)))
    for batch_id in waiting:
        await peer.expect(ack(batch_id))
    whole = b"".join(right)
    data = await read_all(ctx, topic, len(whole), step)
    ctx.check(
        len(data) == len(whole), "data", f"{len(whole)} bytes were stored, {len(data)} come back"
    )
    starts = accumulate(map(len, right), initial=0)
    places = enumerate(zip(starts, right, strict=False))
    first = next((n for n, (at, part) in places if not data.startswith(part, at)), None)
    told = f"in the place of batch {first} of {len(right)} stand other bytes"
    ctx.check(first is None, "order", told)
    middle = sum(map(len, right[: len(right) // 2]))
    got = await ctx.fetch(topic, middle, step)
    ctx.check(
        got.data == whole[middle : middle + len(got.data)],
        "data",
        f"wrong data from byte {middle} on",
    )


async def _whole_records(ctx: CaseContext, size: int, step: int) -> None:
    """Each answer ends where a record ends, and counts its records, whatever lies between."""
    topic, at = await ctx.topic(), 0
    values = [bytes(1000 + number) for number in range(50)]
    payload = records(values)
    frames = [ingest(topic.id, ctx.batch(), values) for _ in range(size // len(payload))]
    async with ctx.precondition("storing the batches"):
        await send_all(ctx.side, frames)
    ends = boundaries(payload)[1:]
    while at < len(payload) * len(frames):
        got = await ctx.fetch(topic, at, step)
        at += len(got.data)
        place = at % len(payload) or len(payload)
        ctx.check(got.data and place in ends, "cut", f"an answer ends at {at}, within a record")
        if got.record_count is not None:
            right = len(boundaries(got.data)) - 1
            ctx.check(
                got.record_count == right, "field:record_count",
                f"{right} records came, {got.record_count} are announced",
            )  # fmt: skip


async def _far(ctx: CaseContext, large: int, count: int) -> None:
    """Small batches stand between large ones: each is found at its offset, and the end is told."""
    topic, peer = await ctx.topic(), await ctx.open()
    marks, end = {}, 0
    filling = bytes(large)
    for number in range(count):
        mark = ingest(topic.id, ctx.batch(), [number.to_bytes(4, "big") * 9] * 2)
        body = ingest(topic.id, ctx.batch(), [filling])
        peer.send(mark, body)
        await peer.expect(ack(mark.batch_id))
        await peer.expect(ack(body.batch_id))
        marks[end] = mark.payload
        end += len(mark.payload) + len(body.payload)
    for at, right in marks.items():
        got = await ctx.fetch(topic, at, len(right))
        ctx.check(got.data == right, "data", f"other bytes stand at byte {at} of {end}")
        after = at + len(right)
        told = f"the answer ends at {after}, and says {got.next_offset}"
        ctx.check(got.next_offset == after, "field:next_offset", told)
    got = await ctx.fetch(topic, 2**64 - 1)
    ctx.check(got.next_offset == end, "field:next_offset", f"the end is {end}: {got.next_offset}")


for _count, _thorough in ((5, False), (17, True)):
    register(
        f"vol/far-{_count * 8}-mib", "5.9/walk",
        f"In a log of more than {_count * 8} MiB each batch is found at its offset.",
        partial(_far, large=8 * MIB, count=_count), weight=4 + _count * 4, thorough=_thorough,
    )  # fmt: skip
for _size, _step in ((300 * KIB, 20_000), (3 * MIB, 200_000)):
    register(
        f"vol/whole-records-{_size // KIB}", "5.9/cut",
        f"Of a log of {_size // KIB} KiB every answer is whole records.",
        partial(_whole_records, size=_size, step=_step), weight=4 + _size // MIB,
        dialects=("specified",),
    )  # fmt: skip
for _name, _batch, _count, _step in (
    ("512-kib", 16 * KIB, 32, 64 * KIB),
    ("2-mib", 64 * KIB, 32, 256 * KIB),
    ("64-mib", MIB, 64, 4 * MIB),
):
    register(
        f"vol/{_name}", "5.9/walk",
        f"A log of {_batch * _count // KIB} KiB is read back in its order, whatever its segments.",
        partial(_in_order, batch=_batch, count=_count, step=_step),
        weight=4 + _count * _batch // MIB, thorough=_name == "64-mib",
    )  # fmt: skip
