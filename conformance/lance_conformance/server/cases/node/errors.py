"""Cases about refusals, and what they leave alone (LWP sections 5.7, 11 and 12; AMB-10)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from lance_conformance.engine.expectations import Allowed, closed
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import BOTH, case
from lance_conformance.server.expect import ack, answer, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ANY_ERROR
from lance_conformance.wire.consumers import subscribe
from lance_conformance.wire.control import (
    LIST_TOPICS,
    create_topic,
    delete_topic,
    fetch,
    get_topic,
    ingest,
    read_json,
    set_retention,
)
from lance_conformance.wire.frame import HEADER_SIZE, MAX_ANSWER, Command, Frame

NO_SUCH_COMMAND = 0x5A
CODES_OF_THE_TABLE = frozenset(
    (
        *range(0x01, 0x07),
        *range(0x10, 0x14),
        *range(0x20, 0x24),
        *range(0x30, 0x33),
        *range(0x40, 0x43),
        *range(0x50, 0x53),
        *range(0x60, 0x63),
    )
)


def _refused(ctx: CaseContext, cite: str) -> Allowed:
    """An ErrorResponse, whatever it says; the code is another case's concern."""
    return ctx.error(*ANY_ERROR, cite=cite)


# -- what can be refused ---------------------------------------------------------------------------


async def _unknown_topic(ctx: CaseContext) -> Frame:
    return get_topic(ctx.unknown_topic)


async def _duplicate(ctx: CaseContext) -> Frame:
    return create_topic((await ctx.topic()).name)


async def _bad_name(ctx: CaseContext) -> Frame:
    return create_topic(ctx.name("/x"))


async def _deleted_topic(ctx: CaseContext) -> Frame:
    topic = await ctx.disposable_topic()
    async with ctx.precondition("deleting a topic"):
        await ctx.side.ask(delete_topic(topic.id), topic_response("5.6/delete"))
    return set_retention(topic.id, 604_800, 2**30)


async def _short_payload(ctx: CaseContext) -> Frame:
    right = fetch((await ctx.topic()).id, 0, 1024)
    return replace(right, payload=right.payload[:15])


async def _unknown_command(ctx: CaseContext) -> Frame:
    return replace(get_topic((await ctx.topic()).id), batch_id=NO_SUCH_COMMAND)


async def _fetch_unknown(ctx: CaseContext) -> Frame:
    return fetch(ctx.unknown_topic, 0, 1024)


async def _subscribe_unknown(ctx: CaseContext) -> Frame:
    return subscribe(ctx.unknown_topic, 1)


async def _delete_unknown(ctx: CaseContext) -> Frame:
    return delete_topic(ctx.unknown_topic)


async def _miscounted(ctx: CaseContext) -> Frame:
    right = ingest((await ctx.topic()).id, ctx.batch(), ctx.values(2))
    return replace(right, record_count=3)


@dataclass(frozen=True, slots=True)
class Stays:
    """A case: after a refusal the connection goes on.

    Attributes:
        id: The case.
        what: What is refused, for its title.
        request: Makes the request that is refused.
        dialects: Where it is refused.
    """

    id: str
    what: str
    request: Callable[[CaseContext], Awaitable[Frame]]
    dialects: tuple[str, ...] = BOTH

    def register(self) -> None:
        """Add it to the cases."""

        async def function(ctx: CaseContext) -> None:
            wrong = await self.request(ctx)
            peer = await ctx.open()
            peer.send(wrong)
            async with ctx.precondition("the refusal"):
                await peer.expect(_refused(ctx, "5.7/answer"))
            await peer.ask(LIST_TOPICS, topic_response("12.1/stays"))

        function.__doc__ = f"After {self.what} was refused the connection goes on."
        case(self.id, "12.1/stays", dialects=self.dialects, quick=False)(function)


