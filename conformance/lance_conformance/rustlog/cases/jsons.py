"""Cases about the JSON form of the specification.

No JSON request makes a topic, so most of them need a target that speaks both forms.
"""

from lance_conformance.engine.expectations import Allowed
from lance_conformance.rustlog.case_context import CaseContext
from lance_conformance.rustlog.cases.registry import case
from lance_conformance.rustlog.dialect import BOTH, JSON
from lance_conformance.rustlog.peer import exactly, kind, refused_in_json
from lance_conformance.rustlog.requests import (
    json_commit,
    json_committed,
    json_fetch,
    json_produce,
)
from lance_conformance.rustlog.wire.frame import framed

PRODUCED = "produce-response/offsets"
FETCHED = "fetch-response/records"
NEXT = "fetch-response/next-offset"
GROUP = "fetch-request/group"
COMMITTED = "offset-commit-response/success"
MISSING = "error-response/missing"
UNREADABLE = "error-response/unreadable"
STRICT = "wire-format/types"
GROWS = "protocol-evolution/fields"


def _numbered(records: list[bytes], first: int = 0) -> tuple[tuple[int, bytes], ...]:
    return tuple(enumerate(records, first))


def _fetched(cite: str, records: list[bytes], first: int, following: int) -> Allowed:
    return exactly(cite, "Fetch", "json", records=_numbered(records, first), next_offset=following)


@case("rl-json/produce", PRODUCED, dialects=BOTH)
async def produced(ctx: CaseContext) -> None:
    """A Produce is told the offset of every record, in order."""
    topic, _ = await ctx.filled(2)
    await ctx.side.ask(
        json_produce(topic, 0, ctx.values(3)),
        exactly(PRODUCED, "Produce", "json", offsets=(2, 3, 4)),
    )


@case("rl-json/produce-nothing", "produce-request/no-op", dialects=BOTH)
async def produce_nothing(ctx: CaseContext) -> None:
    """A Produce without records is answered without offsets, and stores nothing."""
    topic, records = await ctx.filled(2)
    await ctx.side.ask(
        json_produce(topic, 0, []),
        exactly("produce-request/no-op", "Produce", "json", offsets=()),
    )
    ctx.check(await ctx.stored(topic) == tuple(records), "data", "nothing is to be stored")


@case("rl-json/any-byte", PRODUCED, dialects=BOTH)
async def any_byte(ctx: CaseContext) -> None:
    """Records come back as the numbers that they were sent as."""
    topic, records = await ctx.topic(), [bytes(range(256)), b""]
    await ctx.side.ask(
        json_produce(topic, 0, records), exactly(PRODUCED, "Produce", "json", offsets=(0, 1))
    )
    await ctx.side.ask(json_fetch(topic, 0, 0), _fetched(FETCHED, records, 0, 2))


@case("rl-json/fetch", FETCHED, dialects=BOTH)
async def fetched(ctx: CaseContext) -> None:
    """Every record comes with its offset; the next offset is one after the last."""
    topic, records = await ctx.filled(3)
    await ctx.side.ask(json_fetch(topic, 0, 1), _fetched(FETCHED, records[1:], 1, 3))


@case("rl-json/at-the-end", NEXT, dialects=BOTH)
async def at_the_end(ctx: CaseContext) -> None:
    """At the end nothing comes, and the end as the next offset."""
    topic, _ = await ctx.filled(3)
    await ctx.side.ask(json_fetch(topic, 0, 3), _fetched(NEXT, [], 0, 3))


@case("rl-json/behind-the-end", NEXT, dialects=BOTH)
async def behind_the_end(ctx: CaseContext) -> None:
    """Beyond the end the next offset is the end, not what was asked for."""
    topic, _ = await ctx.filled(3)
    await ctx.side.ask(json_fetch(topic, 0, 9), _fetched(NEXT, [], 0, 3))


@case("rl-json/max-bytes", "fetch-request/max-bytes", dialects=BOTH)
async def max_bytes(ctx: CaseContext) -> None:
    """Records come up to max_bytes of their own bytes, and nothing is counted beside these."""
    topic, records = await ctx.filled(3, 20)
    cite = "fetch-request/max-bytes"
    await ctx.side.ask(json_fetch(topic, 0, 0, 40), _fetched(cite, records[:2], 0, 2))
    await ctx.side.ask(json_fetch(topic, 0, 0, 39), _fetched(cite, records[:1], 0, 1))


@case("rl-json/at-least-one", "fetch-request/at-least-one", dialects=BOTH)
async def at_least_one(ctx: CaseContext) -> None:
    """One record comes although it is larger than max_bytes."""
    topic, records = await ctx.filled(3)
    cite = "fetch-request/at-least-one"
    await ctx.side.ask(json_fetch(topic, 0, 0, 1), _fetched(cite, records[:1], 0, 1))


async def _group_reads(ctx: CaseContext, kept: int | None, asked: int, start: int) -> None:
    topic, records = await ctx.filled(4)
    if kept is not None:
        await ctx.commit("g", topic, kept)
    await ctx.side.ask(
        json_fetch(topic, 0, asked, group="g"), _fetched(GROUP, records[start:], start, 4)
    )


