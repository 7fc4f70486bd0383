"""Family ``rustlog_json``: the JSON dialect that RustLog's specification describes (RL-01)."""

import json
from collections.abc import Iterator
from typing import Any

from generate.document import ACCEPT, Test, document, group, note
from generate.plain import Plain

SPEC = {"name": "RustLog specification", "version": "1", "revision": "JSON dialect, RL-01"}
NOTES = {
    "Missing": note(
        "MISSING_STEP",
        "A member that is always there is not.",
        "A reader that makes up a value works on partition or offset 0.",
        "RL-01",
    ),
    "OtherType": note(
        "MODIFIED_PARAMETER",
        "A member has a value of another type.",
        "A reader that converts it takes a truth value, a fraction or a text for a number.",
        "RL-01",
    ),
    "Bounds": note(
        "LIMIT",
        "A number is negative or wider than its field.",
        "A reader that cuts it to size works on another partition, offset or byte.",
        "RL-01",
    ),
    "Twice": note(
        "CAN_OF_WORMS",
        "A member stands there twice.",
        "Readers that take the first and readers that take the last do different things.",
        "RL-01",
    ),
    "OtherVariant": note(
        "MODIFIED_PARAMETER",
        "The message has no variant, an unknown one, or two.",
        "A reader that takes the first it finds does something nobody asked for.",
        "RL-01",
    ),
    "NoJson": note(
        "EDGE_CASE",
        "The bytes are not JSON, or more than one.",
        "A reader that is lenient accepts what other readers refuse.",
        "RL-01",
    ),
    "Array": note(
        "CAN_OF_WORMS",
        "The members stand in a list, in the order in which the specification names them.",
        "Libraries that generate readers accept this form without having been asked to.",
        "RL-01",
    ),
}
PLACE: dict[str, Any] = {"topic": "orders", "partition": 0}
GROUPED = PLACE | {"group_id": "order-processor"}
MAX64 = 2**64 - 1
ORDERED = '{"topic":"orders","partition":0,"group_id":"order-processor"}'
"""The members of `GROUPED` as compact JSON."""
WHOLE = f'{{"OffsetFetch":{ORDERED}}}'
RECORDS = "[[98,121,116,101,115],[109,111,114,101]]"
OTHER = '"OffsetFetch":{"topic":"t","partition":0,"group_id":"g"},'
AGAIN = '"Produce":{"topic":"t","partition":0,"records":[]},'
SAMPLE = "bytes"
MORE = "more"


def octets(text: str) -> list[int]:
    """Return a text as the specification writes bytes: a list of numbers."""
    return list(text.encode())


REQUESTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Produce", "two", PLACE | {"records": [octets(SAMPLE), octets(MORE)]}),
    ("Produce", "none", PLACE | {"records": []}),
    ("Produce", "empty", PLACE | {"records": [[], [0, 255]]}),
    (
        "Fetch",
        "group",
        PLACE | {"offset": 1000, "max_bytes": 1048576, "group_id": "order-processor"},
    ),
    ("Fetch", "null-group", PLACE | {"offset": 0, "max_bytes": 0, "group_id": None}),
    ("Fetch", "no-group", PLACE | {"offset": 0, "max_bytes": 1}),
    (
        "Fetch",
        "largest",
        {"topic": "größe", "partition": 2**32 - 1, "offset": MAX64, "max_bytes": MAX64},
    ),
    ("OffsetCommit", "plain", GROUPED | {"offset": 1500}),
    ("OffsetFetch", "plain", GROUPED),
)
"""Variant, id and members of valid requests; the specification's own are among them."""
ANSWERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Produce", "three", {"offsets": [1000, 1001, 1002]}),
    ("Produce", "none", {"offsets": []}),
    (
        "Fetch",
        "two",
        {
            "records": [
                {"offset": 1000, "payload": octets(SAMPLE)},
                {"offset": 1001, "payload": octets(MORE)},
            ],
            "next_offset": 1002,
        },
    ),
    ("Fetch", "none", {"records": [], "next_offset": MAX64}),
    ("OffsetCommit", "yes", {"success": True}),
    ("OffsetFetch", "some", {"offset": 1500}),
    ("OffsetFetch", "null", {"offset": None}),
    ("Error", "text", {"message": "partition not found: topic=orders, partition=99"}),
)
"""Variant, id and members of valid answers."""

EQUIVALENT: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    (
        "OffsetFetch",
        "order",
        '{"OffsetFetch":{"group_id":"order-processor","partition":0,"topic":"orders"}}',
        GROUPED,
    ),
    (
        "OffsetFetch",
        "space",
        ' { "OffsetFetch" : {\n"topic":"orders", "partition":0,"group_id":"order-processor"}}\r\n',
        GROUPED,
    ),
    (
        "OffsetFetch",
        "unknown",
        f'{{"OffsetFetch":{ORDERED[:-1]},"colour":[1]}}}}',
        GROUPED,
    ),
    (
        "OffsetFetch",
        "escaped",
        '{"OffsetFetch":{"topic":"\\u006frders","partition":0,"group_id":"order-processor"}}',
        GROUPED,
    ),
)
"""Other ways of writing the same: order, white space, members that are not known, escapes."""

