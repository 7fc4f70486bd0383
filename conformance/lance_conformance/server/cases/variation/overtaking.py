"""Overtaking: batches that are sent after a large one in the same write do not pass it."""

from functools import partial

from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.variation.common import batches, holds, joined, register
from lance_conformance.server.expect import ack
from lance_conformance.wire.control import ingest

SIZES = (70_000, 300_000, 1_200_000, 5_000_000)
"""Bytes of a large batch."""
RECORD = 10_000
SMALL = 3


async def _after_large(ctx: CaseContext, size: int, *, elsewhere: bool) -> None:
    """One write has all of them; the Acks come in their order, and so do the records."""
    topic, peer = await ctx.topic(), await ctx.open()
    other = await ctx.topic() if elsewhere else topic
    large = ingest(topic.id, ctx.batch(), ctx.values(size // RECORD, RECORD))
    small = batches(ctx, other, SMALL)
    peer.send(large, *small)
    for frame in (large, *small):
        await peer.expect(ack(frame.batch_id, "10.2/ack-order"))
    if elsewhere:
        await holds(ctx, topic, large.payload)
        await holds(ctx, other, joined(small))
    else:
        await holds(ctx, topic, joined([large, *small]))


for _size in SIZES:
    for _elsewhere in (False, True):
        register(
            f"mix/behind-a-batch-of-{_size}" + "-elsewhere" * _elsewhere, "10.2/ack-order",
            f"{SMALL} batches after one of {_size} bytes"
            f"{', for another topic,' * _elsewhere} do not overtake it.",
            partial(_after_large, size=_size, elsewhere=_elsewhere),
            weight=2 + _size // (1 << 17), thorough=_size == max(SIZES),
        )  # fmt: skip
