"""Operators: one wrongness, applied to each place of the golden client where it makes sense.

These clients are wrong only sometimes: after some frames, above a size, in high bits, beyond a
number, or the second time.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import Batch, Body, Record
from lance_conformance.client.mutants.registry import golden, mutant
from lance_conformance.server.golden.codec import Wire

AFTER = (1, 4, 16, 60, 100, 200)
"""Right answers after which a rule is no longer looked at."""
ABOVE = (100, 255, 256, 1_000, 4_000, 65_000)
"""Bytes above which a rule is no longer looked at."""
BITS = (8, 16, 31, 32, 33, 53, 60)
"""Bits to which a number of eight bytes is cut."""
BITS_32 = (4, 8, 16, 24, 31)
"""Bits to which a number of four bytes is cut."""
MOST = (8, 16, 64, 128, 256, 1_024)
"""Of anything there is at most so many."""
HANDFULS = (8, 16, 64, 128)
"""The same of requests."""

Hook = Callable[..., Any]

ASKED: dict[str, tuple[str, ...]] = {
    "magic_ok": ("late/magic-*", "head/magic-*"),
    "version_ok": ("late/version-*", "head/version-*"),
    "header_crc_ok": ("late/header-crc-*", "kind/crc-*", "head/crc-*"),
    "payload_crc_ok": (
        "late/payload-crc-*",
        "late/fetched-crc-*",
        "large/*-crc-*",
        "kind/payload-crc-*",
        "large/push-crc-*",
    ),
    "length_ok": ("late/length-*",),
    "check_size": ("late/fetched-size-*", "large/fetched-size-*"),
    "check_next": ("late/fetched-next-*", "large/fetched-next-*"),
    "acknowledged": (
        "late/ack-id-*",
        "wide/ack-bit-*",
        "many/in-flight-*",
        "between/old-ack-*",
        "many/swapped-*",
        "many/acked-twice-*",
    ),
    "answers": ("late/another-command-*",),
    "found": ("late/another-topic-*", "wide/another-topic-*"),
    "topic": ("wide/topic-id-*", "wide/topic-of-delete-*", "wide/topic-of-get-*"),
    "next_batch_id": ("many/batches-*",),
    "fetch": (
        "wide/offset-*",
        "wide/topic-of-fetch-*",
        "wide/fetch-size-*",
        "wide/subscribe-*",
        "large/grows-*",
    ),
    "retention": (
        "wide/max-bytes-*",
        "wide/max-age-*",
        "wide/topic-of-retention-*",
        "wide/limits-*",
    ),
    "commit": ("wide/commit-*", "again/commits-*", "follow/commits-*"),
    "subscribe": ("wide/subscribe-*", "wide/topic-of-subscribe-*", "wide/subscribe-size-*"),
    "limited": ("wide/created-limits-*", "large/create-limited-of-*"),
    "name": ("large/create-of-*", "admin/named-*"),
    "ingest": ("wide/topic-of-send-*", "again/same-*", "between/two-topics-*"),
    "position": ("wide/next-offset-*", "follow/over-a-gap-*", "again/polls-*"),
    "flushed": ("again/flush*",),
    "readable": ("rec/reads-*",),
    "delay": ("again/losses-*", "again/flush-*", "kind/lost-*"),
    "chain": ("large/sends-*", "many/sends-*"),
    "count": ("many/sends-*",),
    "records": (
        "large/reads-*",
        "many/reads-*",
        "many/fetches-*",
        "again/fetch-*",
        "many/pushes-*",
        "many/follows-*",
        "large/follows-*",
        "large/grows-*",
    ),
    "topics_of": ("many/topics-*", "again/list-*", "wide/listed-id-*", "admin/odd-list-*"),
    "topic_of": ("again/get-*", "between/asked-in-turn-*", "admin/*"),
    "to_send": ("many/in-flight-*", "many/lost-in-flight-*"),
    "error": ("many/refused-*",),
    "is_ours": ("wide/push-topic-*", "follow/another-topic"),
    "committed": ("wide/commit-ack-*", "follow/commit-ack-*"),
    "subscribed": ("wide/subscribe-ack-*", "follow/*", "wide/resume-*"),
    "resumed": ("wide/resume-*", "again/follow-losses-*", "follow/*"),
    "hello": ("pass/*",),
    "admitted": ("pass/*",),
    "kind": ("head/flags-*", "kind/*-backpressure", "slow/*", "between/*-push"),
    "check_aligned": ("read/count-*",),
    "body": ("admin/*", "many/topics-0"),
    "retry_delay": ("code/*-always",),
    "fetched": ("many/fetches-*", "again/fetch-*"),
    "served": ("between/*",),
    "control": ("between/in-turn-*", "between/refused-*", "between/in-flight-*"),
    "operation_timeout": ("pace/*",),
    "gives_up_late": ("pace/too-late-*",),
    "kept": ("pace/*",),
}
"""The cases about each place; the others have nothing to do with a wrongness there."""


def _named(replacement: Hook, name: str, title: str) -> Hook:
    replacement.__name__, replacement.__doc__ = name.replace("-", "_"), title
    return replacement


def register(hook: Hook, name: str, title: str, replacement: Hook, only: str | None = None) -> None:
    """Register a client that is wrong in one place, and put it to the cases about that place.

    Args:
        hook: The rule.
        name: The mutant's id.
        title: How it is wrong, as a sentence.
        replacement: What stands in the rule's place.
        only: The one dialect in which this is wrong.
    """
    mutant(hook, only=only, asked=ASKED[hook.__name__])(_named(replacement, name, title))


def _golden(client: Specified, hook: Hook) -> Hook:
    found: Hook = getattr(golden(client), hook.__name__)
    return found


def kept(client: Specified, what: str, first: Any) -> Any:
    """What a client remembers; it is made anew for each connect."""
    return vars(client).setdefault(f"kept_{what}", first)


def _times(client: Specified, what: object) -> int:
    """How often this was asked, this time with it."""
    counts: Counter[object] = kept(client, "counts", Counter())
    counts[what] += 1
    return counts[what]


def cut(value: int, bits: int) -> int:
    """The low bits of a number."""
    return value & ((1 << bits) - 1)


# -- a check that is left out ----------------------------------------------------------------------


def left_out_after(hook: Hook, what: str, count: int, passed: Hook) -> None:
    """A check that answers pass unseen after the first ones.

    Args:
        hook: The check.
        what: It in words, for the name.
        count: How many answers are looked at.
        passed: What comes of it where nothing is looked at, from the hook's arguments.
    """

    def replacement(client: Specified, *arguments: Any) -> Any:
        if _times(client, hook.__name__) > count:
            return passed(*arguments)
        return _golden(client, hook)(*arguments)

    register(hook, f"skips-{what}-after-{count}",
             f"After {count} answers {what.replace('-', ' ')} is not looked at.",
             replacement)  # fmt: skip


def left_out_above(hook: Hook, what: str, size: int, length: Callable[..., int]) -> None:
    """A check that large answers pass unseen.

    Args:
        hook: The check; True and None are what comes of it where all is right.
        what: It in words, for the name.
        size: Bytes up to which it is looked at.
        length: Bytes of an answer, from the hook's arguments.
    """

    def replacement(client: Specified, *arguments: Any) -> Any:
        return length(*arguments) > size or _golden(client, hook)(*arguments)

    register(hook, f"skips-{what}-above-{size}",
             f"Above {size} bytes {what.replace('-', ' ')} is not looked at.",
             replacement)  # fmt: skip


def _crc_left_out_after(what: str, command: int, count: int) -> None:
    """The payload checksum of one kind of answer that is not looked at after the first ones."""

    def payload_crc_ok(client: Specified, header: Wire, payload: bytes, /) -> bool:
        late = header.batch_id == command and _times(client, "payload-crc") > count
        return late or golden(client).payload_crc_ok(header, payload)

    register(Specified.payload_crc_ok, f"skips-payload-crc-of-{what}-after-{count}",
             f"After {count} answers with {what} the payload checksum is not looked at.",
             payload_crc_ok)  # fmt: skip


def _yes(*_arguments: Any) -> bool:
    return True


def _whatever_waits(waiting: Sequence[Batch], frame: Wire) -> Sequence[Batch]:
    return waiting if frame.flags & 0x08 else []


for _count in AFTER:
    for _hook, _what, _passed in (
        (Specified.magic_ok, "magic", _yes),
        (Specified.version_ok, "version", _yes),
        (Specified.header_crc_ok, "header-crc", _yes),
        (Specified.length_ok, "length", _yes),
        (Specified.check_size, "size", _yes),
        (Specified.check_next, "next-offset", _yes),
        (Specified.acknowledged, "batch-id", _whatever_waits),
        (Specified.answers, "command", _yes),
        (Specified.found, "topic-id", lambda topic, _topic_id: topic),
    ):
        left_out_after(_hook, _what, _count, _passed)
    _crc_left_out_after("topics", 0x80, _count)
    _crc_left_out_after("data", 0x11, _count)


def _of_command(command: int, header: Wire, payload: bytes) -> int:
    return len(payload) if header.batch_id == command else 0


for _size in ABOVE:
    for _command, _what in ((0x80, "topics"), (0x11, "data")):
        left_out_above(
            Specified.payload_crc_ok, f"payload-crc-of-{_what}", _size,
            lambda header, payload, command=_command: _of_command(command, header, payload),
        )  # fmt: skip
    left_out_above(Specified.check_size, "size", _size, lambda _, size: size)
    left_out_above(Specified.check_next, "next-offset", _size, lambda _, size, __: size)

# -- large records ---------------------------------------------------------------------------------


def _spoils_large(size: int, how: str, spoil: Callable[[Record], Record]) -> None:
    def spoiled(record: Record) -> Record:
        return spoil(record) if len(record.value) > size else record

    def chain(client: Specified, given: Sequence[Record], /) -> bytes:
        return golden(client).chain([spoiled(each) for each in given])

    def records(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
        found, end = golden(client).records(data)
        return [spoiled(each) for each in found], end

    register(Specified.chain, f"sends-records-above-{size}-{how}",
             f"Records above {size} bytes are sent {how}.", chain)  # fmt: skip
    register(Specified.records, f"reads-records-above-{size}-{how}",
             f"Records above {size} bytes are read {how}.", records)  # fmt: skip


def _no_frames_above(size: int, sent: int) -> None:
    """Clients with a limit that is lower than the document's, put to a record of so many bytes."""

    def length_ok(client: Specified, length: int, /) -> bool:
        return length <= size and golden(client).length_ok(length)

    def fits(client: Specified, given: Sequence[Record], /) -> bool:
        return sum(len(each.value) for each in given) <= size and golden(client).fits(given)

    mib = size >> 20
    mutant(Specified.length_ok, asked=(f"large/reads-{sent}",))(
        _named(length_ok, f"refuses-answers-above-{mib}-mib",
               f"Answers of more than {mib} MiB end the connection."))  # fmt: skip
    mutant(Specified.fits, asked=(f"large/sends-{sent}",))(
        _named(fits, f"refuses-batches-above-{mib}-mib",
               f"Batches of more than {mib} MiB are refused."))  # fmt: skip