REQUEST_FAULTS: dict[tuple[str, str], tuple[tuple[str, str, str, str], ...]] = {
    ("Produce", "two"): (
        ("no-topic", '"topic":"orders",', "", "Missing"),
        ("no-partition", '"partition":0,', "", "Missing"),
        ("no-records", ',"records":[[98,121,116,101,115],[109,111,114,101]]', "", "Missing"),
        ("number-topic", '"orders"', "7", "OtherType"),
        ("null-topic", '"orders"', "null", "OtherType"),
        ("text-partition", '"partition":0', '"partition":"0"', "OtherType"),
        ("true-partition", '"partition":0', '"partition":true', "OtherType"),
        ("fraction-partition", '"partition":0', '"partition":0.0', "OtherType"),
        ("exponent-partition", '"partition":0', '"partition":0e0', "OtherType"),
        ("negative-partition", '"partition":0', '"partition":-1', "Bounds"),
        ("wide-partition", '"partition":0', f'"partition":{2**32}', "Bounds"),
        ("text-record", "[98,121,116,101,115]", '"bytes"', "OtherType"),
        ("null-record", "[98,121,116,101,115]", "null", "OtherType"),
        ("byte-of-256", "98", "256", "Bounds"),
        ("negative-byte", "98", "-1", "Bounds"),
        ("fraction-byte", "98", "98.0", "OtherType"),
        ("true-byte", "98", "true", "OtherType"),
        ("object-records", "[[98,121,116,101,115],[109,111,114,101]]", "{}", "OtherType"),
        ("topic-twice", '"topic":"orders",', '"topic":"orders","topic":"orders",', "Twice"),
        ("other-variant", '"Produce"', '"Publish"', "OtherVariant"),
        ("lower-variant", '"Produce"', '"produce"', "OtherVariant"),
        ("two-variants", '{"Produce"', "{" + OTHER + '"Produce"', "OtherVariant"),
        ("same-variant-twice", '{"Produce"', "{" + AGAIN + '"Produce"', "OtherVariant"),
        ("cut", "}}", "}", "NoJson"),
        ("and-a-brace", "}}", "}}}", "NoJson"),
        ("and-another", "}}", "}}{}", "NoJson"),
        ("comma", "101]]", "101],]", "NoJson"),
        ("comment", '{"Produce"', '/**/{"Produce"', "NoJson"),
        ("single-quotes", '"orders"', "'orders'", "NoJson"),
        ("leading-zero", '"partition":0', '"partition":00', "NoJson"),
        ("plus", '"partition":0', '"partition":+0', "NoJson"),
        ("not-a-number", '"partition":0', '"partition":NaN', "NoJson"),
        ("byte-order-mark", '{"Produce"', '\ufeff{"Produce"', "NoJson"),
        ("control-character", '"orders"', '"or\nders"', "NoJson"),
        ("null-records", RECORDS, "null", "OtherType"),
    ),
    ("Fetch", "group"): (
        ("no-offset", '"offset":1000,', "", "Missing"),
        ("no-max-bytes", '"max_bytes":1048576,', "", "Missing"),
        ("negative-offset", '"offset":1000', '"offset":-1', "Bounds"),
        ("wide-offset", '"offset":1000', f'"offset":{2**64}', "Bounds"),
        ("wide-max-bytes", "1048576", str(2**64), "Bounds"),
        ("text-offset", '"offset":1000', '"offset":"1000"', "OtherType"),
        ("null-offset", '"offset":1000', '"offset":null', "OtherType"),
        ("number-group", '"order-processor"', "7", "OtherType"),
        ("group-twice", '"group_id"', '"group_id":null,"group_id"', "Twice"),
    ),
    ("OffsetCommit", "plain"): (
        ("no-group", '"group_id":"order-processor",', "", "Missing"),
        ("null-group", '"order-processor"', "null", "OtherType"),
        ("no-offset", ',"offset":1500', "", "Missing"),
        ("wide-offset", "1500", str(2**64), "Bounds"),
    ),
    ("OffsetFetch", "plain"): (
        ("no-group", ',"group_id":"order-processor"', "", "Missing"),
        ("no-topic", '"topic":"orders",', "", "Missing"),
        ("number", WHOLE, "7", "OtherVariant"),
        ("text", WHOLE, '"OffsetFetch"', "OtherVariant"),
        ("no-variant", WHOLE[1:-1], "", "OtherVariant"),
        ("nothing", WHOLE, "", "NoJson"),
    ),
}  # fmt: skip
"""Variant and id of the pair; id, old text, new text and flag of each fault."""
ANSWER_FAULTS: dict[tuple[str, str], tuple[tuple[str, str, str, str], ...]] = {
    ("Produce", "three"): (
        ("no-offsets", '"offsets"', '"offset"', "Missing"),
        ("negative", "1001", "-1", "Bounds"),
        ("wide", "1001", str(2**64), "Bounds"),
        ("text", "1001", '"1001"', "OtherType"),
        ("null", "[1000,1001,1002]", "null", "OtherType"),
    ),
    ("Fetch", "two"): (
        ("no-next-offset", ',"next_offset":1002', "", "Missing"),
        ("no-records", '"records"', '"record"', "Missing"),
        ("record-without-offset", '"offset":1001,', "", "Missing"),
        ("record-without-payload", ',"payload":[109,111,114,101]', "", "Missing"),
        ("byte-of-256", "109", "256", "Bounds"),
        ("text-payload", "[109,111,114,101]", '"more"', "OtherType"),
        ("offset-twice", '"offset":1001', '"offset":1001,"offset":1001', "Twice"),
    ),
    ("OffsetCommit", "yes"): (
        ("number", "true", "1", "OtherType"),
        ("no-success", '"success":true', "", "Missing"),
    ),
    ("OffsetFetch", "some"): (
        ("text", "1500", '"1500"', "OtherType"),
        ("negative", "1500", "-1", "Bounds"),
        ("fraction", "1500", "1500.0", "OtherType"),
    ),
    ("Error", "text"): (
        ("no-message", '"message"', '"text"', "Missing"),
        ("number", '"partition not found: topic=orders, partition=99"', "7", "OtherType"),
        ("other-variant", '"Error"', '"Failure"', "OtherVariant"),
    ),
}
WIDE = {"offset", "max_bytes", "next_offset", "offsets"}


