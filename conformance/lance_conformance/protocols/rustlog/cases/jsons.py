"""Cases about the JSON form of the specification.

No JSON request makes a topic, so most of them need a target that speaks both forms.
"""

from lance_conformance.protocols.outcomes import Allowed
from lance_conformance.protocols.rustlog.cases.registry import case
from lance_conformance.protocols.rustlog.dialect import BOTH, JSON
from lance_conformance.protocols.rustlog.dialogue import Dialogue
from lance_conformance.protocols.rustlog.peer import exactly, kind, refused_in_json
from lance_conformance.protocols.rustlog.requests import (
    json_commit,
    json_committed,
    json_fetch,
    json_produce,
)
from lance_conformance.protocols.rustlog.wire.frame import framed

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
async def produced(c: Dialogue) -> None:
    """A Produce is told the offset of every record, in order."""
    topic, _ = await c.filled(2)
    await c.side.ask(
        json_produce(topic, 0, c.values(3)), exactly(PRODUCED, "Produce", "json", offsets=(2, 3, 4))
    )


@case("rl-json/produce-nothing", "produce-request/no-op", dialects=BOTH)
async def produce_nothing(c: Dialogue) -> None:
    """A Produce without records is answered without offsets, and stores nothing."""
    topic, records = await c.filled(2)
    await c.side.ask(
        json_produce(topic, 0, []),
        exactly("produce-request/no-op", "Produce", "json", offsets=()),
    )
    c.check(await c.stored(topic) == tuple(records), "data", "nothing is to be stored")


@case("rl-json/any-byte", PRODUCED, dialects=BOTH)
async def any_byte(c: Dialogue) -> None:
    """Records come back as the numbers that they were sent as."""
    topic, records = await c.topic(), [bytes(range(256)), b""]
    await c.side.ask(
        json_produce(topic, 0, records), exactly(PRODUCED, "Produce", "json", offsets=(0, 1))
    )
    await c.side.ask(json_fetch(topic, 0, 0), _fetched(FETCHED, records, 0, 2))


@case("rl-json/fetch", FETCHED, dialects=BOTH)
async def fetched(c: Dialogue) -> None:
    """Every record comes with its offset; the next offset is one behind the last."""
    topic, records = await c.filled(3)
    await c.side.ask(json_fetch(topic, 0, 1), _fetched(FETCHED, records[1:], 1, 3))


@case("rl-json/at-the-end", NEXT, dialects=BOTH)
async def at_the_end(c: Dialogue) -> None:
    """At the end nothing comes, and the end as the next offset."""
    topic, _ = await c.filled(3)
    await c.side.ask(json_fetch(topic, 0, 3), _fetched(NEXT, [], 0, 3))


@case("rl-json/behind-the-end", NEXT, dialects=BOTH)
async def behind_the_end(c: Dialogue) -> None:
    """Behind the end the next offset is the end, not what was asked for."""
    topic, _ = await c.filled(3)
    await c.side.ask(json_fetch(topic, 0, 9), _fetched(NEXT, [], 0, 3))


@case("rl-json/max-bytes", "fetch-request/max-bytes", dialects=BOTH)
async def max_bytes(c: Dialogue) -> None:
    """Records come up to max_bytes of their own bytes, and nothing is counted beside these."""
    topic, records = await c.filled(3, 20)
    cite = "fetch-request/max-bytes"
    await c.side.ask(json_fetch(topic, 0, 0, 40), _fetched(cite, records[:2], 0, 2))
    await c.side.ask(json_fetch(topic, 0, 0, 39), _fetched(cite, records[:1], 0, 1))


@case("rl-json/at-least-one", "fetch-request/at-least-one", dialects=BOTH)
async def at_least_one(c: Dialogue) -> None:
    """One record comes although it is larger than max_bytes."""
    topic, records = await c.filled(3)
    cite = "fetch-request/at-least-one"
    await c.side.ask(json_fetch(topic, 0, 0, 1), _fetched(cite, records[:1], 0, 1))


async def _group_reads(c: Dialogue, kept: int | None, asked: int, start: int) -> None:
    topic, records = await c.filled(4)
    if kept is not None:
        await c.commit("g", topic, kept)
    await c.side.ask(
        json_fetch(topic, 0, asked, group="g"), _fetched(GROUP, records[start:], start, 4)
    )


@case("rl-json/group-commit-is-higher", GROUP, dialects=BOTH)
async def group_commit_is_higher(c: Dialogue) -> None:
    """A group reads from its commit where that is higher than what it asks for."""
    await _group_reads(c, 3, 1, 3)