@case("rl-json/group-commit-is-higher", GROUP, dialects=BOTH)
async def group_commit_is_higher(ctx: CaseContext) -> None:
    """A group reads from its commit where that is higher than what it asks for."""
    await _group_reads(ctx, 3, 1, 3)


@case("rl-json/group-request-is-higher", GROUP, dialects=BOTH)
async def group_request_is_higher(ctx: CaseContext) -> None:
    """A group reads from where it asks where that is higher than its commit."""
    await _group_reads(ctx, 1, 2, 2)


@case("rl-json/group-without-commit", GROUP, dialects=BOTH)
async def group_without_commit(ctx: CaseContext) -> None:
    """A group without a commit reads from where it asks."""
    await _group_reads(ctx, None, 2, 2)


@case("rl-json/group-left-out", GROUP, dialects=BOTH)
async def group_left_out(ctx: CaseContext) -> None:
    """A group that is null or not there is none, whatever others have committed."""
    topic, records = await ctx.filled(2)
    await ctx.commit("", topic, 1)
    right = _fetched(GROUP, records, 0, 2)
    await ctx.side.ask(json_fetch(topic, 0, 0), right)
    body = f'{{"Fetch":{{"topic":"{topic}","partition":0,"offset":0,"max_bytes":999}}}}'
    ctx.side.send_payload(body.encode())
    await ctx.side.expect(right)


@case("rl-json/commit", COMMITTED, dialects=BOTH)
async def commit_is_told(ctx: CaseContext) -> None:
    """A commit succeeds, replaces the one before, and can be asked for."""
    topic = await ctx.topic()
    for offset in (7, 2):
        await ctx.side.ask(
            json_commit(topic, 0, "g", offset),
            exactly(COMMITTED, "OffsetCommit", "json", success=True),
        )
        await ctx.side.ask(
            json_committed(topic, 0, "g"), exactly(COMMITTED, "OffsetFetch", "json", offset=offset)
        )


@case("rl-json/commit-without-topic", COMMITTED, dialects=JSON)
async def commit_without_topic(ctx: CaseContext) -> None:
    """A commit for a topic that does not exist fails: success is false, or an error says so."""
    await ctx.side.ask(
        json_commit(ctx.name(), 0, "g", 1),
        exactly(COMMITTED, "OffsetCommit", "json", success=False),
        refused_in_json(COMMITTED),
    )


@case("rl-json/nothing-committed", "offset-fetch-response/none", dialects=BOTH)
async def nothing_committed(ctx: CaseContext) -> None:
    """What was never committed is null, not 0."""
    await ctx.side.ask(
        json_committed(ctx.name(), 0, "g"),
        exactly("offset-fetch-response/none", "OffsetFetch", "json", offset=None),
    )


@case("rl-json/produce-missing", MISSING, dialects=JSON)
async def produce_missing(ctx: CaseContext) -> None:
    """A Produce to a topic that does not exist is an error, and the connection goes on."""
    await ctx.side.ask(json_produce(ctx.name(), 0, [b"a"]), refused_in_json(MISSING))
    await ctx.side.ask(*ctx.exchange())


@case("rl-json/fetch-missing", MISSING, dialects=JSON)
async def fetch_missing(ctx: CaseContext) -> None:
    """A Fetch from a topic that does not exist is an error."""
    await ctx.side.ask(json_fetch(ctx.name(), 0, 0), refused_in_json(MISSING))


@case("rl-json/fetch-missing-partition", MISSING, dialects=BOTH)
async def fetch_missing_partition(ctx: CaseContext) -> None:
    """A Fetch from partition 2 of a topic with two is an error."""
    topic, _ = await ctx.filled(1)
    await ctx.side.ask(json_fetch(topic, 2, 0), refused_in_json(MISSING))


@case("rl-json/words-of-missing", "error-response/words", dialects=JSON)
async def words_of_missing(ctx: CaseContext) -> None:
    """The error names topic and partition in the words of the specification."""
    name = ctx.name()
    text = f"partition not found: topic={name}, partition=3"
    await ctx.side.ask(
        json_fetch(name, 3, 0), exactly("error-response/words", "Error", "json", message=text)
    )


async def _unreadable(ctx: CaseContext, payload: str, cite: str = UNREADABLE) -> None:
    """A payload that is not a request is an error, and the connection goes on."""
    right = json_committed(ctx.name(), 0, "g"), kind("OffsetFetch", cite, "json")
    async with ctx.precondition("a right request"):
        await ctx.side.ask(*right)
    await ctx.hurt(framed(payload.encode()), "payload", refused_in_json(cite))


@case("rl-json/no-json", UNREADABLE, dialects=JSON)
async def no_json(ctx: CaseContext) -> None:
    """A payload that is cut short is an error, and the connection goes on."""
    await _unreadable(ctx, '{"OffsetFetch":{"topic":"t","partition":0,"group_id":"g"}')


