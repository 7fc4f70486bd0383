"""Values at the edges: names, empty lists, zero limits, cuts, counts, tokens, records that grow."""

import json
import struct
from collections.abc import Mapping

from lance_conformance.client.cases.admin import asks
from lance_conformance.client.cases.misc import ONE as ONE_BATCH
from lance_conformance.client.cases.misc import REFUSED
from lance_conformance.client.cases.reads import ALL, BAD, LOG, ONE, VALUES
from lance_conformance.client.cases.records import goes_out, is_read
from lance_conformance.client.cases.registry import DEPLOYED, SPECIFIED, add_case
from lance_conformance.client.checks import Count, Reads, Sent
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import (
    Op,
    create,
    create_limited,
    encoded,
    fetch,
    get_topic,
    list_topics,
    poll,
    set_retention,
    subscribe,
)
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.client.scripted.script import Answer, Close, on

# -- names and lists -------------------------------------------------------------------------------

FIRST = {"id": 7, "name": "kit-topic"}
NAMES: Mapping[str, tuple[str, str]] = {
    "letters": ("letters beyond ASCII", "z-größe-тема-主题"),
    "emoji": ("a character beyond 16 bits", "z-\N{ROCKET}"),
    "quotes": ("quotes and a backslash", 'z-"a"\\b'),
    "spaces": ("spaces, dots and signs", "z a.b_c-d (e) %20 + & ?"),
    "longest": ("255 bytes in 85 characters", "主" * 85),
}  # fmt: skip
for slug, (words, name) in NAMES.items():
    new = {"id": 8, "name": name}
    add_case(
        f"admin/named-{slug}", "5.3/request", f"A name with {words} goes out and comes back.",
        ClientCase(
            (create(name).gives(**new), get_topic(8).gives(**new),
             list_topics().gives(topics=[FIRST, new])),
            checks=(asks("create", name.encode(), "the name in UTF-8"),), paired=False),
        dialects=SPECIFIED, quick=False, twin_of="admin/named-letters",
    )  # fmt: skip
    raw = json.dumps({"topics": [{**new, "created_at": 1}]}, ensure_ascii=False).encode()
    add_case(
        f"admin/told-{slug}", "5.3/answer", f"A name with {words} is read from UTF-8, too.",
        ClientCase((list_topics().gives(topics=[new]),),
                   (on("list", Answer(payload=raw, good=True)),)),
        dialects=SPECIFIED, quick=False, twin_of="admin/told-letters",
    )  # fmt: skip
add_case(
    "many/topics-0", "5.3/answer", "A list without topics is empty.",
    ClientCase((list_topics().gives(topics=[]),),
               (on("list", Answer(payload=b'{"topics": []}', good=True)),)),
    quick=False,
)  # fmt: skip
WIDE = {"start_offset": 2**63 + 5, "end_offset": 2**64 - 2, "record_count": 2**63 - 1}
add_case(
    "admin/odd-wide-fields", "5.3/lenient", "A TopicResponse with offsets of 64 bits is read.",
    ClientCase((get_topic().gives(**FIRST),), (on("get", Answer(body=WIDE, good=True)),),
               paired=False),
    quick=False,
)  # fmt: skip
add_case(
    "admin/odd-list-fields", "5.3/lenient", "A list whose topics have unknown fields is read.",
    ClientCase((list_topics().gives(topics=[FIRST]),), (on("list", Answer(
        body={"topics": [{**FIRST, "created_at": 1, "owner": None, "tags": [{}]}], "next": 0},
        good=True)),), paired=False),
    quick=False,
)  # fmt: skip

# -- limits of nothing -----------------------------------------------------------------------------


def _limits(op: Op, age: int, size: int) -> Op:
    return Op(op.name, {**op.arguments, "max_age_secs": age, "max_bytes": size})


def _created_without(received: ReceivedFrame) -> str:
    told = received.frame.payload[-16:]
    return f"limits {told.hex()}, must be 0" if any(told) else ""


for name, age, size in (("0", 0, 0), ("no-age", 0, 4096), ("no-size", 60, 0)):
    add_case(
        f"wide/limits-{name}", "5.10/request", f"Limits of {age} seconds and {size} bytes go out.",
        ClientCase((_limits(set_retention(), age, size),),
                   checks=(asks("retention", struct.pack("<IQQ", 7, age, size), "both limits"),),
                   paired=False),
        dialects=SPECIFIED, quick=False,
    )  # fmt: skip