@case("rl-json/group-request-is-higher", GROUP, dialects=BOTH)
async def group_request_is_higher(c: Dialogue) -> None:
    """A group reads from where it asks where that is higher than its commit."""
    await _group_reads(c, 1, 2, 2)


@case("rl-json/group-without-commit", GROUP, dialects=BOTH)
async def group_without_commit(c: Dialogue) -> None:
    """A group without a commit reads from where it asks."""
    await _group_reads(c, None, 2, 2)


@case("rl-json/group-left-out", GROUP, dialects=BOTH)
async def group_left_out(c: Dialogue) -> None:
    """A group that is null or not there is none, whatever others have committed."""
    topic, records = await c.filled(2)
    await c.commit("", topic, 1)
    right = _fetched(GROUP, records, 0, 2)
    await c.side.ask(json_fetch(topic, 0, 0), right)
    body = f'{{"Fetch":{{"topic":"{topic}","partition":0,"offset":0,"max_bytes":999}}}}'
    c.side.send_payload(body.encode())
    await c.side.expect(right)


@case("rl-json/commit", COMMITTED, dialects=BOTH)
async def commit_is_told(c: Dialogue) -> None:
    """A commit succeeds, replaces the one before, and can be asked for."""
    topic = await c.topic()
    for offset in (7, 2):
        await c.side.ask(
            json_commit(topic, 0, "g", offset),
            exactly(COMMITTED, "OffsetCommit", "json", success=True),
        )
        await c.side.ask(
            json_committed(topic, 0, "g"), exactly(COMMITTED, "OffsetFetch", "json", offset=offset)
        )


@case("rl-json/commit-without-topic", COMMITTED, dialects=JSON)
async def commit_without_topic(c: Dialogue) -> None:
    """A commit for a topic that does not exist fails: success is false, or an error says so."""
    await c.side.ask(
        json_commit(c.name(), 0, "g", 1),
        exactly(COMMITTED, "OffsetCommit", "json", success=False),
        refused_in_json(COMMITTED),
    )


@case("rl-json/nothing-committed", "offset-fetch-response/none", dialects=BOTH)
async def nothing_committed(c: Dialogue) -> None:
    """What was never committed is null, not 0."""
    await c.side.ask(
        json_committed(c.name(), 0, "g"),
        exactly("offset-fetch-response/none", "OffsetFetch", "json", offset=None),
    )


@case("rl-json/produce-missing", MISSING, dialects=JSON)
async def produce_missing(c: Dialogue) -> None:
    """A Produce to a topic that does not exist is an error, and the connection goes on."""
    await c.side.ask(json_produce(c.name(), 0, [b"a"]), refused_in_json(MISSING))
    await c.side.ask(*c.question())


@case("rl-json/fetch-missing", MISSING, dialects=JSON)
async def fetch_missing(c: Dialogue) -> None:
    """A Fetch from a topic that does not exist is an error."""
    await c.side.ask(json_fetch(c.name(), 0, 0), refused_in_json(MISSING))


@case("rl-json/fetch-missing-partition", MISSING, dialects=BOTH)
async def fetch_missing_partition(c: Dialogue) -> None:
    """A Fetch from partition 2 of a topic with two is an error."""
    topic, _ = await c.filled(1)
    await c.side.ask(json_fetch(topic, 2, 0), refused_in_json(MISSING))


@case("rl-json/words-of-missing", "error-response/words", dialects=JSON)
async def words_of_missing(c: Dialogue) -> None:
    """The error names topic and partition in the words of the specification."""
    name = c.name()
    text = f"partition not found: topic={name}, partition=3"
    await c.side.ask(
        json_fetch(name, 3, 0), exactly("error-response/words", "Error", "json", message=text)
    )


async def _unreadable(c: Dialogue, payload: str, cite: str = UNREADABLE) -> None:
    """A payload that is no request is an error, and the connection goes on."""
    right = json_committed(c.name(), 0, "g"), kind("OffsetFetch", cite, "json")
    async with c.control("a right request"):
        await c.side.ask(*right)
    await c.hurt(framed(payload.encode()), "payload", refused_in_json(cite))


@case("rl-json/no-json", UNREADABLE, dialects=JSON)
async def no_json(c: Dialogue) -> None:
    """A payload that is cut short is an error, and the connection goes on."""
    await _unreadable(c, '{"OffsetFetch":{"topic":"t","partition":0,"group_id":"g"}')


@case("rl-json/unknown-request", UNREADABLE, dialects=JSON)
async def unknown_request(c: Dialogue) -> None:
    """A request that nobody knows is an error."""
    await _unreadable(c, '{"Delete":{"topic":"t","partition":0,"group_id":"g"}}')


