"""Fluvio's own types, its errors, records and SmartModules, written down a second time (FLV-01)."""

from generate.codec.cursor import Shape
from generate.codec.nested import Choice, Field, Filled, Many, Maybe, Nested, Seal, Sized, Struct
from generate.codec.shapes import (
    I8,
    I16,
    I32,
    I64,
    REST,
    U8,
    U16,
    U32,
    U64,
    ZIGZAG,
    Blob,
    Const,
    Length,
    Measured,
)

STRING, BYTES, KEY = Blob(I16, text=True), Blob(I32), Blob(ZIGZAG)
OPTION = Maybe(STRING)
TOPIC, PARTITION = Field("topic", STRING), Field("partition", U32)
NAME, TEXT = Field("name", STRING), Field("text", STRING)
STREAM, OFFSET = Field("stream_id", U32), Field("offset", I64)


def vec(struct: Struct) -> Many:
    """Return a list of messages, counted in 32 bits."""
    return Many(I32, Nested(struct))


def mapping(struct: Struct) -> Many:
    """Return the entries of a map, counted in 16 bits."""
    return Many(U16, Nested(struct))


def message(name: str, *fields: Field) -> Struct:
    """Return a message."""
    return Struct(name, fields)


def f(name: str, shape: Shape, since: int = 0, until: int = 2**15) -> Field:
    """Return a field."""
    return Field(name, shape, since, until)


FRAME = message("Frame", f("body", Sized(I32, REST)))
REQUEST = message(
    "Request",
    f("api_key", U16),
    f("api_version", I16),
    f("correlation_id", I32),
    f("client_id", STRING),
    f("body", REST),
)
RESPONSE = message("Response", f("correlation_id", I32), f("body", REST))
ASK_VERSIONS = message(
    "ApiVersionsRequest",
    f("client_version", STRING),
    f("client_os", STRING),
    f("client_arch", STRING),
)
RANGE = message("ApiVersionRange", f("api_key", I16), f("min_version", I16), f("max_version", I16))
VERSIONS = message(
    "ApiVersionsResponse",
    f("error_code", I16),
    f("api_keys", vec(RANGE)),
    f("platform_version", STRING),
)

ERROR_TEXT = message("ErrorText", TEXT)
TIMED_OUT = message("RequestTimedOut", f("timeout_ms", U64), f("kind", U8.but(names=(0,))))
EVICTED = message("OffsetEvicted", OFFSET, f("next_available", I64))
FULL = message("PartitionFull", TOPIC, PARTITION)
MODULE_INVALID = message("SmartModuleInvalid", f("error", STRING), f("name", OPTION))
EXPORTS_INVALID = message("SmartModuleInvalidExports", f("error", STRING), f("kind", STRING))
RUNTIME = message(
    "SmartModuleRuntimeError",
    f("hint", STRING),
    OFFSET,
    f("kind", U8.but(names=range(7))),
    f("record_key", Maybe(KEY)),
    f("record_value", KEY),
)
MEMORY = message("MemoryLimitExceeded", f("requested", U64), f("limit", U64))
SYSTEM_OBJECT = message("SystemObject", f("kind", STRING), NAME)
PLAIN_CODES = (
    *(-1, 0, 1, 6, 10, 13, 56, 60, 61, 73),
    *range(1000, 1005),
    *range(2000, 2009),
    *(3000, 3001, 3002, 3004, 3005, 5000, 5001, 5002, 6000),
    *(7000, 7001, 7002, 8000, 8002, 9000, 10000),
    *range(11001, 11007),
)
"""Errors that carry nothing."""
DETAILS = {
    2: ERROR_TEXT,
    7: TIMED_OUT,
    71: EVICTED,
    72: FULL,
    3003: ERROR_TEXT,
    6001: ERROR_TEXT,
    6002: MODULE_INVALID,
    6003: EXPORTS_INVALID,
    6004: RUNTIME,
    6005: ERROR_TEXT,
    6006: ERROR_TEXT,
    6007: ERROR_TEXT,
    6008: MEMORY,
    8001: ERROR_TEXT,
    8003: ERROR_TEXT,
    10001: ERROR_TEXT,
    12001: SYSTEM_OBJECT,
    12002: SYSTEM_OBJECT,
}
"""Errors that carry fields."""
CODE = f("code", I16.but(names=sorted((*PLAIN_CODES, *DETAILS))))
OUTCOME = message("Outcome", CODE, f("detail", Choice("code", DETAILS)))
RESULT = f("outcome", Nested(OUTCOME))

RECORD = message(
    "Record",
    f("attributes", I8),
    f("timestamp_delta", ZIGZAG),
    f("offset_delta", ZIGZAG),
    f("key", Maybe(KEY)),
    f("value", KEY),
    f("headers", Const(ZIGZAG, 0)),
)
RECORDS = message("Records", f("records", Many(I32, Sized(ZIGZAG, Nested(RECORD)))))
BATCH = Struct(
    "Batch",
    (
        f("base_offset", I64),
        f("batch_len", Length(I32, "records", plus=45)),
        f("partition_leader_epoch", I32),
        f("magic", Const(I8, 2)),
        f("crc", U32),
        f("attributes", I16.but(limits=(0, 15))),
        f("last_offset_delta", I32),
        f("first_timestamp", I64),
        f("max_time_stamp", I64),
        f("producer_id", I64),
        f("producer_epoch", I16),
        f("first_sequence", I32),
        f("records", Measured("batch_len")),
    ),
    Seal("crc", 21, None, "big"),
)
RECORD_SET = message("RecordSet", f("batches", Filled(Nested(BATCH))))
BATCHES = f("records", Sized(I32, Nested(RECORD_SET)))

WASM_NAME, WASM_CODE = message("WasmName", NAME), message("WasmCode", f("code", BYTES))
WASM = message(
    "Wasm",
    f("form", U8.but(names=(0, 1))),
    f("source", Choice("form", {0: WASM_NAME, 1: WASM_CODE})),
)
ACCUMULATOR = message("Accumulator", f("accumulator", BYTES))
JOIN_TOPIC = message("JoinTopic", TOPIC)
JOIN_STREAM = message("JoinStream", TOPIC, f("derived_stream", STRING))
CONTEXT = message(
    "ModuleContext",
    f("form", U8.but(names=range(4))),
    f("content", Choice("form", {1: ACCUMULATOR, 2: JOIN_TOPIC, 3: JOIN_STREAM})),
)
ROLE = message(
    "ModuleRole",
    f("kind", U8.but(names=range(8))),
    f("context", Choice("kind", {3: ACCUMULATOR, 5: JOIN_TOPIC, 6: JOIN_STREAM, 7: CONTEXT})),
)
PARAMETER = message("Parameter", NAME, f("value", STRING))
DURATION = message("Duration", f("seconds", U64), f("nanoseconds", U32))
LOOKBACK = message("Lookback", f("last", U64), f("age", Maybe(Nested(DURATION)), 21))
INVOCATION = message(
    "SmartModuleInvocation",
    f("wasm", Nested(WASM)),
    f("role", Nested(ROLE)),
    f("params", mapping(PARAMETER)),
    f("lookback", Maybe(Nested(LOOKBACK)), 20),
    f("name", OPTION, 25),
)
MODULES = vec(INVOCATION)
