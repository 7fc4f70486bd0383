"""Produce, key 0 of the SPU, with the SmartModules that a request can name."""

from enum import IntEnum

from construct import Int8ub, Int16sb, Int32sb, Int32ub, Int64sb, Int64ub

from lance_spec.grammar._composed import Choice, Maybe, Nested, Sized
from lance_spec.grammar._vocab import field, message
from lance_spec.grammar.fluvio._primitives import (
    BYTES,
    CORRECTED,
    OPTION_STRING,
    STRING,
    corrected,
    corrected_message,
    fluvio,
    mapping,
    vec,
)
from lance_spec.grammar.fluvio.errors import OUTCOME
from lance_spec.grammar.fluvio.records import RECORD_SET


class WasmForm(IntEnum):
    """Where the code of a SmartModule comes from."""

    PREDEFINED = 0
    """The cluster has it under a name."""
    AD_HOC = 1
    """It comes with the request."""


class ModuleKind(IntEnum):
    """What a SmartModule does with records."""

    FILTER = 0
    """Keeps or drops records."""
    MAP = 1
    """Turns each record into another."""
    ARRAY_MAP = 2
    """Turns each record into several."""
    AGGREGATE = 3
    """Adds records up."""
    FILTER_MAP = 4
    """Turns each record into another or drops it."""
    JOIN = 5
    """Joins with another topic."""
    JOIN_STREAM = 6
    """Joins with a derived stream."""
    GENERIC = 7
    """Its code says what it does."""


class ContextForm(IntEnum):
    """What a generic SmartModule is given beside records."""

    NONE = 0
    """Nothing."""
    AGGREGATE = 1
    """A value to start from."""
    JOIN = 2
    """A topic to join with."""
    JOIN_STREAM = 3
    """A derived stream to join with."""


WASM_NAME = corrected_message(
    "WasmName",
    corrected("name", STRING, "Name of a SmartModule that the cluster knows"),
    doc="Names a SmartModule",
)
WASM_CODE = corrected_message(
    "WasmCode",
    corrected("code", BYTES, "The module's code, compressed with gzip"),
    doc="Brings a SmartModule along",
)
WASM = corrected_message(
    "Wasm",
    corrected("form", Int8ub, "Where the code comes from", enum=WasmForm, closed=True),
    corrected(
        "source",
        Choice("form", {WasmForm.PREDEFINED: WASM_NAME, WasmForm.AD_HOC: WASM_CODE}),
        "The name or the code",
    ),
    doc="The code of a SmartModule",
)
ACCUMULATOR = corrected_message(
    "Accumulator",
    corrected("accumulator", BYTES, "The value to start from"),
    doc="What an aggregate starts from",
)
JOIN_TOPIC = corrected_message(
    "JoinTopic",
    corrected("topic", STRING, "Topic to join with"),
    doc="What a join needs",
)
JOIN_STREAM = corrected_message(
    "JoinStream",
    corrected("topic", STRING, "Topic to join with"),
    corrected("derived_stream", STRING, "Stream derived from it"),
    doc="What a join with a derived stream needs",
)
MODULE_CONTEXT = corrected_message(
    "ModuleContext",
    corrected("form", Int8ub, "What is given", enum=ContextForm, closed=True),
    corrected(
        "content",
        Choice(
            "form",
            {
                ContextForm.AGGREGATE: ACCUMULATOR,
                ContextForm.JOIN: JOIN_TOPIC,
                ContextForm.JOIN_STREAM: JOIN_STREAM,
            },
        ),
        "It",
    ),
    doc="What a generic SmartModule is given",
)
MODULE_ROLE = corrected_message(
    "ModuleRole",
    corrected("kind", Int8ub, "What it does with records", enum=ModuleKind, closed=True),
    corrected(
        "context",
        Choice(
            "kind",
            {
                ModuleKind.AGGREGATE: ACCUMULATOR,
                ModuleKind.JOIN: JOIN_TOPIC,
                ModuleKind.JOIN_STREAM: JOIN_STREAM,
                ModuleKind.GENERIC: MODULE_CONTEXT,
            },
        ),
        "What it is given",
    ),
    doc="What a SmartModule is there for",
)
PARAMETER = corrected_message(
    "Parameter",
    corrected("name", STRING, "Name of the parameter"),
    corrected("value", STRING, "Its value"),
    doc="A parameter of a SmartModule",
)
DURATION = corrected_message(
    "Duration",
    corrected("seconds", Int64ub, "Whole seconds", unit="seconds"),
    corrected("nanoseconds", Int32ub, "The rest of a second", unit="nanoseconds"),
    doc="A length of time",
)
LOOKBACK = corrected_message(
    "Lookback",
    corrected("last", Int64ub, "How many records", unit="records"),
    corrected("age", Maybe(Nested(DURATION)), "How old they may be", since=21),
    doc="Which earlier records a SmartModule sees first",
)
SMART_MODULE_INVOCATION = corrected_message(
    "SmartModuleInvocation",
    corrected("wasm", Nested(WASM), "Its code"),
    corrected("role", Nested(MODULE_ROLE), "What it is there for"),
    corrected("params", mapping(PARAMETER), "Its parameters"),
    corrected("lookback", Maybe(Nested(LOOKBACK)), "Earlier records it sees", since=20),
    corrected("name", OPTION_STRING, "Its name in messages to people", since=25),
    doc="A SmartModule to run over records",
)