add_case(
    "wide/created-limits-none", "5.11/request", "A topic with limits of 0 has none.",
    ClientCase((_limits(create_limited(), 0, 0),), checks=(
        Sent("create-limited", _created_without, "limits of 0", instead="create"),), paired=False),
    dialects=SPECIFIED, quick=False,
)  # fmt: skip

# -- records ---------------------------------------------------------------------------------------

EMPTIES = ((1, b""), (1, b"a"), (1, b""), (0x80, b""), (1, b"b"), (1, b""))
add_case(
    "rec/sends-empties", "8.1/record", "Records without a value go out among others.",
    goes_out(*EMPTIES), quick=False, twin_of="rec/sends-empty",
)  # fmt: skip
add_case(
    "rec/reads-empties", "17.2/decoder", "Records without a value are read among others.",
    is_read(EMPTIES), quick=False,
)  # fmt: skip
for extra in (2, 4, 5, 6, ONE - 1):
    cut = Answer(data=LOG[: 2 * ONE + extra], fetched={"count": 2}, good=True)
    add_case(
        f"read/cut-after-{extra}", "5.9/cut",
        f"Data that is cut {extra} bytes into a record gives the whole records before.",
        ClientCase((fetch().gives(records=ALL[:2], next_offset=2 * ONE),), (on("fetch", cut),)),
        quick=False, twin_of="read/cut-in-value",
    )  # fmt: skip
for torn in (1, 4, 9):
    add_case(
        f"read/torn-{torn}", "5.9/cut",
        f"When each answer has {torn} bytes of a next record, nothing is lost and nothing twice.",
        ClientCase((subscribe(), *(poll(enough=len(VALUES)),) * len(VALUES)),
                   checks=(Reads(VALUES),), torn=torn, paired=False),
        dialects=DEPLOYED, quick=False, weight=2, twin_of="read/torn-1",
    )  # fmt: skip
for name, words, count in (("more", "one record more", 6), ("4g", "2^32 - 1 records", 2**32 - 1)):
    add_case(
        f"read/count-{name}", "17.5/invalid-fetch",
        f"A FetchResponse that announces {words} than it has ends no client.",
        ClientCase((fetch().safe(*BAD), list_topics()),
                   (on("fetch", Answer(fetched={"count": count}, good=True)),)),
        quick=False,
    )  # fmt: skip
for size in (5_000, 70_000, 1_300_000):
    value = bytes(n % 251 for n in range(size))
    add_case(
        f"large/grows-{size}", "5.9/large",
        f"A record of {size} bytes is fetched all the same by who asked for 64.",
        ClientCase((fetch(0, 64).gives(records=[{"type": 1, "value": encoded(value)}]),),
                   records=((1, value),), paired=False),
        quick=False, weight=4 if size > 1 << 20 else 1, twin_of="read/large-record",
    )  # fmt: skip

# -- tokens ----------------------------------------------------------------------------------------

ADMITTED = on("auth", Answer(payload=b"\x01", good=True), nth=0)
TOKENS = {"of-1": "t", "of-129": "t" * 129, "of-300": "t" * 300, "letters": "kit-größe"}


def _presents(token: str) -> Sent:
    def holds(received: ReceivedFrame) -> str:
        size = len(received.frame.payload)
        return "" if received.frame.payload == token.encode() else f"{size} other bytes"

    return Sent("auth", holds, "the token's bytes")


for slug, token in TOKENS.items():
    add_case(
        f"pass/token-{slug}", "5.2/token-payload",
        f"A token of {len(token.encode())} bytes is presented whole.",
        ClientCase((ONE_BATCH,), (ADMITTED,), (_presents(token),), options={"token": token},
                   paired=False),
        quick=False, twin_of="pass/payload",
    )  # fmt: skip
add_case(
    "pass/refused-later", "12.4/auth", "A token that a later connection refuses is told as auth.",
    ClientCase(
        (ONE_BATCH, list_topics().safe(), list_topics().fails("auth")),
        (on("ingest", Answer(), Close()), on("auth", Answer()), on("auth", REFUSED, nth=0)),
        options={"token": "kit-token-9f"}),
    quick=False,
)  # fmt: skip
add_case(
    "pass/refused-bare", "5.2/token-payload", "An AuthenticateResponse of 0 lets nobody in.",
    ClientCase((ONE_BATCH.fails(),), (on("auth", Answer(payload=b"\0"), nth=0),),
               (Count("ingest", 0, 0),), options={"token": "kit-token-9f"}),
    quick=False,
)  # fmt: skip
