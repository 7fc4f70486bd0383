"""What waits at a client that follows: pushes that nobody has asked for, and parts of records."""

from collections.abc import Sequence

from lance_conformance.client.cases.push import END
from lance_conformance.client.cases.registry import SPECIFIED, add_case
from lance_conformance.client.checks import Reads
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import (
    TOPIC,
    commit,
    get_topic,
    list_topics,
    poll,
    send,
    subscribe,
)
from lance_conformance.client.scripted.script import Answer, Close, on
from lance_conformance.wire.frame import HEADER_SIZE
from lance_conformance.wire.tlv import RECORD_HEADER

WAITING = ((17, 10), (129, 10), (1_025, 10), (17, 100_000), (129, 40_000))
"""Pushes that wait, and the bytes of the record of each."""
PARTS = (65_535, 65_536, 65_537, 1 << 20)
"""Bytes of an answer that a client asks for, and that cut records."""
ANSWER_HEADER = HEADER_SIZE + 16


def _value(number: int, size: int) -> bytes:
    """A value that no other record has, unless it has less than six bytes."""
    return (b"%05d:" % number + bytes((number + n) % 251 for n in range(251)) * (size // 251 + 1))[
        :size
    ]


for number, size in WAITING:
    values = tuple(_value(n, size) for n in range(number))
    beside = (list_topics().gives(topics=[TOPIC]), get_topic().gives(**TOPIC), commit(END))
    slug = f"{number}" if size < RECORD_HEADER * 10 else f"{number}-of-{size}"
    add_case(
        f"many/unread-{slug}", "17.8/offset",
        f"{number} pushes of {size} bytes that wait while a client does something else are read "
        "afterwards, in order.",
        ClientCase(
            (list_topics(), subscribe(END, RECORD_HEADER + size), send(*values), *beside * 2,
             send(b"last"), *beside, *(poll(enough=number + 1),) * (number + 1)),
            checks=(Reads((*values, b"last")),), paired=False),
        dialects=SPECIFIED, quick=False, twin_of="many/unread-17",
        weight=2 + number // 512 + number * size // 2_000_000,
    )  # fmt: skip


def _around(part: int) -> tuple[bytes, ...]:
    """Records that are smaller and larger than a part, and end at odd places of it."""
    sizes = (part // 3 + 7, 6, part // 2 - 11, 1_000, part + 1, 6, 2 * part + 3, part - 5, 9_001)
    return tuple(_value(n, size) for n, size in enumerate(sizes))


def _raw(values: Sequence[bytes]) -> tuple[tuple[int, bytes], ...]:
    return tuple((1, value) for value in values)


for part in PARTS:
    values = _around(part)
    polls = (poll(enough=len(values)),) * 2 * len(values)
    weight = 4 if part > 100_000 else 2
    add_case(
        f"large/follows-cut-{part}", "5.9/cut",
        f"Who follows by {part} bytes, which cut records, loses nothing and reads nothing twice.",
        ClientCase((list_topics(), subscribe(0, part), *polls), checks=(Reads(values),),
                   records=_raw(values), cuts=True, paired=False),
        quick=False, weight=weight, twin_of="large/follows-cut-65535",
    )  # fmt: skip
    large = (_value(0, 2 * part + 3), *values[:2])
    lost = 2 * ANSWER_HEADER + part + part // 2
    add_case(
        f"large/follows-lost-{part}", "17.8/resume",
        f"Who follows by {part} bytes and loses the connection inside a record reads it whole.",
        ClientCase(
            (list_topics(), subscribe(0, part), *(poll(len(large)).safe(),) * 2 * len(large)),
            (on("subscribe", Answer(upto=lost + ANSWER_HEADER), Close()),
             on("fetch", Answer(upto=lost - part - ANSWER_HEADER), Close(), nth=2)),
            (Reads(large),), records=_raw(large), cuts=True, paired=False),
        quick=False, weight=weight, twin_of="large/follows-cut-65535",
    )  # fmt: skip
