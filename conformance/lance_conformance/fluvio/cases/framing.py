"""Cases about frames, headers and segments."""

from collections.abc import Sequence
from typing import Any

from lance_conformance.fluvio.case_context import CaseContext, Role
from lance_conformance.fluvio.cases.registry import case
from lance_conformance.fluvio.wire.calls import (
    CLIENT_ID,
    Call,
    api_versions,
    commit,
    committed,
    fetch_offsets,
    list_objects,
    produce,
    stream_fetch,
    update_offsets,
    watch,
)
from lance_conformance.fluvio.wire.compression import Compression
from lance_conformance.fluvio.wire.objects import ObjectKind
from lance_conformance.fluvio.wire.primitives import i32, sized
from lance_conformance.fluvio.wire.responses import Produced

TOPICS = list_objects(ObjectKind.TOPIC)


@case("fl-frame/one-answer", "frames/response")
async def one_answer(ctx: CaseContext) -> None:
    """A request is answered once."""
    await ctx.sc.ask(TOPICS)
    await ctx.sc.expect_quiet("second answer")


@case("fl-frame/id-echoed", "frames/correlation")
async def id_echoed(ctx: CaseContext) -> None:
    """A response repeats all four bytes of the correlation id, whatever they are."""
    for number in (0x1234_5678, 0, -1, 2**31 - 1, -(2**31)):
        peer = await ctx.open("sc")
        ticket = peer.post(TOPICS, number)
        found = await peer.response(ticket)
        ctx.check(
            found.correlation == number, "field:correlation_id", f"id {number} sent, {found} came"
        )
        peer.read(ticket, found)  # it is the answer, not only its id


@case("fl-frame/id-used-again", "frames/correlation")
async def id_used_again(ctx: CaseContext) -> None:
    """An id that was used before on the connection is as good as a new one."""
    peer = await ctx.open("sc")
    for call in (api_versions(), TOPICS, TOPICS):
        await peer.answer(peer.post(call, 1))


@case("fl-frame/client-id-any", "frames/client-id")
async def client_id_any(ctx: CaseContext) -> None:
    """A request is served under any client id, none and a long one included."""
    for client in ("dummy", "", "x" * 300):
        await ctx.sc.answer(ctx.sc.post(TOPICS, client=client))


@case("fl-frame/byte-by-byte", "frames/segments", quick=False)
async def byte_by_byte(ctx: CaseContext) -> None:
    """A request that arrives one byte at a time is served."""
    peer = await ctx.open("sc")
    ticket = peer.ticket(TOPICS)
    frame = TOPICS.frame(ticket.correlation)
    for at in range(len(frame)):
        peer.send_bytes(frame[at : at + 1])
        await ctx.turn()
    await peer.answer(ticket)


async def _cut(ctx: CaseContext, at: int) -> None:
    peer = await ctx.open("sc")
    ticket = peer.ticket(TOPICS)
    frame = TOPICS.frame(ticket.correlation)
    peer.send_bytes(frame[:at])
    await ctx.spu.ask(api_versions())  # one round trip: the pieces are read apart
    peer.send_bytes(frame[at:])
    await peer.answer(ticket)


@case("fl-frame/cut-in-length", "frames/segments")
async def cut_in_length(ctx: CaseContext) -> None:
    """A request whose length arrives in two pieces is served."""
    await _cut(ctx, 2)


@case("fl-frame/cut-in-body", "frames/segments")
async def cut_in_body(ctx: CaseContext) -> None:
    """A request whose body arrives in two pieces is served."""
    await _cut(ctx, 30)


@case("fl-frame/two-in-one", "frames/segments")
async def two_in_one(ctx: CaseContext) -> None:
    """Of several requests in one segment all are answered."""
    for ticket in ctx.sc.send(TOPICS, api_versions(), TOPICS):
        await ctx.sc.raw_answer(ticket)


@case("fl-frame/one-and-a-half", "frames/segments")
async def one_and_a_half(ctx: CaseContext) -> None:
    """The beginning of a request after a whole one waits for its rest."""
    peer = await ctx.open("sc")
    first, second = peer.ticket(TOPICS), peer.ticket(TOPICS)
    frame = TOPICS.frame(second.correlation)
    peer.send_bytes(TOPICS.frame(first.correlation) + frame[:20])
    await peer.answer(first)
    peer.send_bytes(frame[20:])
    await peer.answer(second)


