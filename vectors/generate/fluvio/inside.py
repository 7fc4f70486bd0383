"""Examples of what stands inside Fluvio's requests: headers, errors, records, SmartModules."""

from generate.codec.nested import Struct
from generate.composed import Example
from generate.fluvio import common_types
from generate.fluvio.examples import INVOKED, K1, MAX31, MAX32, MAX63, MAX64, batch, ex, record

DELTAS = (0, -1, 1, 63, -64, 64, -65, 8191, 8192, 2**20, MAX31, -(2**31), MAX63, -MAX63 - 1)
"""Times between records, where the number of groups changes and where it is largest."""
ERRORS = (
    *(
    ex(f"code-{'minus-' if code < 0 else ''}{abs(code)}", f"Error {code}, which carries nothing.",
       code=code, detail=None)
    for code in sorted(common_types.PLAIN_CODES)
    ),
    ex("other", "A text that reaches the user.", code=2, detail={"text": "größer"}),
    ex("timed-out", "A time.", code=7, detail={"timeout_ms": 1500, "kind": 0}),
    ex("evicted", "Two offsets.", code=71, detail={"offset": 3, "next_available": 9}),
    ex("full", "A partition.", code=72, detail={"topic": "t", "partition": 2}),
    ex("flush", "A text.", code=3003, detail={"text": "disk"}),
    ex("no-module", "A name.", code=6001, detail={"text": "filter"}),
    ex("invalid-module", "A text and a name.", code=6002, detail={"error": "e", "name": "n"}),
    ex("nameless-module", "A text alone.", code=6002, detail={"error": "e", "name": None}),
    ex("other-kind", "Two texts.", code=6003, detail={"error": "e", "kind": "map"}),
    ex("runtime", "A record that a module failed on.", code=6004,
       detail={"hint": "h", "offset": 9, "kind": 2, "record_key": b"k", "record_value": b"v"}),
    ex("chain", "A text.", code=6005, detail={"text": "init"}),
    ex("memory", "Two sizes.", code=6008, detail={"requested": MAX64, "limit": 2**30}),
    ex("no-stream", "A name.", code=8001, detail={"text": "s"}),
    ex("invalid-stream", "A name.", code=8003, detail={"text": "s"}),
    ex("deduplication", "A name.", code=10001, detail={"text": "d"}),
    ex("init", "A text.", code=6006, detail={"text": "hint"}),
    ex("lookback", "A text.", code=6007, detail={"text": "l"}),
    ex("system-deletion", "An object.", code=12001, detail={"kind": "Topic", "name": "t"}),
    ex("system-update", "An object.", code=12002, detail={"kind": "Topic", "name": "t"}),
)  # fmt: skip
"""Every error; the last ones carry fields."""

