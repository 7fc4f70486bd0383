"""Operators on each kind of request and answer: numbers that are cut, and checks left out there."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import Batch, Body, Record
from lance_conformance.client.mutants.operators import BITS, cut, register
from lance_conformance.client.mutants.registry import golden
from lance_conformance.server.golden.codec import Wire

ANSWERS = (("subscribe-acks", 0x23, "specified"), ("commit-acks", 0x24, None),
           ("topics", 0x80, None), ("errors", 0xFF, None), ("admissions", 0x09, None),
           ("catching-up", 0x12, None))  # fmt: skip
"""Answers with their commands, and the one dialect where they come."""
BITS_32 = (8, 16, 24, 31)
HIGHEST = 2**32 - 1
PUSHED = "specified"
"""Where a client subscribes."""


def _unchecked_on(what: str, command: int, only: str | None) -> None:
    def header_crc_ok(client: Specified, header: Wire, /) -> bool:
        return header.batch_id == command or golden(client).header_crc_ok(header)

    def payload_crc_ok(client: Specified, header: Wire, payload: bytes, /) -> bool:
        return header.batch_id == command or golden(client).payload_crc_ok(header, payload)

    words = what.replace("-", " ")
    register(Specified.header_crc_ok, f"skips-header-crc-of-{what}",
             f"The header checksum of {words} is not looked at.", header_crc_ok,
             only)  # fmt: skip
    register(Specified.payload_crc_ok, f"skips-payload-crc-of-{what}",
             f"The payload checksum of {words} is not looked at.", payload_crc_ok,
             only)  # fmt: skip


for _row in ANSWERS:
    _unchecked_on(*_row)


def _changed(hook: Callable[..., Any], name: str, title: str, at: int,
             change: Callable[[int], int]) -> None:  # fmt: skip
    """A number of a request that is another one than was asked for.

    Args:
        hook: What makes the request.
        name: The mutant's id.
        title: How it is wrong, as a sentence.
        at: The place of the number among the arguments of the hook.
        change: What becomes of it.
    """

    def replacement(client: Specified, *arguments: Any) -> bytes:
        sent = [change(each) if n == at else each for n, each in enumerate(arguments)]
        found: bytes = getattr(golden(client), hook.__name__)(*sent)
        return found

    register(hook, name, title, replacement, PUSHED if hook is Specified.subscribe else None)


REQUESTS = (
    (Specified.retention, "retention", 0), (Specified.fetch, "fetch", 0),
    (Specified.subscribe, "subscribe", 0), (Specified.ingest, "batch", 2),
    (Specified.topic, "question", 0),
)  # fmt: skip
"""Hook, name and place of the topic id of each request that has one."""
for _hook, _what, _at in REQUESTS:
    for _bits in BITS_32:
        if _what != "question":
            _changed(_hook, f"cuts-topic-ids-of-{_what}-to-{_bits}",
                     f"Of the topic id of a {_what} {_bits} bits are sent.", _at,
                     partial(cut, bits=_bits))  # fmt: skip
    _changed(_hook, f"has-no-topic-0-in-{_what}", f"A {_what} about topic 0 is one about topic 1.",
             _at, lambda number: number or 1)  # fmt: skip
    _changed(_hook, f"has-no-highest-topic-in-{_what}",
             f"A {_what} about the highest topic id is one about topic 0.",
             _at, lambda number: 0 if number == HIGHEST else number)  # fmt: skip
for _bits in BITS:
    _changed(Specified.commit, f"cuts-commits-to-{_bits}",
             f"Of an offset that is committed {_bits} bits are sent.", 2,
             partial(cut, bits=_bits))  # fmt: skip
for _bits in (*BITS, 63):
    _changed(Specified.subscribe, f"cuts-subscribe-offsets-to-{_bits}",
             f"Of the offset of a subscription {_bits} bits are sent.", 1,
             partial(cut, bits=_bits))  # fmt: skip
    if 31 <= _bits <= 60:
        _changed(Specified.limited, f"cuts-created-ages-to-{_bits}",
                 f"Of the age of a new topic {_bits} bits are sent.", 1,
                 partial(cut, bits=_bits))  # fmt: skip
        _changed(Specified.limited, f"cuts-created-sizes-to-{_bits}",
                 f"Of the size of a new topic {_bits} bits are sent.", 2,
                 partial(cut, bits=_bits))  # fmt: skip
for _bits in (8, 16):
    _changed(Specified.fetch, f"cuts-fetch-sizes-to-{_bits}",
             f"Of the size of a Fetch {_bits} bits are sent.", 2,
             partial(cut, bits=_bits))  # fmt: skip


def _tells_next_in(bits: int) -> None:
    def position(client: Specified, offset: int, whole: int, next_offset: int, /) -> int:
        return cut(golden(client).position(offset, whole, next_offset), bits)

    register(Specified.position, f"tells-next-offsets-in-{bits}-bits",
             f"Of the next offset {bits} bits are told.", position)  # fmt: skip


for _bits in (*BITS, 63):
    _tells_next_in(_bits)


def _stays_at_gaps(client: Specified, offset: int, whole: int, next_offset: int, /) -> int:
    return golden(client).position(offset, whole, next_offset if whole else offset)


register(Specified.position, "stays-at-gaps",
         "An answer without records leaves the offset where it is.", _stays_at_gaps,
         "deployed")  # fmt: skip


def _cuts_names(size: int) -> None:
    def name(client: Specified, name: str, /) -> bytes:
        return golden(client).name(name[:size])

    def limited(client: Specified, name: str, age: int, most: int, /) -> bytes:
        return golden(client).limited(name[:size], age, most)

    register(Specified.name, f"cuts-names-to-{size}",
             f"Of a name {size} bytes are sent.", name)  # fmt: skip
    register(Specified.limited, f"cuts-limited-names-to-{size}",
             f"Of the name of a topic with limits {size} bytes are sent.", limited)  # fmt: skip


for _size in (64, 128, 254):
    _cuts_names(_size)

# -- what is told and done again -------------------------------------------------------------------


def _tells_all_again(
    _client: Specified, _since: Sequence[Batch], ever: Sequence[Batch], /
) -> Sequence[Batch]:
    return ever


def _tells_failures_again(
    client: Specified, since: Sequence[Batch], ever: Sequence[Batch], /
) -> Sequence[Batch]:
    earlier = [batch for batch in ever if batch.problem is not None and batch not in since]
    return [*earlier, *golden(client).flushed(since, ever)]


def _tells_once(client: Specified, since: Sequence[Batch], ever: Sequence[Batch], /) -> Any:
    first = len(since) == len(ever)
    return golden(client).flushed(since, ever) if first else []


register(Specified.flushed, "tells-all-batches-again",
         "A flush tells of all batches there ever were.", _tells_all_again)  # fmt: skip
register(Specified.flushed, "tells-failures-again",
         "A flush tells of failed batches that another one told of.",
         _tells_failures_again)  # fmt: skip
register(Specified.flushed, "flushes-once",
         "Flushes after the first tell of nothing.", _tells_once)  # fmt: skip


def _tells_ids_in(bits: int) -> None:
    def topics_of(client: Specified, body: Body, /) -> list[Body]:
        found = golden(client).topics_of(body)
        return [{**topic, "id": cut(topic["id"], bits)} for topic in found]

    register(Specified.topics_of, f"lists-ids-of-{bits}-bits",
             f"Of topic ids in a list {bits} bits are told.", topics_of)  # fmt: skip


for _bits in BITS_32:
    _tells_ids_in(_bits)


def _lists_no_topic_0(client: Specified, body: Body, /) -> list[Body]:
    return [topic for topic in golden(client).topics_of(body) if topic["id"]]


register(Specified.topics_of, "lists-no-topic-0", "A list leaves topic 0 out.",
         _lists_no_topic_0)  # fmt: skip


def _refuses_types(low: int, high: int) -> None:
    def readable(client: Specified, record: Record, /) -> Record:
        if low <= record.type <= high:
            return record._replace(value=b"")
        return golden(client).readable(record)

    register(Specified.readable, f"empties-types-{low:02x}-to-{high:02x}",
             f"Records of the types {low:#04x} to {high:#04x} are read without a value.",
             readable)  # fmt: skip


for _low, _high in ((0x06, 0x0F), (0x0A, 0x0A), (0x13, 0x7F), (0x40, 0x40), (0x90, 0x90)):
    _refuses_types(_low, _high)