_TOPIC = fluvio("TopicProduceData Structure")
_PARTITION = fluvio("PartitionProduceData Structure")
_REQUEST = fluvio("ProduceRequest Structure")
_RESPONSE = fluvio("ProduceResponse Structure")

PRODUCE_PARTITION = message(
    "ProducePartition",
    field(
        "partition",
        Int32ub,
        doc="Number of the partition",
        section=_PARTITION,
        ambiguities=CORRECTED,
    ),
    field(
        "records",
        Sized(Int32sb, Nested(RECORD_SET)),
        doc="Its batches, after their length in bytes",
        section=_PARTITION,
        ambiguities=CORRECTED,
    ),
    doc="Batches for one partition; a partition may occur more than once",
    section=_PARTITION,
    ambiguities=CORRECTED,
)
PRODUCE_TOPIC = message(
    "ProduceTopic",
    field("name", STRING, doc="Name of the topic", section=_TOPIC),
    field("partitions", vec(PRODUCE_PARTITION), doc="What is to be appended", section=_TOPIC),
    doc="Batches for one topic; a flush sends none",
    section=_TOPIC,
)
PRODUCE_REQUEST = message(
    "ProduceRequest",
    field(
        "transactional_id",
        OPTION_STRING,
        doc="Clients send none; it is written in every version",
        section=_REQUEST,
        ambiguities=CORRECTED,
    ),
    field(
        "isolation",
        Int16sb,
        doc="When to answer: negative when committed, otherwise when the leader has written",
        section=_REQUEST,
        ambiguities=CORRECTED,
    ),
    field(
        "timeout_ms",
        Int32sb,
        doc="How long the server may wait",
        unit="milliseconds",
        section=_REQUEST,
        minimum=0,
        maximum=2**31 - 1,
        ambiguities=CORRECTED,
    ),
    field("topics", vec(PRODUCE_TOPIC), doc="What is to be appended", section=_REQUEST),
    field(
        "smartmodules",
        vec(SMART_MODULE_INVOCATION),
        doc="SmartModules to run over the records first",
        section=_REQUEST,
        since=8,
        absent=[],
        ambiguities=CORRECTED,
    ),
    doc="Appends batches; key 0 of the SPU",
    section=_REQUEST,
    ambiguities=CORRECTED,
)
PARTITION_APPENDED = message(
    "PartitionAppended",
    field("partition", Int32ub, doc="Number of the partition", section=_RESPONSE),
    field(
        "outcome",
        Nested(OUTCOME),
        doc="Whether it was appended",
        section=_RESPONSE,
        ambiguities=CORRECTED,
    ),
    field(
        "base_offset", Int64sb, doc="Offset of the first record", unit="records", section=_RESPONSE
    ),
    field(
        "log_append_time_ms",
        Int64sb,
        doc="Time of appending; programs write 0 or -1",
        unit="milliseconds",
        section=_RESPONSE,
        since=2,
        absent=-1,
    ),
    field(
        "log_start_offset",
        Int64sb,
        doc="Lowest offset of the partition; programs write 0",
        unit="records",
        section=_RESPONSE,
        since=5,
        absent=0,
    ),
    doc="Answers for one entry of the request, in the order of the request",
    section=_RESPONSE,
)
TOPIC_APPENDED = message(
    "TopicAppended",
    field("name", STRING, doc="Name of the topic", section=_RESPONSE),
    field("partitions", vec(PARTITION_APPENDED), doc="Answer for each entry", section=_RESPONSE),
    doc="Answers for one topic of the request",
    section=_RESPONSE,
)
PRODUCE_RESPONSE = message(
    "ProduceResponse",
    field("topics", vec(TOPIC_APPENDED), doc="Answer for each topic", section=_RESPONSE),
    field(
        "throttle_time_ms",
        Int32sb,
        doc="How long the server held the request back; programs write 0",
        unit="milliseconds",
        section=_RESPONSE,
        since=1,
        absent=0,
    ),
    doc="Answers a ProduceRequest",
    section=_RESPONSE,
)

SMART_MODULES = (
    WASM_NAME,
    WASM_CODE,
    WASM,
    ACCUMULATOR,
    JOIN_TOPIC,
    JOIN_STREAM,
    MODULE_CONTEXT,
    MODULE_ROLE,
    PARAMETER,
    DURATION,
    LOOKBACK,
    SMART_MODULE_INVOCATION,
)
"""SmartModules, the parts first."""
MESSAGES = (
    *SMART_MODULES,
    PRODUCE_PARTITION,
    PRODUCE_TOPIC,
    PRODUCE_REQUEST,
    PARTITION_APPENDED,
    TOPIC_APPENDED,
    PRODUCE_RESPONSE,
)
"""Producing, in reading order."""
