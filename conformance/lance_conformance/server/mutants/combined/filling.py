"""Servers that fill fields of headers that have no use, in some answers."""

from collections.abc import Callable
from typing import Any

from lance_conformance.server.golden.codec import Reply, Wire
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Replies
from lance_conformance.server.mutants.predicates import register
from lance_conformance.server.mutants.registry import golden

ASKED = ("each/bare-*", "any/mixed-*")
FEW, MUCH, SEVERAL = 40, 65_536, 2
FETCHED = 0x11
HEADER = 16
"""Bytes of a FetchResponse without data."""
COMPRESSED = 0x01


def _acks(name: str, title: str, filled: Callable[[Wire, int], dict[str, int]],
          only: str | None = None) -> None:  # fmt: skip
    def acks(server: Specified, frame: Wire, /) -> Replies:
        counts = server.memory.speaker.counts
        counts["acks"] += 1
        fields: Any = filled(frame, counts["acks"])
        return [reply._replace(**fields) for reply in golden(server).acks(frame)]

    register(Specified.acks, name, title, acks, only, ASKED)


_acks("counts-many-records-in-acks", f"An Ack of more than {FEW} records says how many.",
      lambda frame, _: {"records": frame.records if frame.records > FEW else 0})  # fmt: skip
_acks("dates-acks-of-much", "An Ack of a large batch has its time.",
      lambda frame, _: {
          "timestamp": frame.timestamp if len(frame.payload) > MUCH else 0
      })  # fmt: skip
_acks("dates-acks-of-compressed", "An Ack of a compressed batch has its time.",
      lambda frame, _: {"timestamp": frame.timestamp if frame.flags & COMPRESSED else 0},
      "specified")  # fmt: skip
_acks("names-topics-in-late-acks", f"After {SEVERAL} Acks of a connection the next name a topic.",
      lambda frame, number: {"topic": frame.topic if number > SEVERAL else 0})  # fmt: skip


def _unsubscribe_ack(server: Specified, consumer: int, /) -> Reply:
    return golden(server).unsubscribe_ack(consumer)._replace(records=1)


def _subscribe_ack(server: Specified, consumer: int, offset: int, /) -> Reply:
    return golden(server).subscribe_ack(consumer, offset)._replace(records=1)


def _commit_ack(server: Specified, consumer: int, offset: int, /) -> Reply:
    return golden(server).commit_ack(consumer, offset)._replace(topic=1)


def _time_answer(server: Specified, offset: int, /) -> Reply:
    return golden(server).time_answer(offset)._replace(topic=1)


def _beyond_end(server: Specified, log: bytes, start: int, /) -> Reply:
    return golden(server).beyond_end(log, start)._replace(records=1)


def _keepalives(server: Specified, frame: Wire, /) -> Replies:
    count = len(server.memory.speaker.batches)
    return [reply._replace(batch_id=count) for reply in golden(server).keepalives(frame)]


def _echoes(field: str) -> None:
    def keepalives(server: Specified, frame: Wire, /) -> Replies:
        said: Any = {field: getattr(frame, field)}
        return [reply._replace(**said) for reply in golden(server).keepalives(frame)]

    register(Specified.keepalives, f"echoes-the-{field.replace('_', '-')}-of-keepalives",
             f"The answer to a Keepalive has its {field}.", keepalives, None, ASKED)  # fmt: skip


for _field in ("batch_id", "topic", "timestamp"):
    _echoes(_field)


def _fetched(server: Specified, next_offset: int, count: int, data: bytes, /) -> Reply:
    return golden(server).fetched(next_offset, count, data)._replace(records=count)


def _error(code: int, name: str, words: str, only: str | None = None) -> None:
    def error(server: Specified, said: int, text: str, details: dict[str, object], /) -> Reply:
        reply = golden(server).error(said, text, details)
        return reply._replace(records=1) if said == code else reply

    register(Specified.error, f"fills-headers-of-{name}", f"The header of {words} counts a record.",
             error, only, ASKED)  # fmt: skip


for _hook, _name, _title, _replacement, _only in (
    (Specified.unsubscribe_ack, "counts-in-acks-of-unsubscribe",
     "The Ack of an Unsubscribe counts a record.", _unsubscribe_ack, None),
    (Specified.subscribe_ack, "counts-in-subscribe-acks", "A SubscribeAck counts a record.",
     _subscribe_ack, None),
    (Specified.commit_ack, "names-a-topic-in-commit-acks",
     "The header of a CommitAck names a topic.", _commit_ack, None),
    (Specified.time_answer, "names-a-topic-in-times",
     "The header of an OffsetForTimeResponse names a topic.", _time_answer, None),
    (Specified.beyond_end, "counts-in-catching-up", "The header of a CatchingUp counts a record.",
     _beyond_end, None),
    (Specified.keepalives, "numbers-keepalives", "A Keepalive has the number of batches before it.",
     _keepalives, None),
    (Specified.fetched, "counts-in-headers-of-fetches",
     "The header of a FetchResponse counts the records.", _fetched, None),
):  # fmt: skip
    register(_hook, _name, _title, _replacement, _only, ASKED)
_error(0x10, "missing-topics", "the refusal that misses a topic", "specified")
_error(0x04, "invalid-payloads", "the refusal of a payload", "specified")


def _fetches(name: str, title: str, mine: Callable[[int], bool]) -> None:
    def encode(server: Specified, reply: Reply, /) -> bytes:
        data = len(reply.payload) - HEADER
        hit = reply.batch_id == FETCHED and reply.topic == 0 and mine(data)
        return golden(server).encode(reply._replace(timestamp=1) if hit else reply)

    register(Specified.encode, name, title, encode, None, ASKED)


_fetches("dates-empty-fetches", "A FetchResponse without data has a time.", lambda data: data <= 8)
_fetches("dates-large-fetches", "A FetchResponse with much data has a time.",
         lambda data: data > MUCH)  # fmt: skip
