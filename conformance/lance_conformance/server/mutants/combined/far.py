"""Servers whose checks end with very large frames, or after thousands of frames."""

from typing import Any

from lance_conformance.server.golden.codec import Reply, Wire
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Connection, Refused, Topic
from lance_conformance.server.mutants.operators.common import Hook, cut, golden_rule
from lance_conformance.server.mutants.predicates import register
from lance_conformance.server.mutants.registry import golden

MUCH, LATE = ("size/*-of-much",), ("pos/*-at-5000",)


def _above(size: int) -> None:
    def payload_crc_ok(server: Specified, header: Wire, payload: bytes, /) -> bool:
        return len(payload) > size or golden(server).payload_crc_ok(header, payload)

    def chain_ok(server: Specified, payload: bytes, /) -> bool:
        return len(payload) > size or golden(server).chain_ok(payload)

    def count_ok(server: Specified, announced: int, payload: bytes, /) -> bool:
        return len(payload) > size or golden(server).count_ok(announced, payload)

    for hook, what, words, replacement, only in (
        (Specified.payload_crc_ok, "payload-checksums", "payload checksum", payload_crc_ok, None),
        (Specified.chain_ok, "chains", "chain of records", chain_ok, "specified"),
        (Specified.count_ok, "record-counts", "record count", count_ok, "specified"),
    ):
        register(hook, f"checks-no-{what}-above-{size}",
                 f"The {words} of a payload above {size} bytes is not looked at.",
                 replacement, only, MUCH)  # fmt: skip


for _size in (100_000, 500_000, 1_100_000, 4_300_000, 11_000_000):
    _above(_size)


def _after(count: int) -> None:
    def unchecked(hook: Hook) -> Hook:
        def replacement(server: Specified, *arguments: Any) -> bool:
            counts = server.memory.speaker.counts
            counts[hook.__name__] += 1
            right: bool = golden_rule(server, hook)(*arguments)
            return counts[hook.__name__] > count or right

        return replacement

    def ingest_topic(server: Specified, connection: Connection, topic_id: int, /) -> Topic:
        connection.counts["late"] += 1
        try:
            return golden(server).ingest_topic(connection, topic_id)
        except Refused:
            if connection.counts["late"] > count:
                return Topic(topic_id, "nobody's")
            raise

    for hook, what, only in (
        (Specified.header_crc_ok, "header-checksums", None),
        (Specified.payload_crc_ok, "payload-checksums", None),
        (Specified.count_ok, "record-counts", "specified"),
    ):
        register(hook, f"checks-{count}-{what}",
                 f"Of a connection the first {count} {what} are looked at.",
                 unchecked(hook), only, LATE)  # fmt: skip
    register(Specified.ingest_topic, f"misses-topics-{count}-times",
             f"After {count} batches of a connection any topic is taken.", ingest_topic, None,
             LATE)  # fmt: skip


for _count in (1500, 3000, 4500):
    _after(_count)


# -- offsets in 24 bits ----------------------------------------------------------------------------

BITS = 24
OFFSETS = ("vol/far-commits", "vol/far-subscriptions", "vol/far-times", "vol/far-end-offset",
           "vol/far-beyond-end")  # fmt: skip


def _commit_kept(server: Specified, topic_id: int, consumer: int, offset: int, /) -> None:
    golden(server).commit_kept(topic_id, consumer, cut(offset, BITS))


def _commit_ack(server: Specified, consumer: int, offset: int, /) -> Reply:
    return golden(server).commit_ack(consumer, cut(offset, BITS))


def _subscribe_ack(server: Specified, consumer: int, offset: int, /) -> Reply:
    return golden(server).subscribe_ack(consumer, cut(offset, BITS))


def _time_answer(server: Specified, offset: int, /) -> Reply:
    return golden(server).time_answer(cut(offset, BITS))


def _log_body(server: Specified, topic: Topic, /) -> Body:
    body = golden(server).log_body(topic)
    return {**body, "end_offset": cut(body["end_offset"], BITS)}


def _beyond_end(server: Specified, log: bytes, start: int, /) -> Reply:
    reply = golden(server).beyond_end(log, start)
    end = cut(int.from_bytes(reply.payload, "little"), BITS)
    return reply._replace(payload=end.to_bytes(8, "little"))


for _hook, _name, _words, _replacement in (
    (Specified.commit_kept, "keeps", "a commit are kept", _commit_kept),
    (Specified.commit_ack, "acknowledges-commits-in", "a commit are acknowledged", _commit_ack),
    (Specified.subscribe_ack, "begins-in", "a subscription are told", _subscribe_ack),
    (Specified.time_answer, "finds-times-in", "the offset of a time are told", _time_answer),
    (Specified.log_body, "ends-in", "the end of a topic are told", _log_body),
    (Specified.beyond_end, "catches-up-in", "the end in a CatchingUp are told", _beyond_end),
):
    register(_hook, f"{_name}-{BITS}-bits-of-offsets", f"{BITS} bits of {_words}.", _replacement,
             "specified", OFFSETS)  # fmt: skip
