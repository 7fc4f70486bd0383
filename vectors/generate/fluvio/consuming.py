"""Examples of Fluvio's requests that read, and of their answers."""

from typing import Any

from generate.codec.nested import Struct
from generate.composed import Example
from generate.fluvio import calls, common_types
from generate.fluvio.examples import EVICTED, INVOKED, K1, MAX64, NONE, batch, ex

REPLICA = {"topic": "t", "partition": 1}
START = {"start_offset": 3, "last_stable_offset": 9}
STREAM: dict[str, Any] = {
    "topic": "hello",
    "partition": 0,
    "offset": 0,
    "max_bytes": 1_048_890,
    "isolation": 0,
    "smartmodules": [],
}
PIECE: dict[str, Any] = {
    "topic": "hello",
    "stream_id": 0,
    "partition": 0,
    "outcome": NONE,
    "high_watermark": 1,
    "log_start_offset": 0,
    "aborted": None,
    "records": {"batches": [batch(K1)]},
}
WHOLE = common_types.BATCH.encode(batch(K1))
"""A batch as bytes."""
STORED: dict[str, Any] = {
    "consumer_id": "c",
    "topic": "t",
    "partition": 0,
    "offset": 41,
    "modified_time": 1_706_918_400,
}
CONSUMING: tuple[tuple[Struct, tuple[Example, ...]], ...] = (
    (calls.OFFSETS_TOPIC, (ex("two", "Two partitions.", topic="t", partitions=[0, 2**32 - 1]),)),
    (
        calls.ASK_OFFSETS,
        (
            ex("one", "One partition.", 24, (23,), topics=[{"topic": "t", "partitions": [0]}]),
            ex(
                "consumer",
                "The one version with a consumer.",
                23,
                (22, 24),
                topics=[{"topic": "t", "partitions": [0]}],
                consumer_id="c",
            ),
            ex(
                "no-consumer",
                "The same version without one.",
                23,
                (22, 24),
                topics=[],
                consumer_id=None,
            ),
        ),
    ),
    (
        calls.PARTITION_OFFSETS,
        (
            ex(
                "some",
                "From 3 to 9; the error stands before the number.",
                outcome=NONE,
                partition=1,
                **START,
            ),
            ex("error", "An error with fields.", outcome=EVICTED, partition=1, **START),
        ),
    ),
    (
        calls.TOPIC_OFFSETS,
        (
            ex(
                "one",
                "One partition.",
                topic="t",
                partitions=[{"outcome": NONE, "partition": 1, **START}],
            ),
        ),
    ),
    (
        calls.OFFSETS,
        (
            ex("one", "One topic.", topics=[{"topic": "t", "partitions": []}]),
            ex("none", "None.", topics=[]),
        ),
    ),
    (
        calls.STREAM_FETCH,
        (
            ex("start", "From the start.", 24, (22,), **STREAM, consumer_id=None),
            ex("consumer", "For a consumer.", 25, **STREAM | {"isolation": 1}, consumer_id="c"),
            ex("version-22", "The last version without a consumer.", 22, (23,), **STREAM),
            ex("version-19", "The first version here.", 19, **STREAM),
            ex(
                "module",
                "A SmartModule.",
                25,
                **STREAM | {"smartmodules": [{**INVOKED, "lookback": None, "name": None}]},
                consumer_id=None,
            ),
        ),
    ),
    (calls.ABORTED, (ex("one", "One.", producer_id=1, first_offset=2),)),
    (
        calls.STREAM_FETCHED,
        (
            ex("one", "One batch.", 24, (10,), **PIECE, next_filter_offset=-1),
            ex(
                "none",
                "No batch.",
                24,
                **PIECE | {"records": {"batches": []}},
                next_filter_offset=-1,
            ),
            ex(
                "two",
                "Two batches.",
                24,
                **PIECE | {"records": {"batches": [batch(K1)] * 2}},
                next_filter_offset=-1,
            ),
            ex(
                "evicted",
                "An error with fields.",
                24,
                **PIECE | {"outcome": EVICTED, "records": {"batches": []}},
                next_filter_offset=-1,
            ),
            ex(
                "aborted",
                "An aborted transaction.",
                24,
                **PIECE | {"aborted": [{"producer_id": 1, "first_offset": 2}]},
                next_filter_offset=-1,
            ),
            ex("version-10", "Before filters.", 10, (11,), **PIECE | {"records": {"batches": []}}),
        ),
    ),
    (
        calls.STREAM_PIECE,
        (
            ex("none", "No batch.", 24, **PIECE | {"records": b""}, next_filter_offset=-1),
            ex("whole", "One batch.", 24, **PIECE | {"records": WHOLE}, next_filter_offset=-1),
            ex(
                "cut",
                "One batch, and the begin of another: the server cut it at max_bytes.",
                25,
                **PIECE | {"records": WHOLE + WHOLE[:-1]},
                next_filter_offset=-1,
            ),
            ex(
                "head-cut",
                "The begin of a batch, before its length ends.",
                25,
                **PIECE | {"records": WHOLE[:11]},
                next_filter_offset=-1,
            ),
        ),
    ),
    (calls.OFFSET_UPDATE, (ex("one", "One.", offset=1, stream_id=1),)),
    (
        calls.UPDATE,
        (
            ex("one", "One stream.", 0, offsets=[{"offset": 1, "stream_id": 1}]),
            ex("none", "None.", 0, offsets=[]),
        ),
    ),
    (calls.STREAM_OUTCOME, (ex("done", "Done.", stream_id=1, outcome=NONE),)),
    (
        calls.UPDATED,
        (
            ex("one", "One stream.", 0, status=[{"stream_id": 1, "outcome": NONE}]),
            ex(
                "error",
                "An error.",
                0,
                status=[{"stream_id": 1, "outcome": {"code": 3002, "detail": None}}],
            ),
        ),
    ),
    (calls.REPLICA, (ex("one", "One partition.", **REPLICA),)),
    (
        calls.FILTER,
        (
            ex("both", "A partition and a consumer.", replica=REPLICA, consumer_id="c"),
            ex("all", "Everything.", replica=None, consumer_id=None),
        ),
    ),
    (
        calls.ASK_CONSUMERS,
        (
            ex("filter", "Some.", 24, (23,), filter={"replica": REPLICA, "consumer_id": "c"}),
            ex("all", "All.", 24, (23,), filter=None),
            ex("version-23", "All there is to say before filters.", 23, (24,)),
        ),
    ),
    (
        calls.CONSUMER,
        (
            ex("one", "One.", **STORED),
            ex("largest", "The largest time.", **STORED | {"modified_time": MAX64}),
        ),
    ),
    (
        calls.CONSUMERS,
        (
            ex("one", "One.", outcome=NONE, consumers=[STORED]),
            ex(
                "error",
                "Offsets are not kept.",
                consumers=[],
                outcome={"code": 3004, "detail": None},
            ),
        ),
    ),
    (calls.STORE, (ex("one", "One.", offset=41, stream_id=1),)),
    (calls.STORED, (ex("done", "Done.", offset=41, outcome=NONE),)),
    (calls.FORGET, (ex("one", "One.", **REPLICA, consumer_id="c"),)),
    (calls.FORGOTTEN, (ex("done", "Done.", outcome=NONE),)),
)
"""Consuming and stored offsets."""
