"""Topics and retention: what is asked, and what answers do."""

import json
import struct
from collections.abc import Mapping
from typing import Any

from lance_conformance.client.cases.header import NOT_LATE
from lance_conformance.client.cases.registry import SPECIFIED, add_case
from lance_conformance.client.checks import Sent, StaysOn
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import (
    Op,
    create,
    create_limited,
    delete_topic,
    get_topic,
    list_topics,
    set_retention,
)
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.client.scripted.script import Answer, Refuse, Trigger, on

BAD = ("protocol", "fatal", "closed")
LIMITS = struct.pack("<QQ", 3600, 1_048_576)
REQUESTS: Mapping[str, tuple[str, Op, Trigger, bytes, str]] = {
    "create": ("5.3/request", create(), "create", b"kit-new", "the name and nothing else"),
    "create-limited": (
        "5.11/request", create_limited(), "create-limited", b"\x07\x00kit-new" + LIMITS,
        "length and name, age and size",
    ),
    "get": ("5.5/request", get_topic(), "get", b"\x07\0\0\0", "the id in 4 bytes"),
    "delete": ("5.6/request", delete_topic(), "delete", b"\x07\0\0\0", "the id in 4 bytes"),
    "list": ("5.4/request", list_topics(), "list", b"", "nothing"),
    "retention": (
        "5.10/request", set_retention(), "retention", b"\x07\0\0\0" + LIMITS,
        "id, age and size",
    ),
}  # fmt: skip


def asks(what: Trigger, payload: bytes, words: str, *, some: bool = False) -> Sent:
    """A request has a payload; or ``some`` of them have."""

    def holds(received: ReceivedFrame) -> str:
        found = received.frame.payload
        return "" if found == payload else f"payload {found.hex()}, must be {payload.hex()}"

    return Sent(what, holds, f"a payload of {words}", some=some)


for name, (clause, op, trigger, payload, words) in REQUESTS.items():
    add_case(
        f"admin/{name}-request", clause, f"The request to {name.replace('-', ' ')} has {words}.",
        ClientCase((op,), checks=(asks(trigger, payload, words),), paired=False),
    )  # fmt: skip

for name in ("create", "get", "delete", "list", "retention"):
    op, trigger = REQUESTS[name][1:3]
    add_case(
        f"admin/{name}-refused", "17.5/error-ends",
        f"When the server refuses to {name.replace('-', ' ')}, the operation fails.",
        ClientCase((op.fails(*NOT_LATE),), (on(trigger, Refuse(0x60, "Internal error"), nth=0),)),
    )  # fmt: skip

NAMED = "kit-größe"
add_case(
    "admin/create-limited-length", "5.11/request",
    "The length before a name counts its bytes in UTF-8, not its characters.",
    ClientCase((create_limited(NAMED),), checks=(asks(
        "create-limited", b"\x0b\x00" + NAMED.encode() + LIMITS, "length and name, age and size"),),
        paired=False),
    dialects=SPECIFIED,
)  # fmt: skip

for name, op, result in (
    ("create", create(), {"id": 8, "name": "kit-new"}),
    ("create-limited", create_limited(), {"id": 8, "name": "kit-new"}),
    ("get", get_topic(), {"id": 7, "name": "kit-topic"}),
    ("list", list_topics(), {"topics": [{"id": 7, "name": "kit-topic"}]}),
):
    add_case(
        f"admin/{name}-answer", "5.3/answer", f"What the answer to {name} tells comes out.",
        ClientCase((op.gives(**result),), paired=False),
    )  # fmt: skip

# -- answers that are odd, but right ---------------------------------------------------------------

ODD: Mapping[str, tuple[str, Answer]] = {
    "unknown-fields": ("fields that nobody knows", Answer(body={"colour": "red", "x": [1, {}]},
                                                          good=True)),
    "huge-field": ("a field of 64 KiB that nobody knows",
                   Answer(body={"notes": "n" * 65_536}, good=True)),
    "null-field": ("a field that is null", Answer(payload=json.dumps(
        {"id": 7, "name": "kit-topic", "created_at": 1, "owner": None}).encode(), good=True)),
    "white-space": ("white space around everything", Answer(payload=(
        b' \n{ "id" : 7 ,\n\t"name" : "kit-topic" , "created_at" : 1 } \n'), good=True)),
    "other-order": ("its fields in another order", Answer(payload=(
        b'{"created_at":1,"name":"kit-topic","id":7}'), good=True)),
    "escapes": ("escapes in its strings", Answer(payload=(
        b'{"id":7,"name":"kit\\u002dtopic","created_at":1}'), good=True)),
}  # fmt: skip
for name, (words, answer) in ODD.items():
    add_case(
        f"admin/odd-{name}", "5.3/lenient", f"A TopicResponse with {words} is read.",
        ClientCase((get_topic().gives(id=7, name="kit-topic"),), (on("get", answer),),
                 (StaysOn(),), paired=False),
    )  # fmt: skip

