"""Operators: one wrongness, applied to each place of the golden server where it makes sense.

A mutant that was written by hand is wrong always. These are wrong only sometimes: after some
frames, above a size, in high bits, beyond a number, the second time, or after some seconds.
"""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Final

from lance_conformance.server.golden.codec import SIZE, Reply, Wire, walk
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Connection, Refused, Replies, Topic
from lance_conformance.server.mutants import judging
from lance_conformance.server.mutants.registry import golden

AFTER = (1, 3, 8, 31, 50, 99, 999)
"""Frames of a connection after which a rule is no longer looked at."""
ABOVE = (200, 255, 256, 500, 1000, 2000, 4000, 16_000, 65_000, 1_000_000)
"""Bytes of a payload above which a rule is no longer looked at."""
BELOW = 10
"""Bytes of a payload below which a rule is not looked at."""
BITS = (8, 16, 24, 31, 32, 40, 48, 53, 56, 63)
"""Bits to which a number is cut."""
MOST = (8, 16, 32, 64, 128, 256)
"""Of anything there is at most so many."""
PACE = 0.05
"""Seconds of the self-test for one of a run."""
HEADER = 5

Hook = Callable[..., Any]

ASKED: Mapping[str, tuple[str, ...]] = {
    "magic_ok": ("pos/magic-*",),
    "version_ok": ("pos/version-*",),
    "header_crc_ok": ("pos/header-crc-*",),
    "payload_crc_ok": ("pos/payload-crc-*", "size/payload-crc-*"),
    "announced_ok": ("pos/oversize-*",),
    "chain_ok": ("pos/chain-*", "size/chain-*"),
    "count_ok": ("pos/record-count-*", "size/record-count-*"),
    "batch_id_ok": ("pos/batch-id-zero-*",),
    "complete": ("size/unfinished-*",),
    "ingest_topic": ("pos/unknown-topic-*", "width/topic-id-*"),
    "find": ("pos/command-*", "width/topic-id-*", "num/refusals-*", "rep/missing"),
    "keepalives": ("num/keepalives-*", "num/keepalives-1025"),
    "served": ("pos/keepalive-*", "num/in-flight-*", "num/keepalives-*"),
    "acks": ("pos/ack-*", "num/in-topic-*", "mix/*"),
    "stays_after": ("num/refusals-*", "num/refusals-1025"),
    "committed": ("width/consumer-id-*", "rep/resume", "rep/committed-now"),
    "start_of": ("width/fetch-offset-*", "vol/*"),
    "seen": ("width/batch-id-*", "width/timestamp-*", "mix/*"),
    "seen_elsewhere": ("num/remembered-*", "rep/retried"),
    "set_body": ("width/limits-*",),
    "limited_body": ("width/limits-*",),
    "offset_at": ("width/time-*", "rep/time"),
    "details": ("width/error-names-*",),
    "fetch_topic": ("width/topic-id-*", "num/topics-*"),
    "limit": ("width/max-bytes-*",),
    "counted": ("width/record-count-*",),
    "next_id": ("num/topics-*",),
    "listed": ("num/topics-*", "rep/list*"),
    "commit_kept": ("num/consumers-*",),
    "waits_for_others": ("num/connections-*", "mix/each-its-own-*"),
    "types_ok": ("num/records-*",),
    "stored": ("num/records-*", "num/in-topic-*", "num/in-flight-*", "mix/*-connections-*"),
    "arranged": ("num/in-flight-*", "num/commands-*"),
    "cut": ("num/fetches-*", "rep/fetch*"),
    "log_body": ("mix/each-its-own-*",),
    "found_body": ("num/commands-*", "rep/get", "mix/each-its-own-*"),
    "consumer_topic": ("num/subscribed-*",),
    "missing_code": ("rep/missing",),
    "status_body": ("rep/status",),
    "readable": ("rep/grows", "vol/*", "mix/reader-beside-writer"),
    "end_answer": ("rep/end",),
    "taken_by": ("rep/taken",),
    "beyond_end": ("rep/fetch-beyond",),
    "idle_limit": ("wait/*",),
}
"""The cases about each place; the others have nothing to do with a wrongness there."""


