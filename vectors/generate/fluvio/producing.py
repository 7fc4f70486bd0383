"""Examples of Fluvio's Produce and its answer."""

from typing import Any

from generate.codec.nested import Struct
from generate.composed import Example
from generate.fluvio import calls
from generate.fluvio.examples import EVICTED, INVOKED, K1, MAX31, MAX32, NONE, batch, ex, record

PRODUCE: dict[str, Any] = {"transactional_id": None, "isolation": 1, "timeout_ms": 1500}
APPENDED: dict[str, Any] = {"partition": 0, "outcome": NONE, "base_offset": 7}
TWICE = [
    {"partition": 0, "records": {"batches": [batch(K1)]}},
    {"partition": 0, "records": {"batches": [batch(record(b"v"))]}},
]
HELLO = [{"name": "hello", "partitions": TWICE[:1]}]
PRODUCING: tuple[tuple[Struct, tuple[Example, ...]], ...] = (
    (
        calls.PRODUCE_PARTITION,
        (
            ex("one", "One batch.", **TWICE[0]),
            ex("none", "No batch.", partition=MAX32, records={"batches": []}),
        ),
    ),
    (
        calls.PRODUCE_TOPIC,
        (
            ex("one", "One partition.", **HELLO[0]),
            ex("flush", "No partition, as a flush sends it.", name="hello", partitions=[]),
            ex("twice", "Two entries for one partition.", name="hello", partitions=TWICE),
        ),
    ),
    (
        calls.PRODUCE,
        (
            ex("one", "One batch.", 24, (7, 25)[:1], **PRODUCE, topics=HELLO, smartmodules=[]),
            ex(
                "committed",
                "To be answered when committed.",
                24,
                **PRODUCE | {"isolation": -1},
                topics=HELLO,
                smartmodules=[],
            ),
            ex(
                "flush",
                "A flush: a topic without partitions.",
                24,
                **PRODUCE,
                topics=[{"name": "hello", "partitions": []}],
                smartmodules=[],
            ),
            ex(
                "version-0",
                "The first version; the transaction is written all the same.",
                0,
                (8,),
                **PRODUCE,
                topics=HELLO,
            ),
            ex(
                "version-7",
                "The last version without SmartModules.",
                7,
                (8,),
                **PRODUCE,
                topics=HELLO,
            ),
            ex(
                "version-8",
                "The first with them.",
                8,
                (7,),
                **PRODUCE,
                topics=HELLO,
                smartmodules=[],
            ),
            ex(
                "module",
                "A SmartModule.",
                25,
                **PRODUCE,
                topics=[],
                smartmodules=[{**INVOKED, "lookback": None, "name": None}],
            ),
            ex(
                "transaction",
                "A transaction, which no program sends.",
                24,
                **PRODUCE | {"transactional_id": "tx"},
                topics=[],
                smartmodules=[],
            ),
            ex(
                "longest-wait",
                "The longest time.",
                24,
                **PRODUCE | {"timeout_ms": MAX31},
                topics=[],
                smartmodules=[],
            ),
        ),
    ),
    (
        calls.APPENDED,
        (
            ex(
                "latest",
                "All fields.",
                24,
                (4, 1),
                **APPENDED,
                log_append_time_ms=-1,
                log_start_offset=0,
            ),
            ex("version-4", "No start of the log.", 4, (5, 1), **APPENDED, log_append_time_ms=-1),
            ex("version-1", "No time either.", 1, (2,), **APPENDED),
            ex(
                "evicted",
                "An error with fields.",
                24,
                **APPENDED | {"outcome": EVICTED},
                log_append_time_ms=0,
                log_start_offset=3,
            ),
        ),
    ),
    (
        calls.TOPIC_APPENDED,
        (
            ex(
                "one",
                "One entry.",
                24,
                name="hello",
                partitions=[APPENDED | {"log_append_time_ms": -1, "log_start_offset": 0}],
            ),
            ex("none", "No entry, after a flush.", 24, name="hello", partitions=[]),
        ),
    ),
    (
        calls.PRODUCED,
        (
            ex(
                "one",
                "One topic.",
                24,
                (0,),
                topics=[{"name": "hello", "partitions": []}],
                throttle_time_ms=0,
            ),
            ex("version-0", "Before throttling.", 0, (1,), topics=[]),
            ex("throttled", "Held back.", 1, topics=[], throttle_time_ms=MAX31),
        ),
    ),
)
"""Produce and its answer."""
