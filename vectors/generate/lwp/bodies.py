"""Family ``json_body``: the JSON of control answers and of a topic's metadata."""

import json
from collections.abc import Iterator
from typing import Any

from generate.document import ACCEPT, Test, document, group, note

NOTES = {
    "Missing": note(
        "MISSING_STEP",
        "A member that is always there is not.",
        "A reader that makes up a value shows a topic that does not exist.",
        "AMB-09",
    ),
    "OtherType": note(
        "MODIFIED_PARAMETER",
        "A member has a value of another type.",
        "A reader that converts it takes a truth value or a text for a number.",
        "AMB-09",
    ),
    "Bounds": note(
        "LIMIT",
        "A number is negative or wider than its field.",
        "A reader that cuts it to size asks for another topic or offset.",
        "AMB-29",
    ),
    "NoJson": note(
        "EDGE_CASE",
        "The bytes are not a JSON object.",
        "A reader that does not check fails in a place that says nothing.",
        "AMB-09",
    ),
}

TOPIC: dict[str, Any] = {"id": 1, "name": "my-events", "created_at": 1706918400}
WHOLE = TOPIC | {
    "topic_epoch": 2,
    "start_offset": 1034,
    "end_offset": 20480,
    "record_count": 77,
    "max_age_secs": 86400,
    "max_bytes": 1073741824,
}
PARTITION = {"topic": "my", "index": 3, "count": 8, "partitioner": "murmur2"}
LARGEST = dict.fromkeys(WHOLE, 2**64 - 1) | {"id": 2**32 - 1, "name": "n" * 255}
LEADS = {"mode": "standalone", "node_id": 0, "is_leader": True, "leader_id": 0, "current_term": 0}
STATUS = LEADS | {"node_count": 1, "healthy_nodes": 1}
WINDOW = {"dedup_window": {"entries": 1000000, "max_age_secs": 604800}}

BODIES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("topic", "5.3", "plain", TOPIC),
    ("topic", "5.5", "whole", WHOLE),
    ("topic", "5.5", "largest", LARGEST),
    ("topic", "6.1", "default", TOPIC | {"id": 0, "name": "default", "created_at": 0}),
    ("topic", "5.3", "utf-8", TOPIC | {"name": "größe"}),
    ("topic", "AMB-59", "partition", WHOLE | {"name": "my-3", "partition": PARTITION}),
    ("topic", "5.3", "more", TOPIC | {"colour": "blue"}),
    ("topic_list", "5.4", "none", {"topics": []}),
    ("topic_list", "5.4", "two", {"topics": [TOPIC, WHOLE]}),
    ("topic_deleted", "5.6", "plain", {"deleted": 1}),
    ("topic_deleted", "5.6", "largest", {"deleted": 2**32 - 1}),
    ("cluster_status", "AMB-11", "counts", STATUS),
    ("cluster_status", "AMB-11", "fewest", LEADS),
    ("cluster_status", "AMB-25", "retries", STATUS | WINDOW),
    ("cluster_status", "AMB-11", "follows", STATUS | {"is_leader": False, "leader": "b:1992"}),
    ("error", "12.1", "plain", {"code": 16, "message": "Topic 42 not found"}),
    ("error", "12.1", "details", {"code": 4, "message": "no", "details": {"batch_id": 7}}),
    ("topic_metadata", "6.2", "plain", TOPIC),
    (
        "topic_metadata",
        "6.2",
        "example",
        TOPIC
        | {
            "auth": {
                "mtls_enabled": True,
                "client_ca_path": "/etc/lance/ca.crt",
                "allowed_cns": ["client1.example.com", "client2.example.com"],
                "allowed_topics": [1, 2, 3],
            },
            "retention": {"max_bytes": 10737418240, "max_age_secs": 604800},
        },
    ),
    (
        "topic_metadata",
        "AMB-30",
        "server",
        TOPIC
        | {
            "topic_epoch": 1,
            "retention": {"max_bytes": 0, "max_age_secs": 0},
            "log": {"next_offset": 1034, "bases": {"0_1706918400000000000": 0}},
        },
    ),
)
"""Schema, section, id and object of valid bodies."""