for row in (
    Stays("err/stays-after-unknown-topic", "GetTopic of an unknown topic", _unknown_topic),
    Stays("err/stays-after-duplicate", "a topic name that is taken", _duplicate),
    Stays("err/stays-after-bad-name", "a topic name with a slash", _bad_name),
    Stays("err/stays-after-deleted-topic", "SetRetention of a deleted topic", _deleted_topic),
    Stays("err/stays-after-short-payload", "a Fetch with 15 bytes", _short_payload),
    Stays("err/stays-after-unknown-command", "a command that nobody defines", _unknown_command),
    Stays("err/stays-after-fetch", "a Fetch from an unknown topic", _fetch_unknown),
    Stays("err/stays-after-subscribe", "a Subscribe to an unknown topic", _subscribe_unknown),
    Stays("err/stays-after-delete", "DeleteTopic of an unknown topic", _delete_unknown),
    Stays(
        "err/stays-after-batch", "a batch with a wrong record count", _miscounted, ("specified",)
    ),
):
    row.register()


# -- the form of a refusal -------------------------------------------------------------------------


@case("err/one-answer", "5.7/one-answer")
async def one_answer(ctx: CaseContext) -> None:
    """A command that is refused is answered once."""
    peer = await ctx.open()
    peer.send(get_topic(ctx.unknown_topic))
    async with ctx.precondition("the refusal"):
        await peer.expect(_refused(ctx, "5.7/answer"))
    await peer.expect_quiet("5.7/one-answer")


@case("err/refused-not-acked", "12.1/not-acked")
async def refused_not_acked(ctx: CaseContext) -> None:
    """A batch that is refused is not acknowledged as well."""
    peer = await ctx.open()
    peer.send(ingest(ctx.unknown_topic, ctx.batch(), ctx.values(1)))
    async with ctx.precondition("the refusal"):
        await peer.expect(_refused(ctx, "6.4/unknown-topic"))
    await peer.expect_quiet("12.1/not-acked")


@case("err/answer-fields", "5.1/answer-fields", quick=False)
async def answer_fields(ctx: CaseContext) -> None:
    """In the header of an ErrorResponse the fields that have no use are 0."""
    frame = await ctx.side.ask(get_topic(ctx.unknown_topic), _refused(ctx, "5.7/answer"))
    said = frame.timestamp_ns, frame.record_count, frame.topic_id
    ctx.check(said == (0, 0, 0), "field:other", f"timestamp, count and topic must be 0: {said}")


@case("err/codes-of-the-table", "12.2/table", dialects=("specified",), quick=False)
async def codes_of_the_table(ctx: CaseContext) -> None:
    """Every code is one of the table, and none says Success."""
    for request in (_unknown_topic, _duplicate, _bad_name, _short_payload, _unknown_command):
        frame = await ctx.side.ask(await request(ctx), answer(Command.ERROR_RESPONSE, "5.7/answer"))
        code = (read_json(frame.payload) or {}).get("code")
        ctx.check(code in CODES_OF_THE_TABLE, "field:code", f"{code!r} is not the code of an error")


@case("err/quotes-in-name", "12.1/escaped", dialects=("specified",), quick=False)
async def quotes_in_name(ctx: CaseContext) -> None:
    """An error about a name with quotes is still JSON."""
    frame = await ctx.side.ask(
        create_topic(ctx.name('"\\"}/x')), answer(Command.ERROR_RESPONSE, "5.7/answer")
    )
    body = read_json(frame.payload)
    ctx.check(body is not None, "body:not-json", f"not a JSON object: {frame.payload[:200]!r}")


@case("err/text-is-utf8", "5.7/utf8", dialects=("deployed",), quick=False)
async def text_is_utf8(ctx: CaseContext) -> None:
    """An error about a name that is not UTF-8 is UTF-8 itself."""
    wrong = create_topic(ctx.name("-").encode() + b"\xff\xfe")
    frame = await ctx.side.ask(wrong, answer(Command.ERROR_RESPONSE, "5.7/answer"))
    try:
        frame.payload.decode()
    except UnicodeDecodeError as problem:
        raise ctx.side.failure("body:not-utf8", f"the message is not UTF-8: {problem}") from problem


@case("err/pipeline-goes-on", "12.1/pipeline", quick=False)
async def pipeline_goes_on(ctx: CaseContext) -> None:
    """Commands after one that is refused are carried out, and every answer comes."""
    topic, peer = await ctx.topic(), await ctx.open()
    peer.send(get_topic(topic.id), get_topic(ctx.unknown_topic), get_topic(topic.id))
    await peer.expect(topic_response("12.1/pipeline"))
    await peer.expect(_refused(ctx, "12.1/pipeline"))
    await peer.expect(topic_response("12.1/pipeline"))