@case("fl-frame/requests-in-order", "frames/order")
async def requests_in_order(ctx: CaseContext) -> None:
    """Requests of one kind that were sent without waiting are answered in their order."""
    peer = await ctx.open("sc")
    for ticket in peer.send(*[TOPICS] * 8):
        found = await peer.response(ticket)
        ctx.check(
            found.correlation == ticket.correlation,
            "order",
            f"expected {ticket}; got {found} first",
        )


@case("fl-frame/length-negative", "frames/length")
async def length_negative(ctx: CaseContext) -> None:
    """A frame of a negative length ends the connection."""
    frame = TOPICS.frame(1)
    await ctx.closes("sc", TOPICS, i32(-1) + frame[4:], "length")


@case("fl-frame/length-oversize", "frames/limit")
async def length_oversize(ctx: CaseContext) -> None:
    """A frame of 2 GiB is not waited for: the connection ends."""
    frame = TOPICS.frame(1)
    await ctx.closes("sc", TOPICS, i32(2**31 - 1) + frame[4:], "length")


@case("fl-frame/length-oversize-spu", "frames/limit")
async def length_oversize_spu(ctx: CaseContext) -> None:
    """A frame of 2 GiB to the SPU is not waited for: the connection ends."""
    call = api_versions()
    await ctx.closes("spu", call, i32(2**31 - 1) + call.frame(1)[4:], "length")


@case("fl-frame/shorter-than-header", "frames/header")
async def shorter_than_header(ctx: CaseContext) -> None:
    """A frame that ends within its header ends the connection."""
    await ctx.closes("sc", TOPICS, sized(TOPICS.message(1)[:7]), "length")


@case("fl-frame/client-id-cut", "frames/header")
async def client_id_cut(ctx: CaseContext) -> None:
    """A frame whose client id is longer than the frame ends the connection."""
    head = TOPICS.message(1)[:8] + b"\x7f\xff" + CLIENT_ID.encode()
    await ctx.closes("sc", TOPICS, sized(head), "client_id")


@case("fl-frame/body-cut", "frames/body")
async def body_cut(ctx: CaseContext) -> None:
    """A request whose body ends too early ends the connection."""
    await ctx.closes("sc", TOPICS, sized(TOPICS.message(1)[:-4]), "body")


@case("fl-frame/body-cut-produce", "frames/body")
async def body_cut_produce(ctx: CaseContext) -> None:
    """A Produce request that ends within its batches ends the connection; nothing is stored."""
    topic = await ctx.topic()
    call = _one_record(ctx, topic)
    await ctx.closes("spu", call, sized(call.message(1)[:-20]), "body")
    await _ends_at(ctx, topic, 1)


@case("fl-frame/count-too-high", "frames/body")
async def count_too_high(ctx: CaseContext) -> None:
    """A Produce request that counts more partitions than it holds ends the connection."""
    topic = await ctx.topic()
    call = _one_record(ctx, topic)
    place = call.message(1).index(topic.encode()) + len(topic)
    message = call.message(1)
    wrong = message[:place] + i32(1_000_000) + message[place + 4 :]
    await ctx.closes("spu", call, sized(wrong), "partitions")
    await _ends_at(ctx, topic, 1)


def _one_record(ctx: CaseContext, topic: str) -> Call[Produced]:
    return produce([(topic, [(0, ctx.batch(ctx.records(1)))])])


async def _ends_at(ctx: CaseContext, topic: str, end: int) -> None:
    found = await ctx.spu.ask(fetch_offsets([(topic, [0])]))
    last = found.topics[0][1][0].end
    ctx.check(
        last == end, "stored-though-refused", f"{end} records were acknowledged, {last} are there"
    )


@case("fl-frame/key-unknown", "frames/key")
async def key_unknown(ctx: CaseContext) -> None:
    """A request of a kind that the SC does not offer ends the connection."""
    await ctx.closes("sc", TOPICS, _with_key(TOPICS, 30_000), "api_key")


@case("fl-frame/key-unknown-spu", "frames/key")
async def key_unknown_spu(ctx: CaseContext) -> None:
    """A request of a kind that the SPU does not offer ends the connection."""
    call = api_versions()
    await ctx.closes("spu", call, _with_key(call, 30_000), "api_key")


@case("fl-frame/produce-to-sc", "frames/key")
async def produce_to_sc(ctx: CaseContext) -> None:
    """Records are produced to the SPU: the SC ends a connection that brings some."""
    topic = await ctx.topic()
    call = produce([(topic, [(0, ctx.batch(ctx.records(1)))])])
    async with ctx.precondition("the same request to the SPU"):
        await ctx.spu.ask(call)
    await ctx.closes("sc", TOPICS, call.frame(1), "api_key")


