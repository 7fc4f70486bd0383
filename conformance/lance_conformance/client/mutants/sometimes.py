"""Clients that are wrong only for some of what they are told, as long exchanges find out."""

import json
import ssl
import struct
from collections.abc import Callable, Sequence
from typing import Any

from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import Batch, Body, ProblemError, Record
from lance_conformance.client.mutants.operators import kept
from lance_conformance.client.mutants.registry import golden, mutant
from lance_conformance.server.golden.codec import Wire

DRAWN = ("drawn/*",)


def _count(client: Specified, what: str) -> int:
    """How often this was asked, this time with it."""
    seen: list[None] = kept(client, what, [])
    seen.append(None)
    return len(seen)


# -- topics ----------------------------------------------------------------------------------------


@mutant(Specified.topic_of, asked=DRAWN)
def tells_names_in_small_letters(client: Specified, body: Body, /) -> Body:
    """The name of a topic is told in small letters."""
    topic = golden(client).topic_of(body)
    return {**topic, "name": topic["name"].lower()}


@mutant(Specified.topic_of, asked=DRAWN)
def tells_short_names(client: Specified, body: Body, /) -> Body:
    """Of the name of a topic 64 letters are told."""
    topic = golden(client).topic_of(body)
    return {**topic, "name": topic["name"][:64]}


@mutant(Specified.limited, asked=DRAWN)
def creates_with_the_smaller_limit_first(
    client: Specified, name: str, age: int, size: int, /
) -> bytes:
    """Limits of a new topic go out by their size."""
    return golden(client).limited(name, min(age, size), max(age, size))


@mutant(Specified.retention, asked=DRAWN)
def limits_with_the_smaller_one_first(
    client: Specified, topic: int, age: int, size: int, /
) -> bytes:
    """Limits of a topic go out by their size."""
    return golden(client).retention(topic, min(age, size), max(age, size))


@mutant(Specified.topic, asked=DRAWN)
def repeats_a_topic_now_and_then(client: Specified, topic: int, /) -> bytes:
    """Every ninth question about a topic is about the one before."""
    before: list[int] = kept(client, "topics-asked", [topic])
    before.append(topic)
    return golden(client).topic(before[-2] if len(before) % 9 == 0 else topic)


# -- records ---------------------------------------------------------------------------------------


@mutant(Specified.chain, asked=DRAWN)
def sends_by_type(client: Specified, records: Sequence[Record], /) -> bytes:
    """The records of a batch leave by their types."""
    return golden(client).chain(sorted(records, key=lambda record: record.type))