LENGTHS = {
    ("request", "Produce", "two"): 0x5F,
    ("request", "Fetch", "group"): 0x69,
    ("request", "OffsetCommit", "plain"): 0x5C,
    ("request", "OffsetFetch", "plain"): 0x4D,
    ("answer", "Produce", "three"): 0x28,
    ("answer", "Fetch", "two"): 0x85,
    ("answer", "OffsetCommit", "yes"): 0x21,
    ("answer", "OffsetFetch", "some"): 0x1F,
    ("answer", "OffsetFetch", "null"): 0x1F,
    ("answer", "Error", "text"): 0x47,
}
"""How long the specification's own types come out, compiled with the library that it names."""


def check_lengths() -> None:
    """Hold the messages against the lengths that are known.

    Raises:
        AssertionError: naming the one that differs.
    """
    for side, rows in (("request", REQUESTS), ("answer", ANSWERS)):
        for variant, name, members in rows:
            size = len(written(variant, members).encode())
            known = LENGTHS.get((side, variant, name), size)
            assert size == known, f"{side} {variant} {name} has {size} bytes, not {known}"


def build() -> dict[str, Any]:
    """Return the family's file."""
    check_lengths()
    header = [
        "A message of the JSON dialect that the specification of RustLog describes, without the",
        "frame's length. A valid one is read as `fields`: its variant and the members that stand",
        "there; members that are not known are ignored. Bytes are lists of numbers. An invalid one",
        "is refused.",
    ]
    requests = [*_tests("request", REQUESTS, REQUEST_FAULTS), *_equivalent(), *_arrays()]
    groups = [
        group("RustlogJson", requests, side="request"),
        group("RustlogJson", _tests("answer", ANSWERS, ANSWER_FAULTS), side="answer"),
    ]
    return document("rustlog_json", header, NOTES, groups, SPEC)


def written(variant: str, members: dict[str, Any]) -> str:
    """Return a message as compact JSON."""
    return json.dumps({variant: members}, separators=(",", ":"), ensure_ascii=False)


def _tests(side: str, rows: Any, faults: Any) -> Iterator[Test]:
    for variant, name, members in rows:
        plain = _plain(side, variant)
        text = written(variant, members).encode()
        pair = plain.valid(name, f"{variant}: {name}.", text, {variant: _shown(members)})
        yield pair
        for title, old, new, flag in faults.get((variant, name), ()):
            yield plain.replace(pair, title, (old, new), NOTES[flag]["description"], flag=flag)


def _equivalent() -> Iterator[Test]:
    for variant, name, text, members in EQUIVALENT:
        plain, fields = _plain("request", variant), {variant: _shown(members)}
        yield plain.valid(name, "The same, written otherwise.", text.encode(), fields)


def _arrays() -> Iterator[Test]:
    """Some readers take a list for an object; whether one does is left open."""
    plain = _plain("request", "OffsetFetch")
    fields = {"OffsetFetch": GROUPED}
    pair = plain.valid("plain", "", written("OffsetFetch", GROUPED).encode(), fields)
    change = (ORDERED, '["orders",0,"order-processor"]')
    test = plain.replace(pair, "as-a-list", change, NOTES["Array"]["description"], flag="Array")
    outcomes = [test["outcome"], ACCEPT]
    kept = {name: value for name, value in test.items() if name != "outcome"}
    yield kept | {"result": "either", "ambiguity": "RL-01", "outcomes": outcomes, "fields": fields}


def _plain(side: str, variant: str) -> Plain:
    return Plain(f"rustlog-json-{side}-{variant}", f"RL-01/{variant}", "figure")


def _shown(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {each: _shown(inner, each) for each, inner in value.items()}
    if isinstance(value, list):
        return [_shown(each, name) for each in value]
    return str(value) if name in WIDE and isinstance(value, int) else value
