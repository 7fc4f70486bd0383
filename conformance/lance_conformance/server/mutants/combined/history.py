"""Servers whose checks depend on what the connection did before, and that forget in time."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

from lance_conformance.server.golden.codec import Wire
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Connection, Refused, Replies, Topic
from lance_conformance.server.mutants.operators.common import PACE, Hook, golden_rule
from lance_conformance.server.mutants.predicates import register
from lance_conformance.server.mutants.registry import golden

AFTER = ("pos/*-after-anything",)
LARGE = 65_536
History = Callable[[Connection], bool]


def _subscribed(connection: Connection) -> bool:
    return bool(connection.subscriptions)


def _wrote_much(connection: Connection) -> bool:
    return any(len(payload) > LARGE for _, payload in connection.batches.values())


CHECKS: tuple[tuple[Hook, str, str, str | None], ...] = (
    (Specified.magic_ok, "magic", "magic bytes", None),
    (Specified.version_ok, "versions", "versions", None),
    (Specified.header_crc_ok, "header-checksums", "header checksums", None),
    (Specified.payload_crc_ok, "payload-checksums", "payload checksums", None),
    (Specified.reserved_ok, "reserved-bytes", "reserved bytes", "specified"),
    (Specified.bit_7_ok, "bit-7", "flag bit 7", "specified"),
    (Specified.count_ok, "record-counts", "record counts", "specified"),
    (Specified.chain_ok, "chains", "records", "specified"),
    (Specified.batch_id_ok, "zero-ids", "batch ids of 0", "specified"),
)


def _unchecked(hook: Hook, name: str, words: str, history: History, only: str | None) -> None:
    def replacement(server: Specified, *arguments: Any) -> bool:
        right: bool = golden_rule(server, hook)(*arguments)
        return history(server.memory.speaker) or right

    register(hook, name, words, replacement, only, AFTER)


for _hook, _name, _words, _only in CHECKS:
    _unchecked(_hook, f"checks-no-{_name}-beside-a-subscription",
               f"On a connection that is subscribed {_words} are not looked at.",
               _subscribed, "specified")  # fmt: skip
    _unchecked(_hook, f"checks-no-{_name}-after-a-large-batch",
               f"After a large batch {_words} are not looked at.", _wrote_much, _only)  # fmt: skip


def _takes_lost_batches(server: Specified, connection: Connection, topic_id: int, /) -> Topic:
    try:
        return golden(server).ingest_topic(connection, topic_id)
    except Refused:
        if _wrote_much(connection):
            return Topic(topic_id, "nobody's")
        raise


def _checks_the_first_of_a_read(server: Specified, header: Wire, payload: bytes, /) -> bool:
    read = server.memory.speaker.tail
    later = server.memory.kept.get("read") is read
    server.memory.kept["read"] = read
    return later or golden(server).payload_crc_ok(header, payload)


register(Specified.ingest_topic, "takes-lost-batches-after-a-large-batch",
         "After a large batch one for a topic that is not there is acknowledged.",
         _takes_lost_batches, None, AFTER)  # fmt: skip
register(Specified.payload_crc_ok, "checks-the-first-payload-of-a-read",
         "Of several frames in one read only the first payload checksum is looked at.",
         _checks_the_first_of_a_read, None, AFTER)  # fmt: skip

# -- what only servers send ------------------------------------------------------------------------

PASSED_OVER = {"acks": 0x08, "backpressure": 0x10}


def _unchecked_on(what: str, flag: int) -> None:
    asked = ("each/*-ack", "each/*-backpressure")

    def header_crc_ok(server: Specified, header: Wire, /) -> bool:
        return header.flags == flag or golden(server).header_crc_ok(header)

    def bit_7_ok(server: Specified, flags: int, /) -> bool:
        return bool(flags & flag) or golden(server).bit_7_ok(flags)

    register(Specified.header_crc_ok, f"checks-no-headers-of-{what}",
             f"The header checksum of {what} from clients is not looked at.",
             header_crc_ok, None, asked)  # fmt: skip
    register(Specified.bit_7_ok, f"checks-no-bit-7-of-{what}",
             f"Flag bit 7 of {what} from clients is not looked at.", bit_7_ok,
             "specified", asked)  # fmt: skip


for _what, _flag in PASSED_OVER.items():
    _unchecked_on(_what, _flag)


def _hangs_up_on(what: str, flag: int) -> None:
    def ambient(server: Specified, connection: Connection, frame: Wire, /) -> Replies:
        if frame.flags == flag and frame.batch_id >> WIDE:
            connection.closing = True
        return golden(server).ambient(connection, frame)

    register(Specified.ambient, f"hangs-up-on-wide-{what}",
             f"{what.title()} of a client with an id of more than {WIDE} bits end its connection.",
             ambient, None, ("each/wide-*",))  # fmt: skip


WIDE = 40
for _what, _flag in PASSED_OVER.items():
    _hangs_up_on(_what, _flag)

# -- time ------------------------------------------------------------------------------------------

LATE = ("wait/known-*-25",)
SECONDS = 10
"""After which something is forgotten."""


def _later(function: Callable[..., object], *arguments: object) -> None:
    asyncio.get_running_loop().call_later(SECONDS * PACE, function, *arguments)


def _elsewhere(server: Specified, key: tuple[int, int], content: tuple[int, bytes], /) -> bool:
    first = server.memory.kept.setdefault(("first", key), monotonic())
    young = monotonic() - first < SECONDS * PACE
    return young and golden(server).seen_elsewhere(key, content)


def _own(server: Specified, connection: Connection, frame: Wire, /) -> str:
    key = id(connection), frame.topic, frame.batch_id
    first = server.memory.kept.setdefault(key, monotonic())
    young = monotonic() - first < SECONDS * PACE
    return golden(server).seen(connection, frame) if young else "new"


def _commit(server: Specified, topic_id: int, consumer: int, offset: int, /) -> None:
    golden(server).commit_kept(topic_id, consumer, offset)
    _later(server.memory.commits.pop, (topic_id, consumer), None)


def _deleted(server: Specified, topic: Topic, /) -> None:
    golden(server).forget(topic)
    _later(server.memory.deleted.discard, topic.id)


def _empty(server: Specified, topic: Topic, /) -> dict[str, Any]:
    def drop() -> None:
        if not topic.log:
            server.memory.topics.pop(topic.id, None)

    _later(drop)
    return golden(server).created_body(topic)


def _unlimited(server: Specified, topic: Topic, limits: tuple[int, int], /) -> None:
    golden(server).limits_kept(topic, limits)
    if limits == (0, 0):
        _later(setattr, topic, "log", b"")


for _hook, _name, _title, _replacement, _only in (
    (Specified.seen_elsewhere, "forgets-batches-in-time",
     f"A batch is known elsewhere for {SECONDS} s.", _elsewhere, "specified"),
    (Specified.seen, "forgets-own-ids-in-time",
     f"A batch id is known on its connection for {SECONDS} s.", _own, "specified"),
    (Specified.commit_kept, "forgets-commits-in-time", f"A commit counts for {SECONDS} s.",
     _commit, None),
    (Specified.forget, "forgets-deletions-in-time",
     f"A deleted topic is known as one for {SECONDS} s.", _deleted, "specified"),
    (Specified.created_body, "drops-empty-topics-in-time",
     f"A topic without records is dropped after {SECONDS} s.", _empty, None),
    (Specified.limits_kept, "empties-unlimited-topics-in-time",
     f"A topic whose limits were set to 0 is emptied after {SECONDS} s.", _unlimited, None),
):  # fmt: skip
    register(_hook, _name, _title, _replacement, _only, LATE)


NANOSECONDS = 10**9


def _overflows(name: str, title: str, reached: Callable[[int, int], bool]) -> None:
    def limits_kept(server: Specified, topic: Topic, limits: tuple[int, int], /) -> None:
        golden(server).limits_kept(topic, limits)
        if reached(*limits):
            topic.log = b""

    register(Specified.limits_kept, name, title, limits_kept, None, ("wait/wide-limits",))


_overflows("counts-ages-in-64-bits", "An age limit is counted in 64 bits of nanoseconds.",
           lambda age, _: age > 0 and age * NANOSECONDS % 2**64 < 60 * NANOSECONDS)  # fmt: skip
_overflows("counts-ages-in-32-bits", "An age limit is counted in 32 bits of seconds.",
           lambda age, _: age > 0 and age % 2**32 == 0)  # fmt: skip
_overflows("signs-limits", "A limit from 2^63 on is taken for a negative one.",
           lambda age, size: max(age, size) >= 2**63)  # fmt: skip