for _size, _sent in ((1 << 20, 1_300_000), (8 << 20, 9_000_000)):
    _no_frames_above(_size, _sent)
for _size in ABOVE:
    _spoils_large(_size, "shortened", lambda record: record._replace(value=record.value[:-1]))
    _spoils_large(
        _size, "damaged",
        lambda record: record._replace(value=record.value[:-1] + bytes([record.value[-1] ^ 1])),
    )  # fmt: skip

# -- numbers that are cut --------------------------------------------------------------------------


def _cuts_argument(hook: Hook, what: str, at: int, bits: int) -> None:
    """A number of a request that is cut.

    Args:
        hook: What makes the request's payload.
        what: The number in words, for the name.
        at: Its place among the arguments of the hook.
        bits: To how many bits.
    """

    def replacement(client: Specified, *arguments: int) -> bytes:
        sent = [cut(each, bits) if n == at else each for n, each in enumerate(arguments)]
        payload: bytes = _golden(client, hook)(*sent)
        return payload

    register(hook, f"cuts-{what}-to-{bits}", f"Of {what.replace('-', ' ')} {bits} bits are sent.",
             replacement)  # fmt: skip


def _compares(bits: int) -> None:
    def acknowledged(_client: Specified, waiting: Sequence[Batch], frame: Wire) -> Sequence[Batch]:
        same = [b for b in waiting if cut(b.batch_id ^ frame.batch_id, bits) == 0]
        return same if frame.flags & 0x08 else []

    register(Specified.acknowledged, f"compares-{bits}-bits-of-batch-ids",
             f"Of batch ids {bits} bits are compared.", acknowledged)  # fmt: skip