@case("rl-json/two-requests", UNREADABLE, dialects=JSON)
async def two_requests(c: Dialogue) -> None:
    """An object with two members is not two requests, and not one."""
    one = '{"topic":"t","partition":0,"group_id":"g"}'
    await _unreadable(c, f'{{"OffsetFetch":{one},"OffsetCommit":{one[:-1]},"offset":1}}}}')


@case("rl-json/more-behind", UNREADABLE, dialects=JSON)
async def more_behind(c: Dialogue) -> None:
    """A second object behind the first one makes the frame unreadable."""
    one = '{"OffsetFetch":{"topic":"t","partition":0,"group_id":"g"}}'
    await _unreadable(c, one + one)


@case("rl-json/deep", UNREADABLE, dialects=JSON, quick=False)
async def deep(c: Dialogue) -> None:
    """A hundred thousand brackets in each other are an error, and bring nobody down."""
    await _unreadable(c, '{"Produce":' + "[" * 100_000)


async def _mistyped(c: Dialogue, members: str) -> None:
    await _unreadable(c, f'{{"OffsetFetch":{{{members}}}}}', STRICT)


@case("rl-json/missing-member", STRICT, dialects=JSON)
async def missing_member(c: Dialogue) -> None:
    """A request without a partition is an error, it is not one for partition 0."""
    await _mistyped(c, '"topic":"t","group_id":"g"')


@case("rl-json/negative-number", STRICT, dialects=JSON)
async def negative_number(c: Dialogue) -> None:
    """A negative number is an error, not a very large one."""
    await _mistyped(c, '"topic":"t","partition":-1,"group_id":"g"')


@case("rl-json/number-too-wide", STRICT, dialects=JSON)
async def number_too_wide(c: Dialogue) -> None:
    """A partition of 2^32 is an error, not partition 0."""
    await _mistyped(c, '"topic":"t","partition":4294967296,"group_id":"g"')


@case("rl-json/fraction", STRICT, dialects=JSON, quick=False)
async def fraction(c: Dialogue) -> None:
    """A fraction is no number of a partition, also where nothing is behind the point."""
    await _mistyped(c, '"topic":"t","partition":0.0,"group_id":"g"')


@case("rl-json/truth-value", STRICT, dialects=JSON, quick=False)
async def truth_value(c: Dialogue) -> None:
    """A truth value is no number."""
    await _mistyped(c, '"topic":"t","partition":true,"group_id":"g"')


@case("rl-json/text-for-bytes", STRICT, dialects=BOTH)
async def text_for_bytes(c: Dialogue) -> None:
    """A record that is a text is an error, and nothing is stored."""
    topic = await c.topic()
    await _unreadable(
        c, f'{{"Produce":{{"topic":"{topic}","partition":0,"records":["abc"]}}}}', STRICT
    )
    c.check(await c.stored(topic) == (), "data", "nothing of a refused request is stored")


@case("rl-json/byte-256", STRICT, dialects=BOTH)
async def byte_256(c: Dialogue) -> None:
    """A number above 255 is no byte; nothing is stored, the record before it neither."""
    topic = await c.topic()
    await _unreadable(
        c, f'{{"Produce":{{"topic":"{topic}","partition":0,"records":[[1],[256]]}}}}', STRICT
    )
    c.check(await c.stored(topic) == (), "data", "nothing of a refused request is stored")


@case("rl-json/member-twice", "wire-format/once", dialects=JSON, quick=False)
async def member_twice(c: Dialogue) -> None:
    """A member that stands there twice is an error: readers would take either."""
    payload = '{"OffsetFetch":{"topic":"t","topic":"u","partition":0,"group_id":"g"}}'
    await _unreadable(c, payload, "wire-format/once")


@case("rl-json/unknown-member", GROWS, dialects=JSON)
async def unknown_member(c: Dialogue) -> None:
    """A member that nobody knows is ignored, so that requests can grow."""
    body = '{"OffsetFetch":{"later":[{}],"topic":"t","partition":0,"group_id":"g-unknown"}}'
    c.side.send_payload(body.encode())
    await c.side.expect(exactly(GROWS, "OffsetFetch", "json", offset=None))


@case("rl-json/any-order-and-space", "wire-format/json", dialects=JSON)
async def any_order_and_space(c: Dialogue) -> None:
    """Members may stand in any order, with white space anywhere, and texts may be escaped."""
    body = (
        '{\n "OffsetFetch" :\t{"group_id": "g\\u002dnone", "partition": 0,\r\n"topic": "\\u00e4"}}'
    )
    c.side.send_payload(body.encode())
    await c.side.expect(exactly("wire-format/json", "OffsetFetch", "json", offset=None))