def register(hook: Hook, name: str, title: str, replacement: Hook, only: str | None = None) -> None:
    """Register a mutant that is put to the cases about its place."""
    judging.register(hook, name, title, replacement, only, ASKED[hook.__name__])


def _golden(server: Specified, hook: Hook) -> Hook:
    found: Hook = getattr(golden(server), hook.__name__)
    return found


def _cut(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


# -- a check that is left out ----------------------------------------------------------------------


def left_out_after(hook: Hook, what: str, count: int, only: str | None = None) -> None:
    """A check that a connection passes unseen after its first frames."""

    def replacement(server: Specified, *arguments: Any) -> bool:
        seen = server.memory.speaker.counts
        seen[hook.__name__] += 1
        return seen[hook.__name__] > count or bool(_golden(server, hook)(*arguments))

    register(
        hook, f"skips-{what}-after-{count}",
        f"After {count} frames of a connection, {what.replace('-', ' ')} is not looked at.",
        replacement, only,
    )  # fmt: skip


def left_out_above(
    hook: Hook, what: str, size: int, payload: Callable[..., int], only: str | None = None
) -> None:
    """A check that large payloads pass unseen."""

    def replacement(server: Specified, *arguments: Any) -> bool:
        return payload(*arguments) > size or bool(_golden(server, hook)(*arguments))

    register(
        hook, f"skips-{what}-above-{size}",
        f"Above {size} bytes of payload, {what.replace('-', ' ')} is not looked at.",
        replacement, only,
    )  # fmt: skip


for _count in AFTER:
    left_out_after(Specified.magic_ok, "magic", _count)
    left_out_after(Specified.version_ok, "version", _count)
    left_out_after(Specified.header_crc_ok, "header-crc", _count)
    left_out_after(Specified.payload_crc_ok, "payload-crc", _count)
    left_out_after(Specified.announced_ok, "length", _count)
    left_out_after(Specified.chain_ok, "chain", _count, "specified")
    left_out_after(Specified.count_ok, "record-count", _count, "specified")
    left_out_after(Specified.batch_id_ok, "batch-id", _count, "specified")
for _size in ABOVE:
    left_out_above(Specified.payload_crc_ok, "payload-crc", _size, lambda _, payload: len(payload))
for _size in ABOVE[:-1]:
    left_out_above(Specified.chain_ok, "chain", _size, len, "specified")
    left_out_above(
        Specified.count_ok, "record-count", _size, lambda _, payload: len(payload), "specified"
    )


def left_out_below(
    hook: Hook, what: str, payload: Callable[..., int], only: str | None = None
) -> None:
    """A check that small payloads pass unseen."""

    def replacement(server: Specified, *arguments: Any) -> bool:
        return payload(*arguments) < BELOW or bool(_golden(server, hook)(*arguments))

    register(
        hook, f"skips-{what}-below-{BELOW}",
        f"Below {BELOW} bytes of payload, {what.replace('-', ' ')} is not looked at.",
        replacement, only,
    )  # fmt: skip


left_out_below(Specified.payload_crc_ok, "payload-crc", lambda _, payload: len(payload))
left_out_below(Specified.chain_ok, "chain", len, "specified")
left_out_below(Specified.count_ok, "record-count", lambda _, payload: len(payload), "specified")


def _serves_small_unfinished(server: Specified, there: int, needed: int, /) -> bool:
    late = needed < SIZE + BELOW and needed - there <= 1
    return late or golden(server).complete(there, needed)


register(Specified.complete, f"serves-frames-below-{BELOW}-early",
         f"A frame below {BELOW} bytes is served before its last byte is there.",
         _serves_small_unfinished)  # fmt: skip


def _serves_unfinished(size: int) -> None:
    def replacement(server: Specified, there: int, needed: int, /) -> bool:
        late = needed > size and needed - there <= 1
        return late or golden(server).complete(there, needed)

    register(
        Specified.complete, f"serves-frames-above-{size}-early",
        f"A frame above {size} bytes is served before its last byte is there.", replacement,
    )  # fmt: skip


for _size in ABOVE[:-1]:
    _serves_unfinished(_size)


# -- places on a connection ------------------------------------------------------------------------


def _forgets_topics(count: int) -> None:
    def ingest(server: Specified, connection: Connection, topic_id: int, /) -> Topic:
        connection.counts["ingest"] += 1
        if connection.counts["ingest"] > count and topic_id not in server.memory.topics:
            return Topic(topic_id, "nobody")
        return golden(server).ingest_topic(connection, topic_id)

    def get(server: Specified, topic_id: int, /) -> Topic:
        counts = server.memory.speaker.counts
        counts["get"] += 1
        if counts["get"] > count and topic_id not in server.memory.topics:
            return Topic(topic_id, "nobody")
        return golden(server).find(topic_id)

    register(Specified.ingest_topic, f"stores-nowhere-after-{count}",
             f"After {count} batches of a connection any topic id is taken.", ingest)  # fmt: skip
    register(Specified.find, f"finds-anything-after-{count}",
             f"After {count} GetTopics of a connection every topic is found.", get)  # fmt: skip


def _tires(count: int) -> None:
    def keepalives(server: Specified, frame: Wire, /) -> Replies:
        counts = server.memory.speaker.counts
        counts["keepalive"] += 1
        return [] if counts["keepalive"] > count else golden(server).keepalives(frame)

    def served(server: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
        counts = server.memory.speaker.counts
        found = golden(server).served(frames)
        counts["frames"] += len(found)
        return [f for f in found if f.flags != KEEPALIVE or counts["frames"] <= count]

    def acks(server: Specified, frame: Wire, /) -> Replies:
        counts = server.memory.speaker.counts
        counts["ack"] += 1
        wrong = counts["ack"] == count + 1
        return golden(server).acks(frame._replace(batch_id=frame.batch_id ^ wrong))

    def stays(server: Specified, code: int, command: int, /) -> bool:
        counts = server.memory.speaker.counts
        counts["refused"] += 1
        return counts["refused"] <= count and golden(server).stays_after(code, command)

    register(Specified.keepalives, f"answers-{count}-keepalives",
             f"A connection gets {count} answers to Keepalives.",
             keepalives)  # fmt: skip
    register(Specified.served, f"answers-keepalives-for-{count}-frames",
             f"After {count} frames of a connection Keepalives are passed over.",
             served)  # fmt: skip
    register(Specified.acks, f"acks-another-after-{count}",
             f"The Ack after {count} others of a connection names another batch.",
             acks)  # fmt: skip
    register(Specified.stays_after, f"ends-after-{count}-refusals",
             f"A connection ends after {count} refusals.", stays)  # fmt: skip


KEEPALIVE, INGEST = 0x20, 0x04
for _count in sorted({*AFTER, *MOST}):
    if _count in AFTER:
        _forgets_topics(_count)
    _tires(_count)


# -- numbers that are cut --------------------------------------------------------------------------


def _cuts(bits: int) -> None:  # noqa: C901 - one small rule after the other
    words = f"Of %s only {bits} bits are looked at."

    def committed(server: Specified, topic_id: int, consumer: int, /) -> int:
        found = [
            offset
            for (topic, other), offset in server.memory.commits.items()
            if topic == topic_id and _cut(other, bits) == _cut(consumer, bits)
        ]
        return found[-1] if found else 0

    def start(server: Specified, offset: int, /) -> int:
        asked = golden(server).start_of(offset)
        return asked if asked == 2**64 - 1 else _cut(asked, bits)

    def seen(server: Specified, connection: Connection, frame: Wire, /) -> str:
        for (topic, batch_id), content in server.memory.batches.items():
            same = topic == frame.topic and _cut(batch_id, bits) == _cut(frame.batch_id, bits)
            if same and batch_id != frame.batch_id and content == (frame.timestamp, frame.payload):
                return "again"
        return golden(server).seen(connection, frame)

    def seen_then(server: Specified, connection: Connection, frame: Wire, /) -> str:
        time, payload = server.memory.batches.get((frame.topic, frame.batch_id), (None, b""))
        same = time is not None and _cut(time, bits) == _cut(frame.timestamp, bits)
        if same and payload == frame.payload:
            return "again"
        return golden(server).seen(connection, frame)

    def set_body(server: Specified, topic: Topic, /) -> Body:
        body = golden(server).set_body(topic)
        return {**body, "max_bytes": _cut(body["max_bytes"], bits)}

    def limited_body(server: Specified, topic: Topic, /) -> Body:
        body = golden(server).limited_body(topic)
        return {**body, "max_age_secs": _cut(body["max_age_secs"], bits)}

    def offset_at(server: Specified, topic: Topic, time_ns: int, /) -> int:
        return golden(server).offset_at(topic, _cut(time_ns, bits))

    def details(server: Specified, frame: Wire, /) -> Body:
        return golden(server).details(frame._replace(batch_id=_cut(frame.batch_id, bits)))

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


_FEWEST_ID_BITS: Final = 8
"""With fewer, which case notices depends on the ids that a run happens to get."""


def _cuts_32(bits: int) -> None:
    words = f"Of %s only {bits} bits are looked at."

    def topic_of(hook: Hook) -> Hook:
        def replacement(server: Specified, *arguments: Any) -> Topic:
            *before, topic_id = arguments
            found: Topic = _golden(server, hook)(*before, _cut(topic_id, bits))
            return found

        return replacement

    def limit(server: Specified, max_bytes: int, /) -> int:
        return golden(server).limit(_cut(max_bytes, bits))

    for hook in (Specified.find, Specified.fetch_topic, Specified.ingest_topic):
        if bits < _FEWEST_ID_BITS:
            break
        name = hook.__name__.replace("_", "-")
        register(hook, f"cuts-ids-to-{bits}-in-{name}", words % "a topic id", topic_of(hook))
    register(Specified.limit, f"cuts-max-bytes-to-{bits}", words % "Max Bytes", limit)


def _cuts_counts(bits: int) -> None:
    def counted(server: Specified, log: bytes, start: int, data: bytes, /) -> int:
        return _cut(golden(server).counted(log, start, data), bits)

    register(Specified.counted, f"cuts-counts-to-{bits}",
             f"Of a count only {bits} bits are looked at.", counted, "specified")  # fmt: skip


def _in_microseconds(server: Specified, connection: Connection, frame: Wire, /) -> str:
    time, payload = server.memory.batches.get((frame.topic, frame.batch_id), (None, b""))
    if time is not None and time >> 10 == frame.timestamp >> 10 and payload == frame.payload:
        return "again"
    return golden(server).seen(connection, frame)


MIN_LIMIT_BITS = 31
for _bits in BITS:
    _cuts(_bits)
for _bits in (4, 8, 12, 16, 20, 24, 28, 31):
    _cuts_32(_bits)
for _bits in (7, 8, 16):
    _cuts_counts(_bits)
register(Specified.seen, "compares-timestamps-in-microseconds",
         "Of a timestamp the lowest ten bits are not looked at.", _in_microseconds)  # fmt: skip


# -- at most so many -------------------------------------------------------------------------------


def _most(most: int) -> None:  # noqa: C901, PLR0915 - one small rule after the other
    def next_id(server: Specified) -> int:
        if len(server.memory.topics) >= most:
            raise Refused(0x04, f"there are {most} topics already")
        return golden(server).next_id()

    def listed(server: Specified) -> list[Body]:
        return golden(server).listed()[-most:]

    def fetch_topic(server: Specified, topic_id: int, /) -> Topic:
        return golden(server).fetch_topic(
            topic_id - most if topic_id - most in server.memory.topics else topic_id
        )

    def commit_kept(server: Specified, topic_id: int, consumer: int, offset: int, /) -> None:
        golden(server).commit_kept(topic_id, consumer, offset)
        mine = [key for key in server.memory.commits if key[0] == topic_id]
        for key in mine[:-most]:
            del server.memory.commits[key]

    def waits(server: Specified, crowd: int, unfinished: int, unread: int, /) -> bool:
        return crowd > most or golden(server).waits_for_others(crowd, unfinished, unread)

    def types_ok(server: Specified, payload: bytes, /) -> bool:
        return len(walk(payload)[0]) - 1 <= most and golden(server).types_ok(payload)

    def drops_record(server: Specified, topic: Topic, payload: bytes, /) -> bytes:
        ends = walk(payload)[0]
        if len(ends) > most + 1:
            payload = payload[: ends[most]] + payload[ends[most + 1] :]
        return golden(server).stored(topic, payload)

    def swaps_records(server: Specified, topic: Topic, payload: bytes, /) -> bytes:
        ends = walk(payload)[0]
        if len(ends) > most + 1:
            a, b, c = ends[most - 1], ends[most], ends[most + 1]
            payload = payload[:a] + payload[b:c] + payload[a:b] + payload[c:]
        return golden(server).stored(topic, payload)

    def served(server: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
        found = golden(server).served(frames)
        ingests = [frame for frame in found if frame.flags == INGEST]
        late = {id(frame) for frame in ingests[most:]}
        return [frame for frame in found if id(frame) not in late]

    def arranged(server: Specified, replies: Replies, /) -> Replies:
        found = golden(server).arranged(replies)
        return [*found[:most], *reversed(found[most:])] if len(found) > most + 1 else found

    def drops_batch(server: Specified, topic: Topic, payload: bytes, /) -> bytes:
        server.memory.counts[topic.id] += 1
        lost = server.memory.counts[topic.id] == most + 1
        return topic.log if lost else golden(server).stored(topic, payload)

    def elsewhere(server: Specified, key: tuple[int, int], content: tuple[int, bytes], /) -> bool:
        recent = [*server.memory.batches][-most:]
        return key in recent and golden(server).seen_elsewhere(key, content)

    def cut(server: Specified, log: bytes, start: int, limit: int, /) -> bytes:
        counts = server.memory.speaker.counts
        counts["fetch"] += 1
        return b"" if counts["fetch"] > most else golden(server).cut(log, start, limit)

    def found_body(server: Specified, topic: Topic, /) -> Body:
        counts, kept = server.memory.speaker.counts, server.memory.kept
        counts["found"] += 1
        late = counts["found"] > most and "found" in kept
        body = kept["found"] if late else golden(server).found_body(topic)
        kept["found"] = golden(server).found_body(topic)
        return dict(body)

    def consumer_topic(server: Specified, topic_id: int, /) -> Topic:
        counts = server.memory.speaker.counts
        counts["subscribed"] += 1
        if counts["subscribed"] > most:
            raise Refused(0x04, f"a connection has at most {most} subscriptions")
        return golden(server).consumer_topic(topic_id)

    for hook, name, title, replacement, only in (
        (Specified.next_id, "has-{}-topics", "There are at most {} topics.", next_id, None),
        (Specified.listed, "lists-{}-topics", "Only {} topics are listed.", listed, None),
        (Specified.fetch_topic, "mixes-up-topics-beyond-{}",
         "A Fetch from a topic brings the data of the one {} before it.", fetch_topic, None),
        (Specified.commit_kept, "keeps-{}-commits", "A topic has at most {} commits.",
         commit_kept, None),
        (Specified.waits_for_others, "serves-{}-connections",
         "At most {} connections are served.", waits, None),
        (Specified.types_ok, "takes-{}-records", "A batch has at most {} records.", types_ok, None),
        (Specified.stored, "loses-a-record-after-{}",
         "The record after the first {} of a batch is lost.", drops_record, None),
        (Specified.stored, "swaps-records-after-{}",
         "The record after the first {} of a batch stands before the one before it.",
         swaps_records, None),
        (Specified.served, "takes-{}-batches-a-read", "Of one read {} batches are served.",
         served, None),
        (Specified.arranged, "answers-backwards-after-{}",
         "After {} answers of one read the others come backwards.", arranged, None),
        (Specified.stored, "loses-a-batch-after-{}",
         "The batch after the first {} of a topic is acknowledged and lost.", drops_batch, None),
        (Specified.seen_elsewhere, "remembers-{}-batches",
         "The last {} batches are known on other connections.", elsewhere, "specified"),
        (Specified.cut, "brings-data-{}-times", "A connection gets data {} times.", cut, None),
        (Specified.found_body, "finds-the-last-after-{}",
         "After {} answers about topics a connection is told of the topic before.",
         found_body, None),
        (Specified.consumer_topic, "has-{}-subscriptions",
         "A connection has at most {} subscriptions.", consumer_topic, None),
    ):  # fmt: skip
        if hook.__name__ in _OBJECTS and most > MOST_OBJECTS:
            continue
        if hook is Specified.arranged and most > MOST_OBJECTS * 2:
            continue  # one read has hardly more
        register(hook, name.format(most), title.format(most), replacement, only)


MOST_OBJECTS = 64
_OBJECTS = frozenset(
    {"next_id", "listed", "fetch_topic", "commit_kept", "waits_for_others", "consumer_topic"}
)
"""Places that count topics, consumers, connections or subscriptions: usual runs have 65 of each."""
for _number in MOST:
    _most(_number)


# -- the second time, and what was true before -----------------------------------------------------


def _again(  # noqa: PLR0917 - a row of the table below
    name: str, title: str, hook: Hook, key: Hook, spoil: Hook, times: int, only: str | None = None
) -> None:
    """An answer that is another one each time after it was given some times."""

    def replacement(server: Specified, *arguments: Any) -> Any:
        asked = (hook.__name__, key(*arguments))
        server.memory.counts[asked] += 1
        found = _golden(server, hook)(*arguments)
        late = server.memory.counts[asked] - times
        return spoil(found, late) if late > 0 else found

    register(hook, f"{name}-after-{times}", title.format(times), replacement, only)


def _stale(name: str, title: str, hook: Hook, key: Hook) -> None:
    """An answer that is given again although the facts have changed."""

    def replacement(server: Specified, *arguments: Any) -> Any:
        asked = (hook.__name__, key(*arguments))
        if asked not in server.memory.kept:
            server.memory.kept[asked] = _golden(server, hook)(*arguments)
        return server.memory.kept[asked]

    register(hook, name, title, replacement)


def _topic_key(topic: Topic) -> int:
    return topic.id


for _times in (1, 2, 3, 4):
    _again("forgets-the-time", "A topic has another creation time after {} answers.",
           Specified.found_body, _topic_key,
           lambda body, late: {**body, "created_at": body["created_at"] + late},
           _times)  # fmt: skip
    _again("redates-the-list", "The list has other creation times after {} answers.",
           Specified.listed, lambda: 0,
           lambda rows, late: [{**row, "created_at": row["created_at"] + late} for row in rows],
           _times)  # fmt: skip
    _again("brings-nothing", "The same Fetch brings nothing after {} answers.",
           Specified.cut, lambda log, start, limit: (log, start, limit), lambda *_: b"",
           _times)  # fmt: skip
    _again("resumes-once", "A commit is used up after {} answers.",
           Specified.committed, lambda topic_id, consumer: (topic_id, consumer), lambda *_: 0,
           _times)  # fmt: skip
    _again("dates-anew", "The same time has another offset after {} answers.",
           Specified.offset_at, lambda topic, time_ns: (topic.id, time_ns),
           lambda offset, late: offset + late, _times)  # fmt: skip
    _again("says-another-code", "The same missing topic has another code after {} answers.",
           Specified.missing_code, lambda topic_id: topic_id, lambda code, _: code ^ 0x03,
           _times, "specified")  # fmt: skip
    _again("changes-its-name", "The node has another id after {} answers.",
           Specified.status_body, lambda: 0,
           lambda body, late: {**body, "node_id": body["node_id"] + late}, _times)  # fmt: skip
    _again("takes-a-name-twice", "A name that is taken is given away after {} refusals.",
           Specified.taken_by, lambda name: name, lambda *_: None, _times)  # fmt: skip
    _again(
        "forgets-the-end",
        "Beyond the end the same Fetch is told another end after {} answers.",
        Specified.beyond_end,
        lambda log, start: (len(log), start),
        lambda reply, _: reply._replace(payload=bytes(8)),
        _times,
    )
    _again("forgets-a-batch", "A batch is known {} times when it comes again.",
           Specified.seen_elsewhere, lambda key, content: (key, content), lambda *_: False,
           _times, "specified")  # fmt: skip
_stale("keeps-the-log", "What was read of a topic once is read for ever.",
       Specified.readable, _topic_key)  # fmt: skip
_stale("keeps-the-list", "The list is that of the first time.", Specified.listed, lambda: 0)
_stale("keeps-the-commit", "A consumer resumes where it resumed first.",
       Specified.committed, lambda topic_id, consumer: (topic_id, consumer))  # fmt: skip


def _keeps_end(server: Specified, log: bytes, /) -> Reply:
    """The end that is told is that of the first time."""
    kept = server.memory.kept
    ends = kept.setdefault("ends", {})
    first = next((known for known in ends if log.startswith(known)), None)
    if first is None:
        ends[log] = first = log
    return golden(server).end_answer(first)


register(Specified.end_answer, "keeps-the-end", "The end that is told is that of the first time.",
         _keeps_end)  # fmt: skip


# -- several at once -------------------------------------------------------------------------------


def _equal_length(server: Specified, connection: Connection, frame: Wire, /) -> str:
    time, payload = server.memory.batches.get((frame.topic, frame.batch_id), (None, b""))
    if time == frame.timestamp and len(payload) == len(frame.payload):
        return "again"
    return golden(server).seen(connection, frame)


def _any_topic(server: Specified, connection: Connection, frame: Wire, /) -> str:
    batches = server.memory.batches
    known = [kept for (_, batch_id), kept in batches.items() if batch_id == frame.batch_id]
    if (frame.timestamp, frame.payload) in known:
        return "again"
    return golden(server).seen(connection, frame)


def _any_producer(server: Specified, connection: Connection, frame: Wire, /) -> str:
    known = (frame.topic, frame.batch_id) in server.memory.batches
    mine = (frame.topic, frame.batch_id) in connection.batches
    return "again" if known and not mine else golden(server).seen(connection, frame)


def _one_behind(server: Specified, topic: Topic, /) -> bytes:
    """A connection does not see the last batch of another one."""
    log = golden(server).readable(topic)
    mine = (payload for _, payload in server.memory.speaker.batches.values())
    seen = not topic.arrivals or any(log.endswith(payload) for payload in mine)
    return log if seen else log[: topic.arrivals[-1][1]]


def _notes_writer(server: Specified, topic: Topic, payload: bytes, /) -> bytes:
    """The records of the connection that wrote last stand before those of the others."""
    before = server.memory.kept.get(("last", topic.id))
    server.memory.kept["last", topic.id] = (server.memory.speaker, len(payload))
    if before is None or before[0] is server.memory.speaker:
        return golden(server).stored(topic, payload)
    return topic.log[: -before[1]] + payload + topic.log[-before[1] :]


register(Specified.seen, "compares-lengths-only",
         "A batch with a known id, time and length is taken for a repetition.",
         _equal_length)  # fmt: skip
register(Specified.seen, "knows-batches-of-any-topic",
         "A batch that another topic has is taken for a repetition.", _any_topic)  # fmt: skip
register(
    Specified.seen,
    "knows-batches-of-any-producer",
    "A batch id that another connection used is taken for a repetition.",
    _any_producer,
)


def _acks_one_of_two(server: Specified, frame: Wire, /) -> Replies:
    """No batch is acknowledged that follows one of another connection in a topic."""
    kept, speaker = server.memory.kept, server.memory.speaker
    before = kept.get(("acked", frame.topic), speaker)
    kept["acked", frame.topic] = speaker
    return golden(server).acks(frame) if before is speaker else []


def _found_by_another(server: Specified, topic: Topic, /) -> Body:
    """What is said of a topic is said to the connection that asks next."""
    kept, speaker = server.memory.kept, server.memory.speaker
    asker, found = kept.get("found-last", (speaker, topic))
    kept["found-last"] = speaker, topic
    told = topic if asker is speaker else found
    return {**golden(server).found_body(told), **golden(server).log_body(told)}


register(Specified.log_body, "tells-what-another-connection-asked",
         "The first answer about a topic after that to another connection is that one's.",
         _found_by_another)  # fmt: skip
register(Specified.acks, "acks-nothing-after-another-connection",
         "No batch is acknowledged that follows one of another connection in its topic.",
         _acks_one_of_two)  # fmt: skip
register(Specified.readable, "hides-the-last-batch-of-others",
         "A connection does not see the last batch of another one.", _one_behind)  # fmt: skip
register(Specified.stored, "puts-the-last-writer-first",
         "The batch of a connection stands before the one that another connection stored last.",
         _notes_writer)  # fmt: skip


# -- limits of time --------------------------------------------------------------------------------


def _impatient(seconds: float) -> None:
    def idle(_server: Specified, _unfinished: bool, /) -> float | None:
        return seconds * PACE

    def stalled(_server: Specified, unfinished: bool, /) -> float | None:
        return seconds * PACE if unfinished else None

    def whole(server: Specified, unfinished: bool, /) -> float | None:
        kept, key, now = server.memory.kept, ("began", id(server.memory.speaker)), monotonic()
        if not unfinished:
            kept.pop(key, None)
            return None
        began: float = kept.setdefault(key, now)
        return max(0.0, began + seconds * PACE - now)

    register(Specified.idle_limit, f"ends-frames-after-{seconds}",
             f"A frame that is not whole after {seconds} s ends its connection.",
             whole)  # fmt: skip
    register(Specified.idle_limit, f"ends-idle-connections-after-{seconds}",
             f"A connection that is silent for {seconds} s is ended.", idle)  # fmt: skip
    register(Specified.idle_limit, f"ends-stalled-frames-after-{seconds}",
             f"A frame that stalls for {seconds} s ends its connection.", stalled)  # fmt: skip


for _seconds in (3,):
    _impatient(_seconds)


# -- large logs ------------------------------------------------------------------------------------


def _mixes_segments(size: int) -> None:
    def readable(server: Specified, topic: Topic, /) -> bytes:
        log = golden(server).readable(topic)
        if len(log) < 4 * size:
            return log
        return log[:size] + log[2 * size : 3 * size] + log[size : 2 * size] + log[3 * size :]

    def start(server: Specified, offset: int, /) -> int:
        asked = golden(server).start_of(offset)
        return asked % size if 4 * size < asked < 2**63 else asked

    register(Specified.readable, f"mixes-up-segments-of-{size}",
             f"The second and third segment of {size} bytes change places.",
             readable)  # fmt: skip
    register(Specified.start_of, f"reads-the-first-segment-of-{size}",
             f"Beyond four segments of {size} bytes it reads from the first one.",
             start)  # fmt: skip


for _size in (1 << 16, 1 << 17, 1 << 18):
    _mixes_segments(_size)