@case("err/twice-the-same", "12.2/same-code", dialects=("specified",), quick=False)
async def twice_the_same(ctx: CaseContext) -> None:
    """The same request is refused with the same code, however often it comes."""
    wrong = await _duplicate(ctx)
    codes = []
    for _ in range(3):
        frame = await ctx.side.ask(wrong, answer(Command.ERROR_RESPONSE, "5.7/answer"))
        codes.append((read_json(frame.payload) or {}).get("code"))
    ctx.check(len(set(codes)) == 1, "field:code", f"one code must come three times, not {codes}")


# -- bulkheads -------------------------------------------------------------------------------------

FrameFault = Callable[[CaseContext, Peer], Awaitable[None]]


async def _bad_magic(_ctx: CaseContext, peer: Peer) -> None:
    await _closes(peer, replace(get_topic(0), magic=b"LANX"), "magic", "11.1/magic")


async def _bad_version(_ctx: CaseContext, peer: Peer) -> None:
    await _closes(peer, replace(get_topic(0), version=2), "version", "11.2/version")


async def _bad_header_crc(ctx: CaseContext, peer: Peer) -> None:
    right = get_topic(0)
    crc = ctx.dialect.compute(right.prefix) ^ 1
    await _closes(peer, replace(right, header_crc=crc), "header_crc", "11.3/header-crc")


async def _bad_payload_crc(ctx: CaseContext, peer: Peer) -> None:
    right = get_topic(0)
    crc = right.right_payload_crc(ctx.dialect.compute) ^ 1
    await _closes(peer, replace(right, payload_crc=crc), "payload_crc", "11.3/payload-crc")


async def _oversize(ctx: CaseContext, peer: Peer) -> None:
    peer.send_faulty(replace(get_topic(0), payload_length=MAX_ANSWER * 2), "payload_length")
    event = await peer.expect(closed("8.7/oversize"), _refused(ctx, "8.7/oversize-answer"))
    if isinstance(event, Frame):
        await peer.expect(closed("8.7/oversize"))


async def _closes(peer: Peer, wrong: Frame, field: str, cite: str) -> None:
    peer.send_faulty(wrong, field)
    await peer.expect(closed(cite))


async def _vanishes(ctx: CaseContext, peer: Peer) -> None:
    frame = ingest((await ctx.topic()).id, 1, ctx.values(2))
    peer.send_bytes(peer.encode(frame)[: HEADER_SIZE + 9])
    peer.drop()


async def _is_refused(ctx: CaseContext, peer: Peer) -> None:
    await peer.ask(get_topic(ctx.unknown_topic), _refused(ctx, "5.7/answer"))


def _bulkhead(case_id: str, what: str, trouble: FrameFault) -> None:
    async def function(ctx: CaseContext) -> None:
        topic, peer = await ctx.topic(), await ctx.open()
        frame = ingest(topic.id, ctx.batch(), ctx.values(2))
        data = peer.encode(frame)
        peer.send_bytes(data[: HEADER_SIZE + 9])
        async with ctx.precondition("the trouble of the other connection"):
            await trouble(ctx, await ctx.open())
        await ctx.still_alive()
        peer.send_bytes(data[HEADER_SIZE + 9 :])
        await peer.expect(ack(frame.batch_id, "11/others"))

    function.__doc__ = f"{what} does not concern a connection that is in the middle of a batch."
    case(case_id, "11/others", quick=False)(function)


_bulkhead("err/others-survive-magic", "A bad magic elsewhere", _bad_magic)
_bulkhead("err/others-survive-version", "A bad version elsewhere", _bad_version)
_bulkhead("err/others-survive-header-crc", "A bad header checksum elsewhere", _bad_header_crc)
_bulkhead("err/others-survive-payload-crc", "A bad payload checksum elsewhere", _bad_payload_crc)
_bulkhead("err/others-survive-oversize", "An oversize frame elsewhere", _oversize)
_bulkhead("err/others-survive-a-loss", "A connection that is lost", _vanishes)
_bulkhead("err/others-survive-a-refusal", "A refusal elsewhere", _is_refused)