def _counts_in(bits: int) -> None:
    def next_batch_id(client: Specified, last: int, /) -> int:
        return cut(golden(client).next_batch_id(last), bits) or 1

    register(Specified.next_batch_id, f"counts-batches-in-{bits}-bits",
             f"Ids of batches have {bits} bits, and begin again.", next_batch_id)  # fmt: skip


def _compares_topics(bits: int) -> None:
    def found(client: Specified, topic: Body, topic_id: int, /) -> Body:
        same = cut(topic["id"] ^ topic_id, bits) == 0
        return topic if same else golden(client).found(topic, topic_id)

    register(Specified.found, f"compares-{bits}-bits-of-topic-ids",
             f"Of topic ids {bits} bits are compared.", found)  # fmt: skip


for _bits in BITS:
    _cuts_argument(Specified.fetch, "fetch-offsets", 1, _bits)
    _cuts_argument(Specified.retention, "max-bytes", 2, _bits)
_cuts_argument(Specified.fetch, "fetch-offsets", 1, 63)
for _bits in (7, 8):
    _counts_in(_bits)
for _bits in (8, 16, 24, 31, 32, 40, 48, 53):
    _compares(_bits)
for _bits in BITS_32:
    _cuts_argument(Specified.topic, "topic-ids", 0, _bits)
    _compares_topics(_bits)