INNER: tuple[tuple[Struct, tuple[Example, ...]], ...] = (
    (
        common_types.FRAME,
        (ex("empty", "Nothing inside.", body=b""), ex("one", "A byte.", body=b"\x01")),
    ),
    (
        common_types.REQUEST,
        (
            ex(
                "produce",
                "A header and some bytes.",
                api_key=0,
                api_version=24,
                correlation_id=1,
                client_id="fluvio",
                body=b"\x00",
            ),
            ex(
                "largest",
                "The largest numbers.",
                api_key=2**16 - 1,
                api_version=2**15 - 1,
                correlation_id=MAX31,
                client_id="",
                body=b"",
            ),
        ),
    ),
    (
        common_types.RESPONSE,
        (ex("one", "A header and some bytes.", correlation_id=1, body=b"\x00"),),
    ),
    (
        common_types.ASK_VERSIONS,
        (
            ex(
                "linux",
                "A client on Linux.",
                2,
                client_version="0.15.2",
                client_os="linux",
                client_arch="x86_64",
            ),
        ),
    ),
    (
        common_types.RANGE,
        (ex("produce", "Produce, in all versions.", api_key=0, min_version=0, max_version=25),),
    ),
    (
        common_types.VERSIONS,
        (
            ex(
                "one",
                "One request.",
                2,
                error_code=0,
                platform_version="0.17.3",
                api_keys=[{"api_key": 0, "min_version": 0, "max_version": 25}],
            ),
            ex("none", "No request.", 2, error_code=0, api_keys=[], platform_version="0.9.0"),
        ),
    ),
    (
        common_types.ERROR_TEXT,
        (ex("text", "A text.", text="größer"), ex("empty", "No text.", text="")),
    ),
    (common_types.TIMED_OUT, (ex("produce", "A Produce.", timeout_ms=1500, kind=0),)),
    (common_types.EVICTED, (ex("offsets", "Two offsets.", offset=-1, next_available=MAX63),)),
    (common_types.FULL, (ex("partition", "A partition.", topic="t", partition=MAX32),)),
    (
        common_types.MODULE_INVALID,
        (
            ex("named", "With a name.", error="e", name="n"),
            ex("nameless", "Without.", error="e", name=None),
        ),
    ),
    (common_types.EXPORTS_INVALID, (ex("map", "Two texts.", error="e", kind="map"),)),
    (
        common_types.RUNTIME,
        (
            ex(
                "keyed",
                "A record with a key.",
                hint="h",
                offset=9,
                kind=6,
                record_key=b"k",
                record_value=b"v",
            ),
            ex(
                "keyless",
                "A record without one.",
                hint="",
                offset=0,
                kind=0,
                record_key=None,
                record_value=b"",
            ),
        ),
    ),
    (common_types.MEMORY, (ex("sizes", "Two sizes.", requested=MAX64, limit=1),)),
    (common_types.SYSTEM_OBJECT, (ex("topic", "A topic.", kind="Topic", name="t"),)),
    (common_types.OUTCOME, ERRORS),
    (
        common_types.RECORD,
        (
            ex("keyed", "A key and a value.", **K1),
            ex("keyless", "No key, which is not an empty one.", **record(b"v")),
            ex("empty-key", "An empty key.", **record(b"v", key=b"")),
            ex("empty", "Nothing at all.", **record(b"")),
            ex(
                "attributes",
                "Attributes, though none is defined.",
                **record(b"v") | {"attributes": -128},
            ),
            *(
                ex(
                    f"delta-{'minus-' if each < 0 else ''}{abs(each)}",
                    f"{each} ms after the first.",
                    **record(b"", delta=each),
                )
                for each in DELTAS
            ),
            ex("value-of-63", "The longest value whose length is one byte.", **record(b"v" * 63)),
            ex("value-of-64", "One more.", **record(b"v" * 64)),
        ),
    ),
    (
        common_types.RECORDS,
        (
            ex("two", "Two records.", records=[K1, record(b"second", at=1, delta=5)]),
            ex("none", "No record.", records=[]),
            ex("long", "A record whose length needs two bytes.", records=[record(b"v" * 100)]),
        ),
    ),
    (
        common_types.BATCH,
        (
            ex("one", "One record, as producers write it.", **batch(K1)),
            ex(
                "two",
                "Two records; the offset is that of the last, as producers write it.",
                **batch(K1, record(b"b", at=1)) | {"base_offset": 1},
            ),
            ex("empty", "No record, only a count of 0.", **batch()),
            ex("no-bytes", "No bytes of records.", **batch(content=b"")),
            *(
                ex(
                    f"attributes-{each}",
                    "Its records are some compressed bytes.",
                    **batch(K1, attributes=each, content=b"\x00\x01"),
                )
                for each in (1, 2, 3, 4, 8, 15)
            ),
            ex(
                "moved",
                "An offset that the server has set; the checksum does not cover it.",
                **batch(K1) | {"base_offset": 2**40, "partition_leader_epoch": 7},
            ),
            ex(
                "largest",
                "The largest numbers.",
                **batch(K1)
                | {
                    "base_offset": MAX63,
                    "last_offset_delta": MAX31,
                    "first_timestamp": MAX63,
                    "max_time_stamp": MAX63,
                    "producer_id": MAX63,
                    "producer_epoch": 2**15 - 1,
                    "first_sequence": MAX31,
                },
            ),
        ),
    ),
    (
        common_types.RECORD_SET,
        (
            ex("two", "Two batches.", batches=[batch(K1), batch(record(b"v"))]),
            ex("none", "No batch.", batches=[]),
        ),
    ),
    (common_types.WASM_NAME, (ex("filter", "A name.", name="filter"),)),
    (common_types.WASM_CODE, (ex("bytes", "Some code.", code=b"\x1f\x8b"),)),
    (
        common_types.WASM,
        (
            ex("name", "A name.", form=0, source={"name": "filter"}),
            ex("code", "Some code.", form=1, source={"code": b"\x1f\x8b"}),
        ),
    ),
    (common_types.ACCUMULATOR, (ex("bytes", "Some bytes.", accumulator=b"0"),)),
    (common_types.JOIN_TOPIC, (ex("topic", "A topic.", topic="t"),)),
    (
        common_types.JOIN_STREAM,
        (ex("stream", "A topic and a stream.", topic="t", derived_stream="s"),),
    ),
    (
        common_types.CONTEXT,
        (
            ex("aggregate", "A value to start from.", form=1, content={"accumulator": b"0"}),
            ex("none", "Nothing.", form=0, content=None),
            ex("join", "A topic.", form=2, content={"topic": "t"}),
            ex(
                "stream",
                "A topic and a stream.",
                form=3,
                content={"topic": "t", "derived_stream": "s"},
            ),
        ),
    ),
    (
        common_types.ROLE,
        (
            *(
                ex(f"kind-{each}", "A role that is given nothing.", kind=each, context=None)
                for each in (0, 1, 2, 4)
            ),
            ex("aggregate", "A value to start from.", kind=3, context={"accumulator": b"0"}),
            ex("join", "A topic.", kind=5, context={"topic": "t"}),
            ex(
                "stream",
                "A topic and a stream.",
                kind=6,
                context={"topic": "t", "derived_stream": "s"},
            ),
            ex("generic", "A context.", kind=7, context={"form": 0, "content": None}),
        ),
    ),
    (common_types.PARAMETER, (ex("key", "A name and a value.", name="key", value="größe"),)),
    (
        common_types.DURATION,
        (ex("minute", "A minute and a bit.", seconds=60, nanoseconds=10**9 - 1),),
    ),
    (
        common_types.LOOKBACK,
        (
            ex("aged", "With an age.", 21, last=10, age={"seconds": 60, "nanoseconds": 0}),
            ex("ageless", "Without.", 21, (20,), last=10, age=None),
            ex("before-ages", "Before there were ages.", 20, (21,), last=10),
        ),
    ),
    (
        common_types.INVOCATION,
        (
            ex(
                "latest",
                "With everything.",
                25,
                **INVOKED,
                lookback={"last": 10, "age": {"seconds": 60, "nanoseconds": 0}},
                name="mine",
            ),
            ex("nameless", "Before names.", 24, (25,), **INVOKED, lookback=None),
            ex("before-lookback", "Before lookback.", 19, (20, 25), **INVOKED),
        ),
    ),
)
"""What stands inside requests and answers."""
