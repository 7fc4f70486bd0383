"""Numbers that are cut to fewer bits."""

from typing import Any, Final

from lance_conformance.server.golden.codec import Wire
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Connection, Topic
from lance_conformance.server.mutants.operators.common import (
    BITS,
    Hook,
    cut,
    golden_rule,
    register,
)
from lance_conformance.server.mutants.registry import golden

HEAD = 5
"""Bytes before the value of a record."""


def _cuts(bits: int) -> None:  # noqa: C901 - one small rule after the other
    words = f"Of %s only {bits} bits are looked at."

    def committed(server: Specified, topic_id: int, consumer: int, /) -> int:
        found = [
            offset
            for (topic, other), offset in server.memory.commits.items()
            if topic == topic_id and cut(other, bits) == cut(consumer, bits)
        ]
        return found[-1] if found else 0

    def start(server: Specified, offset: int, /) -> int:
        asked = golden(server).start_of(offset)
        return asked if asked == 2**64 - 1 else cut(asked, bits)

    def seen(server: Specified, connection: Connection, frame: Wire, /) -> str:
        for (topic, batch_id), content in server.memory.batches.items():
            same = topic == frame.topic and cut(batch_id, bits) == cut(frame.batch_id, bits)
            if same and batch_id != frame.batch_id and content == (frame.timestamp, frame.payload):
                return "again"
        return golden(server).seen(connection, frame)

    def seen_then(server: Specified, connection: Connection, frame: Wire, /) -> str:
        time, payload = server.memory.batches.get((frame.topic, frame.batch_id), (None, b""))
        same = time is not None and cut(time, bits) == cut(frame.timestamp, bits)
        if same and payload == frame.payload:
            return "again"
        return golden(server).seen(connection, frame)

    def set_body(server: Specified, topic: Topic, /) -> Body:
        body = golden(server).set_body(topic)
        return {**body, "max_bytes": cut(body["max_bytes"], bits)}

    def limited_body(server: Specified, topic: Topic, /) -> Body:
        body = golden(server).limited_body(topic)
        return {**body, "max_age_secs": cut(body["max_age_secs"], bits)}

    def offset_at(server: Specified, topic: Topic, time_ns: int, /) -> int:
        return golden(server).offset_at(topic, cut(time_ns, bits))

    def details(server: Specified, frame: Wire, /) -> Body:
        return golden(server).details(frame._replace(batch_id=cut(frame.batch_id, bits)))

    for hook, name, what, replacement, only in (
        (Specified.committed, "consumer-ids", "a consumer id", committed, None),
        (Specified.start_of, "offsets", "a Start Offset", start, None),
        (Specified.seen, "batch-ids", "a batch id", seen, None),
        (Specified.seen, "timestamps", "a timestamp", seen_then, None),
        (Specified.set_body, "set-limits", "a limit", set_body, "specified"),
        (Specified.limited_body, "created-limits", "a limit", limited_body, "specified"),
        (Specified.offset_at, "times", "a time", offset_at, None),
        (Specified.details, "error-ids", "the id in an error", details, "specified"),
    ):
        if name == "set-limits" and bits < MIN_LIMIT_BITS:
            continue
        register(hook, f"cuts-{name}-to-{bits}", words % what, replacement, only)


def _adds_lengths(bits: int) -> None:
    def chain(_server: Specified, payload: bytes, /) -> bool:
        at = 0
        while at < len(payload):
            if len(payload) - at < HEAD:
                return False
            length = int.from_bytes(payload[at + 1 : at + HEAD], "little")
            after = cut(at + HEAD + length, bits)
            if after <= at or length >= 1 << bits:
                return True
            at = after
        return at == len(payload)

    register(Specified.chain_ok, f"adds-record-lengths-in-{bits}-bits",
             f"Where a record ends is worked out in {bits} bits.", chain, "specified")  # fmt: skip


def _cuts_commands(bits: int) -> None:
    def command_of(server: Specified, batch_id: int, /) -> int:
        return golden(server).command_of(cut(batch_id, bits))

    register(Specified.command_of, f"cuts-commands-to-{bits}",
             f"Of a command only {bits} bits are looked at.", command_of, "specified")  # fmt: skip


def _cuts_own_batch_ids(bits: int) -> None:
    def seen(server: Specified, connection: Connection, frame: Wire, /) -> str:
        for (topic, batch_id), content in connection.batches.items():
            same = topic == frame.topic and cut(batch_id, bits) == cut(frame.batch_id, bits)
            if same and batch_id != frame.batch_id and content == (frame.timestamp, frame.payload):
                return "again"
        return golden(server).seen(connection, frame)

    register(Specified.seen, f"cuts-own-batch-ids-to-{bits}",
             f"A connection's own batches are told apart by {bits} bits of their ids.",
             seen)  # fmt: skip