for _bits in (4, 8, 12, 16, 24, 31, 32, 53):
    _cuts_argument(Specified.retention, "max-ages", 1, _bits)

# -- at most so many -------------------------------------------------------------------------------


def _swapped(given: Sequence[Record], most: int) -> Sequence[Record]:
    if len(given) <= most:
        return given
    return [*given[: most - 1], given[most], given[most - 1], *given[most + 1 :]]


def _without(given: Sequence[Record], most: int) -> Sequence[Record]:
    return [*given[:most], *given[most + 1 :]]


def _twice(given: Sequence[Record], most: int) -> Sequence[Record]:
    return [*given[:most], *given[most : most + 1], *given[most:]]


def _many_records(most: int, how: str, changed: Hook) -> None:
    def chain(client: Specified, given: Sequence[Record], /) -> bytes:
        return golden(client).chain(changed(given, most))

    def records(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
        found, end = golden(client).records(data)
        return list(changed(found, most)), end

    register(Specified.chain, f"{how}-the-record-sent-after-{most}",
             f"Of a batch the record after the first {most} is wrong: {how}.", chain)  # fmt: skip
    register(Specified.records, f"{how}-the-record-read-after-{most}",
             f"Of an answer the record after the first {most} is wrong: {how}.",
             records)  # fmt: skip


def _most(most: int) -> None:
    def topics(client: Specified, body: Body, /) -> list[Body]:
        return golden(client).topics_of(body)[:most]

    def count(client: Specified, given: Sequence[Record], /) -> int:
        return min(most, golden(client).count(given))

    register(Specified.topics_of, f"lists-{most}-topics", f"A list has {most} topics at most.",
             topics)  # fmt: skip
    register(Specified.count, f"counts-to-{most}", f"More than {most} records count as {most}.",
             count)  # fmt: skip


def _handful(most: int) -> None:
    def acknowledged(client: Specified, waiting: Sequence[Batch], frame: Wire) -> Sequence[Batch]:
        found = golden(client).acknowledged(waiting, frame)
        return found if not found or _times(client, "acks") <= most else []

    def to_send(client: Specified, batches: Sequence[Batch], /) -> Sequence[Batch]:
        return golden(client).to_send(batches[:most])

    def backwards(client: Specified, batches: Sequence[Batch], /) -> Sequence[Batch]:
        found = golden(client).to_send(batches)
        return found if len(batches) <= most else [*reversed(found)]

    def error(client: Specified, payload: bytes, /) -> tuple[int, str, Body]:
        code, text, details = golden(client).error(payload)
        return (0x40 if _times(client, "errors") > most else code), text, details

    def records(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
        found, end = golden(client).records(data)
        return ([] if _times(client, "fetches") > most else found), end

    register(Specified.acknowledged, f"takes-{most}-acks", f"After {most} Acks none counts.",
             acknowledged)  # fmt: skip
    register(Specified.to_send, f"sends-{most}-batches", f"Only {most} batches are sent.",
             to_send)  # fmt: skip
    register(Specified.to_send, f"sends-backwards-after-{most}",
             f"With more than {most} batches the last one is sent first.", backwards)  # fmt: skip
    register(Specified.error, f"mistakes-errors-after-{most}",
             f"After {most} errors every one is taken for one of authentication.",
             error)  # fmt: skip
    register(Specified.records, f"reads-{most}-times", f"After {most} answers no record is read.",
             records)  # fmt: skip


for _number in MOST:
    _most(_number)
    for _how, _changed in (("loses", _without), ("swaps", _swapped), ("repeats", _twice)):
        _many_records(_number, _how, _changed)
for _number in HANDFULS:
    _handful(_number)

# -- the second time -------------------------------------------------------------------------------


def _stale(hook: Hook, what: str) -> None:
    """An answer that is told again although another one came."""

    def replacement(client: Specified, *arguments: Any) -> Any:
        return kept(client, what, _golden(client, hook)(*arguments))

    register(hook, f"keeps-{what}", f"What came of {what.replace('-', ' ')} once is told again.",
             replacement)  # fmt: skip


def _again(hook: Hook, what: str, times: int, spoil: Hook) -> None:
    """An answer that is told wrongly after it was told some times."""

    def replacement(client: Specified, *arguments: Any) -> Any:
        found = _golden(client, hook)(*arguments)
        return spoil(found) if _times(client, what) > times else found

    register(hook, f"spoils-{what}-after-{times}",
             f"What is told of {what.replace('-', ' ')} is wrong after {times} times.",
             replacement)  # fmt: skip


_stale(Specified.topics_of, "lists")
_stale(Specified.topic_of, "topics")
for _number in (1, 2, 4):
    _again(Specified.topics_of, "lists", _number, lambda topics: topics[:-1])
    _again(Specified.topic_of, "topics", _number, lambda topic: {**topic, "name": "another"})
    _again(Specified.fetched, "data", _number,
           lambda found: found._replace(records=found.records[:-1]))  # fmt: skip

# -- several kinds in turn -------------------------------------------------------------------------

FLAGS = {"keepalives": 0x20, "backpressure": 0x10, "acks": 0x08}


def _loses_behind(what: str, count: int) -> None:
    def served(client: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
        taken = []
        for frame in golden(client).served(frames):
            row = kept(client, what, Counter())
            if frame.flags & FLAGS[what]:
                row["now"] += 1
            lost = row["now"] > count and not frame.flags & FLAGS[what]
            if lost:
                row["now"] = 0
            else:
                taken.append(frame)
        return taken

    register(Specified.served, f"loses-what-comes-behind-{count}-{what}",
             f"The frame after more than {count} {what} is lost.", served)  # fmt: skip


def _after_requests(count: int) -> None:
    """A client that mixes up what it asked for, once it has asked for several things in turn."""

    def control(client: Specified, command: int, payload: bytes, /) -> bytes:
        seen = kept(client, "asked", Counter())
        before, seen["last"] = seen["last"], command
        seen["turns"] += before not in (0, command)
        late = seen["turns"] > count
        return golden(client).control(before if late and before else command, payload)

    register(Specified.control, f"repeats-commands-after-{count}-turns",
             f"After {count} changes from one command to another it sends the one before.",
             control)  # fmt: skip


def _stops_acks_beside(what: str, count: int) -> None:
    """A client that takes no Ack once so many other answers have come since it began."""

    def served(client: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
        seen = kept(client, f"beside-{what}", Counter())
        taken = []
        for frame in golden(client).served(frames):
            seen["answers"] += frame.flags == 0x40 and frame.batch_id == COMMANDS[what]
            late = seen["answers"] > count and frame.flags & 0x08
            if not late:
                taken.append(frame)
        return taken

    register(Specified.served, f"loses-acks-after-{count}-{what}",
             f"After {count} {what} no Ack counts.", served)  # fmt: skip


def _stops_at_old_acks(count: int) -> None:
    def acknowledged(client: Specified, waiting: Sequence[Batch], frame: Wire) -> Sequence[Batch]:
        found = golden(client).acknowledged(waiting, frame)
        old = kept(client, "old-acks", Counter())
        old["came"] += bool(frame.flags & 0x08) and not found
        return found if old["came"] <= count else []

    register(Specified.acknowledged, f"takes-no-ack-after-{count}-old-ones",
             f"After {count} Acks of batches that are acknowledged none counts.",
             acknowledged)  # fmt: skip


COMMANDS = {"topics": 0x80, "fetches": 0x11, "errors": 0xFF}
for _what in FLAGS:
    for _number in (0, 8, 64):
        _loses_behind(_what, _number)
for _number in (0, 8, 64):
    _stops_at_old_acks(_number)
for _number in (1, 8, 30):
    _after_requests(_number)
    for _what in COMMANDS:
        _stops_acks_beside(_what, _number)

# -- time ------------------------------------------------------------------------------------------


def _hurries(part: float) -> None:
    def operation_timeout(_client: Specified, timeout: float, /) -> float:
        return timeout * part

    register(Specified.operation_timeout, f"takes-{part}-of-its-time",
             f"An operation gets {part} of its time.", operation_timeout)  # fmt: skip


def _one_budget(client: Specified, timeout: float, /) -> float:
    """All operations together have the time of one."""
    now = time.monotonic()
    began: float = kept(client, "began", now)
    return max(0.0, began + timeout - now)


def _forgets_its_place(client: Specified, tail: bytes, whole: int, /) -> bytes:
    """What came of a frame is dropped when the rest of it takes its time."""
    now = time.monotonic()
    since = kept(client, "since", {"at": now})
    late, since["at"] = now - since["at"] > SLOW, now
    return b"" if late else golden(client).kept(tail, whole)


SLOW = 0.01
"""Seconds of the self-test between two pieces of an answer that takes its time."""
for _part in (0.1, 0.2, 4.0):
    _hurries(_part)
register(Specified.operation_timeout, "has-one-budget",
         "All operations together have the time of one.", _one_budget)  # fmt: skip
register(Specified.kept, "forgets-slow-frames",
         "What came of a frame is dropped when the rest takes its time.",
         _forgets_its_place)  # fmt: skip
register(Specified.gives_up_late, "takes-late-answers-for-the-next",
         "A connection on which an answer is overdue stays, and the answer is taken for the next.",
         lambda _client: False)  # fmt: skip