@case("rl-json/unknown-request", UNREADABLE, dialects=JSON)
async def unknown_request(ctx: CaseContext) -> None:
    """A request that nobody knows is an error."""
    await _unreadable(ctx, '{"Delete":{"topic":"t","partition":0,"group_id":"g"}}')


@case("rl-json/two-requests", UNREADABLE, dialects=JSON)
async def two_requests(ctx: CaseContext) -> None:
    """An object with two members is not two requests, and not one."""
    one = '{"topic":"t","partition":0,"group_id":"g"}'
    await _unreadable(ctx, f'{{"OffsetFetch":{one},"OffsetCommit":{one[:-1]},"offset":1}}}}')


@case("rl-json/more-behind", UNREADABLE, dialects=JSON)
async def more_behind(ctx: CaseContext) -> None:
    """A second object after the first one makes the frame unreadable."""
    one = '{"OffsetFetch":{"topic":"t","partition":0,"group_id":"g"}}'
    await _unreadable(ctx, one + one)


@case("rl-json/deep", UNREADABLE, dialects=JSON, quick=False)
async def deep(ctx: CaseContext) -> None:
    """A hundred thousand brackets in each other are an error, and bring nobody down."""
    await _unreadable(ctx, '{"Produce":' + "[" * 100_000)


async def _mistyped(ctx: CaseContext, members: str) -> None:
    await _unreadable(ctx, f'{{"OffsetFetch":{{{members}}}}}', STRICT)


@case("rl-json/missing-member", STRICT, dialects=JSON)
async def missing_member(ctx: CaseContext) -> None:
    """A request without a partition is an error, it is not one for partition 0."""
    await _mistyped(ctx, '"topic":"t","group_id":"g"')


@case("rl-json/negative-number", STRICT, dialects=JSON)
async def negative_number(ctx: CaseContext) -> None:
    """A negative number is an error, not a very large one."""
    await _mistyped(ctx, '"topic":"t","partition":-1,"group_id":"g"')


@case("rl-json/number-too-wide", STRICT, dialects=JSON)
async def number_too_wide(ctx: CaseContext) -> None:
    """A partition of 2^32 is an error, not partition 0."""
    await _mistyped(ctx, '"topic":"t","partition":4294967296,"group_id":"g"')


@case("rl-json/fraction", STRICT, dialects=JSON, quick=False)
async def fraction(ctx: CaseContext) -> None:
    """A fraction is not the number of a partition, also where nothing follows the point."""
    await _mistyped(ctx, '"topic":"t","partition":0.0,"group_id":"g"')


@case("rl-json/truth-value", STRICT, dialects=JSON, quick=False)
async def truth_value(ctx: CaseContext) -> None:
    """A truth value is not a number."""
    await _mistyped(ctx, '"topic":"t","partition":true,"group_id":"g"')


@case("rl-json/text-for-bytes", STRICT, dialects=BOTH)
async def text_for_bytes(ctx: CaseContext) -> None:
    """A record that is a text is an error, and nothing is stored."""
    topic = await ctx.topic()
    await _unreadable(
        ctx, f'{{"Produce":{{"topic":"{topic}","partition":0,"records":["abc"]}}}}', STRICT
    )
    ctx.check(await ctx.stored(topic) == (), "data", "nothing of a refused request is stored")


@case("rl-json/byte-256", STRICT, dialects=BOTH)
async def byte_256(ctx: CaseContext) -> None:
    """A number above 255 is not a byte; nothing is stored, the record before it neither."""
    topic = await ctx.topic()
    await _unreadable(
        ctx, f'{{"Produce":{{"topic":"{topic}","partition":0,"records":[[1],[256]]}}}}', STRICT
    )
    ctx.check(await ctx.stored(topic) == (), "data", "nothing of a refused request is stored")


@case("rl-json/member-twice", "wire-format/once", dialects=JSON, quick=False)
async def member_twice(ctx: CaseContext) -> None:
    """A member that stands there twice is an error: readers would take either."""
    payload = '{"OffsetFetch":{"topic":"t","topic":"u","partition":0,"group_id":"g"}}'
    await _unreadable(ctx, payload, "wire-format/once")


@case("rl-json/unknown-member", GROWS, dialects=JSON)
async def unknown_member(ctx: CaseContext) -> None:
    """A member that nobody knows is ignored, so that requests can grow."""
    body = '{"OffsetFetch":{"later":[{}],"topic":"t","partition":0,"group_id":"g-unknown"}}'
    ctx.side.send_payload(body.encode())
    await ctx.side.expect(exactly(GROWS, "OffsetFetch", "json", offset=None))


@case("rl-json/any-order-and-space", "wire-format/json", dialects=JSON)
async def any_order_and_space(ctx: CaseContext) -> None:
    """Members may stand in any order, with white space anywhere, and texts may be escaped."""
    body = (
        '{\n "OffsetFetch" :\t{"group_id": "g\\u002dnone", "partition": 0,\r\n"topic": "\\u00e4"}}'
    )
    ctx.side.send_payload(body.encode())
    await ctx.side.expect(exactly("wire-format/json", "OffsetFetch", "json", offset=None))