_FEWEST_ID_BITS: Final = 8
"""With fewer, which case notices depends on the ids that a run happens to get."""


def _cuts_32(bits: int) -> None:
    words = f"Of %s only {bits} bits are looked at."

    def topic_of(hook: Hook) -> Hook:
        def replacement(server: Specified, *arguments: Any) -> Topic:
            *before, topic_id = arguments
            found: Topic = golden_rule(server, hook)(*before, cut(topic_id, bits))
            return found

        return replacement

    def limit(server: Specified, max_bytes: int, /) -> int:
        return golden(server).limit(cut(max_bytes, bits))

    for hook in (Specified.find, Specified.fetch_topic, Specified.ingest_topic):
        if bits < _FEWEST_ID_BITS:
            break
        name = hook.__name__.replace("_", "-")
        register(hook, f"cuts-ids-to-{bits}-in-{name}", words % "a topic id", topic_of(hook))
    register(Specified.limit, f"cuts-max-bytes-to-{bits}", words % "Max Bytes", limit)


def _cuts_counts(bits: int) -> None:
    def counted(server: Specified, log: bytes, start: int, data: bytes, /) -> int:
        return cut(golden(server).counted(log, start, data), bits)

    register(Specified.counted, f"cuts-counts-to-{bits}",
             f"Of a count only {bits} bits are looked at.", counted, "specified")  # fmt: skip


def _cuts_announced(bits: int) -> None:
    def count_ok(server: Specified, announced: int, payload: bytes, /) -> bool:
        return golden(server).count_ok(cut(announced, bits), payload)

    register(Specified.count_ok, f"cuts-announced-counts-to-{bits}",
             f"Of the count of a batch only {bits} bits are looked at.", count_ok,
             "specified")  # fmt: skip


def _in_microseconds(server: Specified, connection: Connection, frame: Wire, /) -> str:
    time, payload = server.memory.batches.get((frame.topic, frame.batch_id), (None, b""))
    if time is not None and time >> 10 == frame.timestamp >> 10 and payload == frame.payload:
        return "again"
    return golden(server).seen(connection, frame)


MIN_LIMIT_BITS = 31
for _bits in BITS:
    _cuts(_bits)
    _cuts_commands(_bits)
    _cuts_own_batch_ids(_bits)
for _bits in (4, 8, 12, 16, 20, 24, 28, 31):
    _cuts_32(_bits)
for _bits in (7, 8, 16):
    _cuts_counts(_bits)
for _bits in (8, 16, 24, 31):
    _cuts_announced(_bits)
register(Specified.seen, "compares-timestamps-in-microseconds",
         "Of a timestamp the lowest ten bits are not looked at.", _in_microseconds)  # fmt: skip
for _bits in (31, 32):
    _adds_lengths(_bits)


def _knows_batches_from(bit: int) -> None:
    def seen_elsewhere(
        server: Specified, key: tuple[int, int], content: tuple[int, bytes], /
    ) -> bool:
        return key[1] >= 1 << bit and server.memory.batches.get(key) == content

    early = bit < KNOWN_FROM
    where = "" if early else " only"
    register(Specified.seen_elsewhere, f"knows-batches-from-2-{bit}",
             f"Batch ids from 2^{bit} on{where} are known on other connections.",
             seen_elsewhere, "specified")  # fmt: skip


def _knows_batches_without_a_time(
    server: Specified, key: tuple[int, int], content: tuple[int, bytes], /
) -> bool:
    return key[1] >= 1 << KNOWN_FROM and server.memory.batches.get(key) == content


KNOWN_FROM = 40
"""Bit of the lowest batch id that is known on every connection (AMB-25)."""
for _bit in (16, 24, 31, 32, 36, 39, 48, 56, 63):
    _knows_batches_from(_bit)
register(Specified.seen_elsewhere, "knows-batches-without-a-time",
         "A batch whose timestamp is 0 is taken for a repetition.",
         _knows_batches_without_a_time, "specified")  # fmt: skip


def _brings_at_most(size: int) -> None:
    def limit(server: Specified, max_bytes: int, /) -> int:
        return min(size, golden(server).limit(max_bytes))

    register(Specified.limit, f"brings-{size}-bytes-at-most",
             f"No Fetch brings more than {size} bytes.", limit, "specified")  # fmt: skip


for _size in (4096, 1 << 16, 1 << 20):
    _brings_at_most(_size)