TOPIC_FAULTS = (
    ("no-id", '"id":1,', "", "id", "Missing"),
    ("no-name", '"name":"my-events",', "", "name", "Missing"),
    ("no-created-at", ',"created_at":1706918400', "", "created_at", "Missing"),
    ("text-id", '"id":1', '"id":"1"', "id", "OtherType"),
    ("true-id", '"id":1', '"id":true', "id", "OtherType"),
    ("null-id", '"id":1', '"id":null', "id", "OtherType"),
    ("number-name", '"my-events"', "7", "name", "OtherType"),
    ("null-name", '"my-events"', "null", "name", "OtherType"),
    ("text-created-at", "1706918400", '"today"', "created_at", "OtherType"),
    ("negative-id", '"id":1', '"id":-1', "id", "Bounds"),
    ("wide-id", '"id":1', f'"id":{2**32}', "id", "Bounds"),
    ("wide-created-at", "1706918400", str(2**64), "created_at", "Bounds"),
)
WHOLE_FAULTS = tuple(
    (f"{kind}-{name.replace('_', '-')}", f'"{name}":{WHOLE[name]}', f'"{name}":{new}', name, flag)
    for name in list(WHOLE)[3:]
    for kind, new, flag in (
        ("text", '"1"', "OtherType"),
        ("negative", "-1", "Bounds"),
        ("wide", str(2**64), "Bounds"),
    )
)
FAULTS: dict[tuple[str, str], tuple[tuple[str, str, str, str, str], ...]] = {
    ("topic", "plain"): (
        *TOPIC_FAULTS,
        ("cut", "}", "", "body", "NoJson"),
        ("two", "}", "}{}", "body", "NoJson"),
        ("list", '{"id":1,"name":"my-events","created_at":1706918400}', "[]", "body", "NoJson"),
        ("empty", '{"id":1,"name":"my-events","created_at":1706918400}', "", "body", "NoJson"),
    ),
    ("topic", "whole"): WHOLE_FAULTS,
    ("topic_list", "two"): (
        ("no-topics", '"topics"', '"topic"', "topics", "Missing"),
        ("topics-object", '{"topics":[', '{"topics":{},"list":[', "topics", "OtherType"),
        ("topics-null", '{"topics":[', '{"topics":null,"list":[', "topics", "OtherType"),
        ("topic-number", "[{", "[7,{", "topics", "OtherType"),
        ("topic-without-id", '"id":1,', "", "id", "Missing"),
    ),
    ("topic_deleted", "plain"): (
        ("no-id", '"deleted"', '"removed"', "deleted", "Missing"),
        ("text", "1", '"1"', "deleted", "OtherType"),
        ("wide", "1", str(2**32), "deleted", "Bounds"),
    ),
    ("cluster_status", "retries"): (
        ("text-node-count", '"node_count":1', '"node_count":"1"', "node_count", "OtherType"),
        ("no-entries", '"entries":1000000,', "", "entries", "Missing"),
        ("no-max-age", ',"max_age_secs":604800', "", "max_age_secs", "Missing"),
        ("text-entries", "1000000", '"many"', "entries", "OtherType"),
        ("negative-entries", "1000000", "-1", "entries", "Bounds"),
        ("wide-max-age", "604800", str(2**64), "max_age_secs", "Bounds"),
    ),
    ("error", "plain"): (
        ("no-code", '"code":16,', "", "code", "Missing"),
        ("text-code", "16", '"16"', "code", "OtherType"),
        ("wide-code", "16", "256", "code", "Bounds"),
        ("negative-code", "16", "-1", "code", "Bounds"),
    ),
    ("topic_metadata", "server"): (
        *TOPIC_FAULTS,
        ("text-next-offset", '"next_offset":1034', '"next_offset":"1034"', "log", "OtherType"),
        ("no-next-offset", '"next_offset":1034,', "", "log", "Missing"),
        ("no-bases", ',"bases":{"0_1706918400000000000":0}', "", "log", "Missing"),
        ("list-bases", '{"0_1706918400000000000":0}', "[]", "log", "OtherType"),
        ("text-base", '000":0', '000":"0"', "log", "OtherType"),
        ("wide-max-bytes", '"max_bytes":0', f'"max_bytes":{2**64}', "retention", "Bounds"),
    ),
}
"""Schema and pair of faulty bodies; id, old text, new text, member at fault and flag of each."""


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "JSON as bytes. A valid one is what the schema of the group's name allows, and is read",
        "as `fields`; members that are not known are kept or ignored. Of an invalid one, `field`",
        "is the member at fault, or `body` when the bytes are not a JSON object.",
    ]
    names = dict.fromkeys(schema for schema, _, _, _ in BODIES)
    groups = [group("JsonBody", _tests(name), body=name) for name in names]
    return document("json_body", header, NOTES, groups)


def _tests(schema: str) -> Iterator[Test]:
    for of, section, name, body in BODIES:
        if of != schema:
            continue
        text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        test = _test(schema, name, section, f"A valid body: {name}.", text)
        fields = {member: value for member, value in body.items() if member != "colour"}
        yield test | {"fields": fields, "result": "valid", "outcome": ACCEPT}
        for fault in FAULTS.get((schema, name), ()):
            yield _faulty(schema, section, name, text, *fault)


def _faulty(schema: str, section: str, pair: str, whole: str, *fault: str) -> Test:
    name, old, new, member, flag = fault
    at = len(whole[: whole.index(old)].encode())
    text = whole.replace(old, new, 1)
    comment = f"{NOTES[flag]['description']} The member is {member}."
    return _test(schema, f"{pair}-{name}", section, comment, text) | {
        "pairOf": f"body-{schema.replace('_', '-')}-{pair}",
        "fault": {
            "kind": "splice",
            "offset": at,
            "remove": len(old.encode()),
            "insert": new.encode().hex(),
        },
        "result": "invalid",
        "outcome": {"action": "reject", "reason": "value", "field": member},
        "flags": [flag],
    }


def _test(schema: str, name: str, section: str, comment: str, text: str) -> Test:
    short = schema.replace("_", "-")
    return {
        "id": f"body-{short}-{name}",
        "comment": comment,
        "clause": f"{section}/{short}",
        "level": "MUST",
        "basis": "decision" if section.startswith("AMB") else "figure",
        "bytes": text.encode().hex(),
        "flags": [],
    }