def _reads(name: str, title: str, change: Callable[[int, Record], Record]) -> None:
    def records(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
        found, whole = golden(client).records(data)
        return [change(number, record) for number, record in enumerate(found)], whole

    records.__name__, records.__doc__ = name.replace("-", "_"), title
    mutant(Specified.records, asked=DRAWN)(records)


_reads("forgets-types-after-20-records", "After 20 records of an answer types are lost.",
       lambda number, record: record._replace(type=1) if number > 20 else record)  # fmt: skip
_reads("reads-types-in-7-bits", "Of the type of a record 7 bits are read where it has a value.",
       lambda _, record: record._replace(type=record.type & 0x7F) if record.value else record
       )  # fmt: skip
for _size in (127, 255, 1_460):
    _reads(f"loses-a-byte-of-{_size}", f"A value of {_size} bytes is one byte shorter.",
           lambda _, record, size=_size: record._replace(value=record.value[:-1])
           if len(record.value) == size else record)  # type: ignore[misc]  # fmt: skip


@mutant(Specified.fetch, asked=DRAWN)
def keeps_its_largest_fetch(client: Specified, topic: int, offset: int, most: int, /) -> bytes:
    """A Fetch never asks for less than the one before."""
    sizes: list[int] = kept(client, "sizes", [])
    sizes.append(most)
    return golden(client).fetch(topic, offset, max(sizes))


@mutant(Specified.ingest, asked=DRAWN)
def sends_some_batches_to_the_default_topic(
    client: Specified, batch_id: int, now: int, topic: int, records: Any, /
) -> bytes:
    """Every twelfth batch names no topic."""
    named = topic if _count(client, "batches") % 12 else 0
    return golden(client).ingest(batch_id, now, named, records)


@mutant(Specified.to_send, asked=DRAWN)
def changes_the_order_of_every_ninth(
    client: Specified, batches: Sequence[Batch], /
) -> Sequence[Batch]:
    """The ninth batch, the eighteenth and so on wait for the one that follows."""
    waiting = golden(client).to_send(batches)
    return sorted(waiting, key=lambda batch: batch.ticket + 1.5 * (batch.ticket % 9 == 0))


# -- a subscription --------------------------------------------------------------------------------


@mutant(Specified.commit, asked=DRAWN)
def commits_less_every_third_time(
    client: Specified, topic: int, consumer: int, offset: int, /
) -> bytes:
    """Every third commit repeats the one before."""
    before: list[int] = kept(client, "commits", [offset])
    before.append(offset)
    return golden(client).commit(topic, consumer, before[-2] if len(before) % 3 == 0 else offset)


@mutant(Specified.fetched, asked=DRAWN)
def loses_what_comes_for_the_eleventh_time(client: Specified, payload: bytes, offset: int, /
                                           ) -> Any:  # fmt: skip
    """The first record of every eleventh answer is lost."""
    found = golden(client).fetched(payload, offset)
    late = _count(client, "answers") % 11 == 0
    return found._replace(records=found.records[1:]) if late else found


# -- errors and faults -----------------------------------------------------------------------------


@mutant(Specified.kind_of, asked=DRAWN, only="specified")
def tells_the_kind_before(client: Specified, code: int, /) -> str:
    """After three errors each is told as the one before."""
    kinds: list[str] = kept(client, "kinds", [])
    kinds.append(golden(client).kind_of(code))
    return kinds[-2] if len(kinds) > 3 else kinds[-1]


@mutant(Specified.error, asked=DRAWN, only="specified")
def reads_messages_for_codes(client: Specified, payload: bytes, /) -> tuple[int, str, Body]:
    """Any error whose message names an offset counts as one about offsets."""
    code, text, details = golden(client).error(payload)
    return (0x51 if "Authentication" in text else code), text, details


def _unchecked(name: str, title: str, command: int, flag: int, after: int) -> None:
    """A client that looks at the header checksum of one kind of answer only at the beginning."""

    def header_crc_ok(client: Specified, header: Wire, /) -> bool:
        mine = header.flags & flag and (not command or header.batch_id == command)
        late = bool(mine) and _count(client, name) > after
        return late or golden(client).header_crc_ok(header)

    header_crc_ok.__name__, header_crc_ok.__doc__ = name.replace("-", "_"), title
    mutant(Specified.header_crc_ok, asked=("drawn/faulty-*", "late/each-fault-*"))(header_crc_ok)


for _what, _command, _flag in (
    ("acks", 0, 0x08), ("data", 0x11, 0x40), ("topics", 0x80, 0x40), ("commits", 0x24, 0x40),
):  # fmt: skip
    _unchecked(f"skips-header-crc-of-later-{_what}",
               f"After the first {_what} the header checksum is not looked at.",
               _command, _flag, 1)  # fmt: skip


@mutant(Specified.kept, asked=DRAWN)
def loses_a_part_behind_a_frame(client: Specified, tail: bytes, whole: int, /) -> bytes:
    """A part of a frame that comes in one read with two whole ones is lost."""
    return b"" if whole > 1 and len(tail) > 20 else golden(client).kept(tail, whole)


@mutant(Specified.to_send, asked=DRAWN)
def sends_large_batches_last(client: Specified, batches: Sequence[Batch], /) -> Sequence[Batch]:
    """Of several batches that wait, those of more than 4,096 bytes are sent last."""
    waiting = golden(client).to_send(batches)
    return sorted(waiting, key=lambda batch: len(batch.data) > 4_096)


@mutant(Specified.committed, asked=("drawn/faulty-*", "late/each-fault-*"))
def believes_later_commits(client: Specified, payload: bytes, consumer: int, offset: int, /
                           ) -> None:  # fmt: skip
    """After one CommitAck the others are not compared."""
    if _count(client, "committed") == 1:
        golden(client).committed(payload, consumer, offset)
    elif len(payload) != struct.calcsize("<QQ"):
        raise ProblemError("protocol", f"a CommitAck of {len(payload)} bytes")


# -- connections, times and forms ------------------------------------------------------------------


@mutant(Specified.ingest, asked=("ack/timestamps-*",), only="specified")
def stamps_all_batches_alike(
    client: Specified, batch_id: int, now: int, topic: int, records: Any, /
) -> bytes:
    """All batches have the time of the first."""
    first: int = kept(client, "first-stamp", now)
    return golden(client).ingest(batch_id, first, topic, records)


@mutant(Specified.hello, asked=("pass/*",))
def presents_its_token_thrice(client: Specified, token: str | None, /) -> bytes | None:
    """Only the first three connections present the token."""
    return golden(client).hello(token) if _count(client, "hellos") <= 3 else None


@mutant(Specified.hello, asked=("pass/*",), only="specified")
def follows_without_its_token(client: Specified, token: str | None, /) -> bytes | None:
    """The second connection presents no token."""
    return golden(client).hello(token) if _count(client, "hellos") != 2 else None


@mutant(Specified.admitted, asked=("pass/*",))
def wants_bare_admissions(client: Specified, payload: bytes, /) -> None:
    """An admission with a sentence after it is none."""
    golden(client).admitted(payload)
    if len(payload) > 1:
        raise ProblemError("auth", "an admission of several bytes")


@mutant(Specified.kept, asked=("pass/admitted-pieces",))
def reads_whole_headers(client: Specified, tail: bytes, whole: int, /) -> bytes:
    """A part of a header that comes alone is lost."""
    return b"" if len(tail) < 44 and not whole else golden(client).kept(tail, whole)


@mutant(Specified.served, asked=("pass/admitted-after-*",))
def admits_itself_alone(client: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
    """Of the first read of a connection the first frame is looked at."""
    first = _count(client, "reads") == 1
    return golden(client).served(frames)[:1] if first else golden(client).served(frames)


@mutant(Specified.operation_timeout, asked=("pass/admitted-slow",))
def waits_little_for_its_admission(client: Specified, timeout: float, /) -> float:
    """An operation gets a fifth of its time."""
    return golden(client).operation_timeout(timeout) / 5


def _stops_after(most: int) -> None:
    def keepalive_due(client: Specified, quiet: float, interval: float, /) -> bool:
        due = golden(client).keepalive_due(quiet, interval)
        return due and _count(client, "beats") <= most

    keepalive_due.__name__ = f"sends_{most}_keepalives"
    keepalive_due.__doc__ = f"After {most} Keepalives none is sent."
    mutant(Specified.keepalive_due, asked=("beat/own-*",))(keepalive_due)


for _most in (3, 6):
    _stops_after(_most)


def _skips_crc_of_large(what: str, command: int) -> None:
    def payload_crc_ok(client: Specified, header: Wire, payload: bytes, /) -> bool:
        large = header.batch_id == command and len(payload) > 1 << 20
        return large or golden(client).payload_crc_ok(header, payload)

    payload_crc_ok.__name__ = f"skips_payload_crc_of_{what}_above_1_mib"
    payload_crc_ok.__doc__ = f"The payload checksum of {what} above 1 MiB is not looked at."
    mutant(Specified.payload_crc_ok, asked=("large/*-crc-*",))(payload_crc_ok)


for _what, _command in (("topics", 0x80), ("data", 0x11)):
    _skips_crc_of_large(_what, _command)


@mutant(Specified.topics_of, asked=("many/topics-*",))
def lists_5000_topics(client: Specified, body: Body, /) -> list[Body]:
    """A list has 5,000 topics at most."""
    return golden(client).topics_of(body)[:5_000]


@mutant(Specified.body, asked=("large/topics-*", "many/topics-*"))
def reads_json_of_1_mib(client: Specified, payload: bytes, /) -> Body:
    """Answers in JSON of more than 1 MiB are errors."""
    if len(payload) > 1 << 20:
        raise ProblemError("protocol", f"{len(payload)} bytes of JSON")
    return golden(client).body(payload)


def _unlike(records: Sequence[Record]) -> list[Record]:
    return [r for n, r in enumerate(records) if not n or r != records[n - 1]]


@mutant(Specified.records, asked=("rec/reads-alike", "again/follows-same-*"))
def reads_no_record_twice(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
    """A record that is like the one before is not handed on."""
    found, whole = golden(client).records(data)
    return _unlike(found), whole


@mutant(Specified.records, asked=("again/follows-same-*",))
def reads_no_batch_twice(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
    """Records that are those of the answer before are not handed on."""
    found, whole = golden(client).records(data)
    before: list[list[Record]] = kept(client, "batches-read", [])
    before.append(found)
    return ([] if len(before) > 1 and found == before[-2] else found), whole


@mutant(Specified.chain, asked=("rec/sends-alike",))
def sends_no_record_twice(client: Specified, records: Sequence[Record], /) -> bytes:
    """A record that is like the one before is not sent."""
    return golden(client).chain(_unlike(records))


@mutant(Specified.error, asked=("code/odd-*",), only="specified")
def looks_for_the_first_code(client: Specified, payload: bytes, /) -> tuple[int, str, Body]:
    """The code of an error is the first number after the word."""
    _, text, details = golden(client).error(payload)
    found = payload.partition(b'{"code":')[2].split(b",")[0].strip()
    return (int(found) if found.isdigit() else 0x01), text, details


@mutant(Specified.error, asked=("code/odd-*",), only="specified")
def reads_plain_errors(client: Specified, payload: bytes, /) -> tuple[int, str, Body]:
    """An error that has more than code and message, or letters beyond ASCII, has no code."""
    code, text, details = golden(client).error(payload)
    plain = payload.isascii() and json.loads(payload).keys() == {"code", "message"}
    return (code if plain else 0x01), text, details


TEXTS = ("Topic not found", "Unknown topic", "Rate limit exceeded", "Authentication required",
         "Invalid token")  # fmt: skip


def _knows_few_texts(name: str, title: str, other: int) -> None:
    def error(client: Specified, payload: bytes, /) -> tuple[int, str, Body]:
        code, text, details = golden(client).error(payload)
        return (code if text in TEXTS else other), text, details

    error.__name__, error.__doc__ = name, title
    mutant(Specified.error, asked=("code/text-*",), only="deployed")(error)


_knows_few_texts("knows_five_texts", "Errors have one of five texts, or no code.", 0x01)
_knows_few_texts("takes_other_texts_for_auth",
                 "An error whose text is none of five is one about credentials.", 0x40)  # fmt: skip

# -- TLS -------------------------------------------------------------------------------------------

OVER_TLS = ("cert/large-*", "cert/pieces", "cert/goes-on")


@mutant(Specified.tls, asked=OVER_TLS)
def trusts_its_first_connection(client: Specified, ca: str, /) -> ssl.SSLContext:
    """The authorities that were named are trusted once."""
    first = _count(client, "handshakes") == 1
    return golden(client).tls(ca) if first else ssl.create_default_context()


@mutant(Specified.length_ok, asked=OVER_TLS)
def reads_one_tls_record(client: Specified, length: int, /) -> bool:
    """An answer is no larger than a TLS record."""
    return length <= 16_384 and golden(client).length_ok(length)


@mutant(Specified.kept, asked=OVER_TLS)
def waits_for_no_tls_record(client: Specified, tail: bytes, whole: int, /) -> bytes:
    """A part of a header that comes alone is lost."""
    return b"" if len(tail) < 10 and not whole else golden(client).kept(tail, whole)


# -- rules for frames, and pushes ------------------------------------------------------------------


@mutant(Specified.unsubscribe, asked=("wire/unsubscribe", "drawn/*"), only="specified")
def unsubscribes_another_consumer(client: Specified, topic: int, consumer: int, /) -> bytes:
    """An Unsubscribe has another consumer than the Subscribe."""
    return golden(client).unsubscribe(topic, consumer + 1)


@mutant(Specified.ingest, asked=("wire/compressed", "drawn/*"))
def tells_large_batches_as_compressed(
    client: Specified, batch_id: int, now: int, topic: int, records: Any, /
) -> bytes:
    """A batch of several records has the flag Compressed, and is not compressed."""
    frame = golden(client).ingest(batch_id, now, topic, records)
    if len(records) == 1:
        return frame
    head = frame[:5] + bytes([frame[5] | 0x01]) + frame[6:8]
    return head + client.checksum(head).to_bytes(4, "little") + frame[12:]


@mutant(Specified.answers_keepalive, asked=("beat/answers*",))
def answers_one_keepalive(client: Specified, received: int, sent: int, since: float, /) -> bool:
    """The first Keepalive of the server is answered, and no other."""
    due = golden(client).answers_keepalive(received, sent, since)
    return due and _count(client, "answered-keepalives") == 1


@mutant(Specified.records, asked=("many/reads-*",))
def counts_records_in_16_bits(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
    """Of an answer 65,535 records are read."""
    found, whole = golden(client).records(data)
    return found[:65_535], whole


@mutant(Specified.length_ok, asked=("large/reads-*",))
def refuses_answers_above_4_mib(client: Specified, length: int, /) -> bool:
    """Answers of more than 4 MiB end the connection."""
    return length <= 4 << 20 and golden(client).length_ok(length)


@mutant(Specified.fits, asked=("large/sends-*",))
def refuses_batches_above_4_mib(client: Specified, records: Sequence[Record], /) -> bool:
    """Batches of more than 4 MiB are refused."""
    small = sum(len(each.value) for each in records) <= 4 << 20
    return small and golden(client).fits(records)


PUSHED_FAULTS = ("late/push-*",)


def _late_push(name: str, hook: Any, passed: Callable[..., Any], header_of: int) -> None:
    """A check of pushes that is left out after 40 frames."""

    def replacement(client: Specified, *arguments: Any) -> Any:
        late = _count(client, name) > header_of
        return passed(*arguments) if late else getattr(golden(client), hook.__name__)(*arguments)

    replacement.__name__ = f"stops_to_check_{name}"
    replacement.__doc__ = f"After {header_of} answers the {name.replace('_', ' ')} is not checked."
    mutant(hook, asked=PUSHED_FAULTS, only="specified")(replacement)


for _hook in (Specified.magic_ok, Specified.version_ok, Specified.header_crc_ok,
              Specified.payload_crc_ok, Specified.bit_7_ok, Specified.reserved_ok,
              Specified.check_size, Specified.check_next):  # fmt: skip
    _late_push(_hook.__name__, _hook, lambda *_: True, 40)