@case("fl-frame/version-too-high", "frames/version")
async def version_too_high(ctx: CaseContext) -> None:
    """A request in a version above those that are offered ends the connection."""
    await ctx.closes("sc", TOPICS, TOPICS.at(1000).frame(1), "api_version")


@case("fl-frame/version-negative", "frames/version")
async def version_negative(ctx: CaseContext) -> None:
    """A request in a negative version ends the connection."""
    await ctx.closes("sc", TOPICS, TOPICS.at(-1).frame(1), "api_version")


@case("fl-frame/produce-version-too-high", "frames/version")
async def produce_version_too_high(ctx: CaseContext) -> None:
    """A Produce request above the offered versions ends the connection; nothing is stored."""
    topic = await ctx.topic()
    call = _one_record(ctx, topic)
    await ctx.closes("spu", call, call.at(1000).frame(1), "api_version")
    await _ends_at(ctx, topic, 1)


@case("fl-frame/hang-up-in-frame", "frames/others")
async def hang_up_in_frame(ctx: CaseContext) -> None:
    """A client that leaves within a request harms nobody else."""
    for peer in (await ctx.open("sc"), await ctx.open("spu")):
        peer.send_bytes(TOPICS.frame(1)[:20])
        await ctx.turn()
        peer.drop()
    await ctx.still_alive()
    await ctx.sc.ask(TOPICS)


@case("fl-frame/others-served", "frames/others")
async def others_served(ctx: CaseContext) -> None:
    """While one client stalls within a request, another one is served."""
    topic = await ctx.topic()
    stalled = await ctx.open("spu")
    stalled.send_bytes(api_versions().frame(1)[:20])
    await ctx.sc.ask(TOPICS)
    await ctx.spu.ask(_one_record(ctx, topic))


async def _noise(ctx: CaseContext, role: Role, calls: Sequence[Call[Any]]) -> None:
    """Requests with some bytes after the length changed: each is answered or ends its own."""
    for call in calls:
        message = bytearray(call.message(1))
        for _ in range(ctx.rng.randrange(1, 4)):
            message[ctx.rng.randrange(len(message))] ^= ctx.rng.randrange(1, 256)
        peer = await ctx.open(role)
        peer.send_faulty(sized(bytes(message)), "anything")
        peer.post(api_versions())
        await peer.expect_anything()
        peer.drop()
    await ctx.still_alive()


@case("fl-frame/noise-sc", "frames/noise", quick=False)
async def noise_sc(ctx: CaseContext) -> None:
    """Requests to the SC with random bytes in them harm nobody else."""
    calls: list[Call[Any]] = [TOPICS, watch(ObjectKind.PARTITION), api_versions()]
    await _noise(ctx, "sc", calls * 5)
    await ctx.sc.ask(TOPICS)


@case("fl-frame/noise-spu", "frames/noise", quick=False)
async def noise_spu(ctx: CaseContext) -> None:
    """Requests to the SPU with random bytes in them harm nobody else; what is stored stays."""
    topic = await ctx.topic()
    records = ctx.records(3)
    await ctx.store(topic, records)
    calls: list[Call[Any]] = [
        fetch_offsets([(topic, [0])]),
        stream_fetch(topic, consumer="reader"),
        committed(topic, "reader"),
        update_offsets((1, 1)),
        commit(1, 1),
    ]
    await _noise(ctx, "spu", calls * 4)
    ctx.check(await ctx.stored(topic, 3) == records, "data", "three records must be there")


@case("fl-frame/noise-records", "records/noise", quick=False)
async def noise_records(ctx: CaseContext) -> None:
    """Produce requests with random bytes in them harm nobody else; what was stored stays."""
    topic = await ctx.topic()
    records = ctx.records(3)
    await ctx.store(topic, records)
    kinds = [Compression.NONE, Compression.GZIP, Compression.LZ4] * 6
    calls = [produce([(topic, [(0, ctx.batch(ctx.records(2), kind))])]) for kind in kinds]
    await _noise(ctx, "spu", calls)
    found = await ctx.stored(topic, 3)
    ctx.check(found[:3] == records, "data", "three records must be there as they were")


def _with_key(call: Call[Any], key: int) -> bytes:
    message = call.message(1)
    return sized(key.to_bytes(2, "big") + message[2:])