# -- answers that are wrong ------------------------------------------------------------------------

BODIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "no-id": ("without an id", {"id": None}),
    "id-text": ("whose id is a string", {"id": "7"}),
    "id-negative": ("whose id is negative", {"id": -7}),
    "id-too-large": ("whose id is 2^32", {"id": 2**32}),
    "id-fraction": ("whose id is 7.5", {"id": 7.5}),
    "id-true": ("whose id is true", {"id": True}),
    "no-name": ("without a name", {"name": None}),
    "name-number": ("whose name is a number", {"name": 7}),
}
PAYLOADS: Mapping[str, tuple[str, bytes]] = {
    "empty": ("that is empty", b""),
    "no-json": ("that is not JSON", b"Topic created"),
    "half-json": ("that ends in the middle", b'{"id": 7, "name": "kit-t'),
    "array": ("that is an array", b'[{"id": 7, "name": "kit-topic"}]'),
    "number": ("that is a number", b"7"),
    "not-utf-8": ("that is not UTF-8", b'{"id": 7, "name": "kit-\xff"}'),
    "deep": ("that is nested twenty thousand deep", b'{"id":' + b"[" * 20_000),
}
for name, (words, body) in BODIES.items():
    add_case(
        f"admin/wrong-{name}", "17.5/invalid-response",
        f"A TopicResponse {words} is an error, and no topic.",
        ClientCase((create().fails(*BAD),),
                 (on("create", Answer(body=body), nth=0),)),
    )  # fmt: skip
for name, (words, payload) in PAYLOADS.items():
    add_case(
        f"admin/wrong-{name}", "17.5/invalid-response",
        f"A TopicResponse {words} is an error, and no topic.",
        ClientCase((create().fails(*BAD),),
                 (on("create", Answer(payload=payload), nth=0),)),
    )  # fmt: skip
for name, words, topics in (
    ("object", "are an object", {"id": 7, "name": "kit-topic"}),
    ("numbers", "are numbers", [1, 2, 3]),
    ("text", "are a string", "kit-topic"),
    (
        "one-without-id",
        "are one with an id and one without",
        [{"id": 7, "name": "a"}, {"name": "b"}],
    ),
):
    add_case(
        f"admin/wrong-list-{name}", "17.5/invalid-response",
        f"A list whose topics {words} is an error.",
        ClientCase((list_topics().fails(*BAD),),
                 (on("list", Answer(body={"topics": topics}), nth=0),)),
    )  # fmt: skip
for name, words, command in (
    ("fetch-response", "a FetchResponse", 0x11),
    ("commit-ack", "a CommitAck", 0x24),
    ("status", "a ClusterStatusResponse", 0x81),
    ("subscribe-ack", "a SubscribeAck", 0x23),
    ("authenticated", "an AuthenticateResponse", 0x09),
    ("undefined", "a command that nobody has defined", 0x7E),
):
    add_case(
        f"admin/answered-by-{name}", "17.5/unexpected",
        f"A request for a topic that {words} answers fails.",
        ClientCase(
            (get_topic().fails(),), (on("get", Answer(header={"batch_id": command}), nth=0),)
        ),
    )  # fmt: skip
add_case(
    "admin/answered-by-ack", "17.5/unexpected", "A request for a topic that an Ack answers fails.",
    ClientCase((get_topic().fails(),), (on("get", Answer(header={"flags": 0x08}), nth=0),)),
)  # fmt: skip
add_case(
    "admin/another-topic", "17.5/invalid-response",
    "An answer about another topic than the one that was asked for is an error.",
    ClientCase((get_topic().fails(*NOT_LATE),), (on("get", Answer(body={"id": 9}), nth=0),)),
)  # fmt: skip
for name, words, op, trigger, field in (
    ("delete", "DeleteTopic", delete_topic(), "delete", "deleted"),
    ("retention", "SetRetention", set_retention(), "retention", "topic_id"),
):
    told: Trigger = trigger
    add_case(
        f"admin/{name}-of-another", "17.5/invalid-response",
        f"An answer to {words} about another topic than the one that was named is an error.",
        ClientCase((op.fails(*NOT_LATE),), (on(told, Answer(body={field: 9}), nth=0),)),
    )  # fmt: skip
    for fault in ("empty", "no-json", "half-json", "array", "number"):
        what, payload = PAYLOADS[fault]
        add_case(
            f"admin/{name}-{fault}", "17.5/invalid-response",
            f"An answer to {words} {what} is an error.",
            ClientCase((op.fails(*BAD),), (on(told, Answer(payload=payload), nth=0),)),
        )  # fmt: skip
