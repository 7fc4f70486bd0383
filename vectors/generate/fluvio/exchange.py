"""Family ``fluvio_exchange``: whole frames of Fluvio, from their length to their message."""

from typing import Any

from generate.codec.nested import Nested, Sized, Struct
from generate.codec.shapes import I32
from generate.composed import NOTES, Example, Family, used
from generate.document import document, group
from generate.fluvio import calls, captured, cluster, common_types
from generate.fluvio.admin import ADMIN
from generate.fluvio.consuming import CONSUMING
from generate.fluvio.inside import INNER
from generate.fluvio.messages import SEEN, SPEC
from generate.fluvio.producing import PRODUCING

KEYS: dict[str, int] = {
    "ProduceRequest": 0,
    "ApiVersionsRequest": 18,
    "CreateTopicRequest": 1001,
    "DeleteTopicRequest": 1002,
    "ListRequest": 1003,
    "WatchRequest": 1004,
    "FetchOffsetsRequest": 1002,
    "StreamFetchRequest": 1003,
    "UpdateOffsetsRequest": 1005,
    "UpdateConsumerOffsetRequest": 1006,
    "DeleteConsumerOffsetRequest": 1007,
    "FetchConsumerOffsetsRequest": 1008,
}
"""The number of each request; those of the SC and of the SPU overlap."""
ANSWERS = (
    common_types.VERSIONS,
    calls.PRODUCED,
    calls.OFFSETS,
    calls.STREAM_FETCHED,
    calls.STREAM_PIECE,
    calls.UPDATED,
    calls.CONSUMERS,
    calls.STORED,
    calls.FORGOTTEN,
    calls.STATUS,
    *(brought[2] for brought in (calls.SPUS, calls.TOPICS, calls.PARTITIONS)),
    *(brought[3] for brought in (calls.SPUS, calls.TOPICS, calls.PARTITIONS)),
)
EXAMPLES = {
    struct.name: (struct, examples) for struct, examples in (*INNER, *PRODUCING, *CONSUMING, *ADMIN)
}
"""Each message and its examples, by name."""


def framed(struct: Struct, *, request: bool) -> Struct:
    """Return a message in its header and frame."""
    header = common_types.REQUEST if request else common_types.RESPONSE
    opening = tuple(each for each in header.fields if each.name != "body")
    inner = Struct(header.name, (*opening, common_types.f("body", Nested(struct))))
    return Struct(struct.name, (common_types.f("frame", Sized(I32, Nested(inner))),))


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "A whole frame of Fluvio: its length, the header of a request or an answer, a message.",
        "The version is that of the message; a request states it, an answer has that of its",
        "request. A valid frame is read as `fields`; one that is cut short is refused here,",
        "where no more bytes will come.",
    ]
    family = Family("exchange", "FluvioExchange", "FLV-01", versioned=True)
    groups = [_group(family, EXAMPLES[name][0], EXAMPLES[name][1], request=True) for name in KEYS]
    groups += [_group(family, each, EXAMPLES[each.name][1], request=False) for each in ANSWERS]
    groups += [_captured(each, _source(each)) for each in captured.FRAMES]
    groups += [_captured(each, cluster.ANSWERED) for each in cluster.FRAMES]
    return document("fluvio_exchange", header, used(NOTES | SEEN, groups), groups, SPEC)


def _group(
    family: Family, struct: Struct, examples: tuple[Example, ...], *, request: bool
) -> dict[str, Any]:
    whole = [
        Example(
            each.name, each.comment, {"frame": _header(struct, each, request=request)}, each.version
        )
        for each in examples
    ]
    found = family.group(framed(struct, request=request), whole)
    return found | {"side": "request" if request else "answer"}


def _header(struct: Struct, example: Example, *, request: bool) -> dict[str, Any]:
    body = {"correlation_id": 7, "body": example.value}
    if not request:
        return body
    client = "dummy" if struct.name == "WatchRequest" else "fluvio"
    return body | {
        "api_key": KEYS[struct.name],
        "api_version": example.version,
        "client_id": client,
    }


def _source(row: tuple[str, str, int, str, str]) -> dict[str, str]:
    return captured.SENT if row[0] == "request" else captured.TOOK


def _captured(row: tuple[str, str, int, str, str], source: dict[str, str]) -> dict[str, Any]:
    side, message, version, name, raw = row
    family = Family("captured-fluvio", "FluvioExchange", "FLV-01", "capture", versioned=True)
    struct = framed(EXAMPLES[message][0], request=side == "request")
    comment = f"{message}, as it was {'sent' if side == 'request' else 'taken'}."
    found = family.seen(struct, [(name, comment, bytes.fromhex(raw))], version)
    return group(family.kind, found, message=message) | {"side": side, "source": source}
