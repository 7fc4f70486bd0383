"""Families ``file_name`` and ``group_text``: names and messages that are written in letters."""

from collections.abc import Iterator
from typing import Any

from generate.document import ACCEPT, Test, document, group, note, reject

NOON = 1_706_918_400_000_000_000
MAX64, MAX32 = 2**64 - 1, 2**32 - 1

NAME_NOTES = {
    "OtherName": note(
        "EDGE_CASE",
        "The name differs from a good one in one place.",
        "A reader that guesses takes a stranger's file for its own.",
        "AMB-16",
        "AMB-49",
    ),
    "WideNumber": note(
        "LIMIT",
        "A number in the text does not fit its field.",
        "A reader that cuts it to size finds a file, a topic or an offset that nobody meant.",
        "AMB-16",
        "AMB-49",
    ),
    "Backwards": note(
        "MODIFIED_PARAMETER",
        "A segment ends before it begins.",
        "Retention by age takes such a segment for an old one and removes it.",
        "AMB-16",
    ),
}
TEXT_NOTES = {
    "OtherForm": note(
        "EDGE_CASE",
        "The message differs from a good one in one place.",
        "A reader that searches for words accepts an answer to another question.",
        "AMB-38",
    ),
    "WideNumber": note(
        "LIMIT",
        "A number does not fit its field.",
        "A member that cuts it to size reads topics that are not its own.",
        "AMB-38",
    ),
}

NAMES: tuple[tuple[str, str, str, dict[str, int | None]], ...] = (
    ("SegmentName", "open", f"0_{NOON}.lnc", {"start_index": 0, "start_ns": NOON}),
    ("SegmentName", "later", f"9120_{NOON}.lnc", {"start_index": 9120, "start_ns": NOON}),
    (
        "SegmentName",
        "closed",
        f"0_{NOON}-{NOON + 7}.lnc",
        {"start_index": 0, "start_ns": NOON, "end_ns": NOON + 7},
    ),
    (
        "SegmentName",
        "one-moment",
        f"5_{NOON}-{NOON}.lnc",
        {"start_index": 5, "start_ns": NOON, "end_ns": NOON},
    ),
    (
        "SegmentName",
        "seconds",
        "0_1706000000-1706099999.lnc",
        {"start_index": 0, "start_ns": 1706000000, "end_ns": 1706099999},
    ),
    (
        "SegmentName",
        "largest",
        f"{MAX64}_{MAX64}-{MAX64}.lnc",
        {"start_index": MAX64, "start_ns": MAX64, "end_ns": MAX64},
    ),
    ("SegmentName", "zeros", "0_0-0.lnc", {"start_index": 0, "start_ns": 0, "end_ns": 0}),
    (
        "OffsetFileName",
        "published",
        "topic-1-consumer-12345.offset",
        {"topic_id": 1, "consumer_id": 12345},
    ),
    (
        "OffsetFileName",
        "design",
        "topic_1_consumer_12345.offset",
        {"topic_id": 1, "consumer_id": 12345},
    ),
    (
        "OffsetFileName",
        "zeros",
        "topic-0-consumer-0.offset",
        {"topic_id": 0, "consumer_id": 0},
    ),
    (
        "OffsetFileName",
        "largest",
        f"topic-{MAX32}-consumer-{MAX64}.offset",
        {"topic_id": MAX32, "consumer_id": MAX64},
    ),
    ("OffsetFile", "plain", "1034\n", {"offset": 1034}),
    ("OffsetFile", "zero", "0\n", {"offset": 0}),
    ("OffsetFile", "largest", f"{MAX64}\n", {"offset": MAX64}),
    ("OffsetFile", "no-line-feed", "1034", {"offset": 1034}),
)
"""Kind, id, text and fields of valid names and contents."""

NAME_FAULTS: tuple[tuple[str, str, str, str, str, str, str, int], ...] = (
    # kind, pair, id, old, new, flag, field, offset
    ("SegmentName", "open", "no-suffix", ".lnc", "", "OtherName", "", 0),
    ("SegmentName", "open", "other-suffix", ".lnc", ".log", "OtherName", "", 0),
    ("SegmentName", "open", "upper-suffix", ".lnc", ".LNC", "OtherName", "", 0),
    ("SegmentName", "open", "more-suffix", ".lnc", ".lnc.tmp", "OtherName", "", 0),
    ("SegmentName", "open", "no-index", "0_", "_", "OtherName", "", 0),
    ("SegmentName", "open", "no-mark", "0_", "0", "OtherName", "", 0),
    ("SegmentName", "open", "dash-mark", "0_", "0-", "OtherName", "", 0),
    ("SegmentName", "open", "negative", "0_", "-1_", "OtherName", "", 0),
    ("SegmentName", "open", "hexadecimal", "0_", "0xa_", "OtherName", "", 0),
    ("SegmentName", "open", "space", "0_", " 0_", "OtherName", "", 0),
    ("SegmentName", "open", "line-feed", ".lnc", ".lnc\n", "OtherName", "", 0),
    ("SegmentName", "open", "path", "0_", "1/0_", "OtherName", "", 0),
    ("SegmentName", "open", "arabic-digits", "0_", "٣_", "OtherName", "", 0),
    ("SegmentName", "open", "21-digits", "0_", f"{'0' * 21}_", "OtherName", "", 0),
    ("SegmentName", "open", "wide-index", "0_", f"{2**64}_", "WideNumber", "start_index", 0),
    ("SegmentName", "closed", "no-end", f"-{NOON + 7}", "-", "OtherName", "", 0),
    ("SegmentName", "closed", "two-ends", ".lnc", "-9.lnc", "OtherName", "", 0),
    ("SegmentName", "closed", "wide-start", f"_{NOON}", f"_{2**64}", "WideNumber", "start_ns", 2),
    ("SegmentName", "closed", "wide-end", f"-{NOON + 7}", f"-{2**64}", "WideNumber", "end_ns", 22),
    (
        "SegmentName",
        "closed",
        "backwards",
        f"-{NOON + 7}",
        f"-{NOON - 1}",
        "Backwards",
        "end_ns",
        22,
    ),
    ("OffsetFileName", "published", "mixed-marks", "-consumer", "_consumer", "OtherName", "", 0),
    ("OffsetFileName", "published", "no-topic", "-1-", "--", "OtherName", "", 0),
    ("OffsetFileName", "published", "temporary", ".offset", ".offset.tmp", "OtherName", "", 0),
    ("OffsetFileName", "published", "lock", ".offset", ".lock", "OtherName", "", 0),
    ("OffsetFileName", "published", "capital", "topic", "Topic", "OtherName", "", 0),
    ("OffsetFileName", "published", "path", "topic", "../topic", "OtherName", "", 0),
    ("OffsetFileName", "published", "wide-topic", "-1-", f"-{2**32}-", "WideNumber", "topic_id", 6),
    (
        "OffsetFileName",
        "published",
        "wide-consumer",
        "12345",
        str(2**64),
        "WideNumber",
        "consumer_id",
        17,
    ),
    ("OffsetFile", "plain", "empty", "1034\n", "", "OtherName", "offset", 0),
    ("OffsetFile", "plain", "negative", "1034", "-1034", "OtherName", "offset", 0),
    ("OffsetFile", "plain", "plus", "1034", "+1034", "OtherName", "offset", 0),
    ("OffsetFile", "plain", "space", "1034", " 1034", "OtherName", "offset", 0),
    ("OffsetFile", "plain", "fraction", "1034", "1034.0", "OtherName", "offset", 0),
    ("OffsetFile", "plain", "two-lines", "\n", "\n5\n", "OtherName", "offset", 0),
    ("OffsetFile", "plain", "carriage-return", "\n", "\r\n", "OtherName", "offset", 0),
    ("OffsetFile", "plain", "zeros", "1034\n", "\0\0\0\0", "OtherName", "offset", 0),
    ("OffsetFile", "plain", "json", "1034", '{"offset":1034}', "OtherName", "offset", 0),
    ("OffsetFile", "plain", "long", "1034", "1" * 100, "OtherName", "offset", 0),
    ("OffsetFile", "plain", "wide", "1034", str(2**64), "WideNumber", "offset", 0),
)

ROWS = {"SegmentName": "AMB-16", "OffsetFileName": "AMB-49", "OffsetFile": "AMB-49"}

REQUESTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    *(
        (verb.lower(), f"{verb}:worker-1", {"verb": verb, "worker_id": "worker-1"})
        for verb in ("JOIN", "HEARTBEAT", "LEAVE")
    ),
    ("get", "GET_ASSIGNMENTS:w", {"verb": "GET_ASSIGNMENTS", "worker_id": "w"}),
    ("utf-8", "JOIN:größe", {"verb": "JOIN", "worker_id": "größe"}),
    ("colons", "JOIN:a:b:c", {"verb": "JOIN", "worker_id": "a:b:c"}),
    ("longest", f"JOIN:{'w' * 4091}", {"verb": "JOIN", "worker_id": "w" * 4091}),
)
ANSWERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "joined",
        'JoinAccepted { worker_id: "w", generation: 1, assignments: [1, 2, 3] }',
        {"answer": "JoinAccepted", "worker_id": "w", "generation": "1", "assignments": [1, 2, 3]},
    ),
    (
        "joined-idle",
        'JoinAccepted { worker_id: "w", generation: 1, assignments: [] }',
        {"answer": "JoinAccepted", "worker_id": "w", "generation": "1", "assignments": []},
    ),
    (
        "joined-escaped",
        'JoinAccepted { worker_id: "a\\"b\\\\c\\n\\u{1b}", generation: 1, assignments: [7] }',
        {
            "answer": "JoinAccepted",
            "worker_id": 'a"b\\c\n\x1b',
            "generation": "1",
            "assignments": [7],
        },
    ),
    ("alive", "HeartbeatAck { generation: 3 }", {"answer": "HeartbeatAck", "generation": "3"}),
    (
        "alive-largest",
        f"HeartbeatAck {{ generation: {MAX64} }}",
        {"answer": "HeartbeatAck", "generation": str(MAX64)},
    ),
    (
        "assigned",
        "Assignments { generation: 3, assignments: [1, 2, 3] }",
        {"answer": "Assignments", "generation": "3", "assignments": [1, 2, 3]},
    ),
    (
        "assigned-largest",
        f"Assignments {{ generation: 3, assignments: [{MAX32}] }}",
        {"answer": "Assignments", "generation": "3", "assignments": [MAX32]},
    ),
    (
        "assigned-none",
        "Assignments { generation: 0, assignments: [] }",
        {"answer": "Assignments", "generation": "0", "assignments": []},
    ),
    ("left", "LeaveAcknowledged", {"answer": "LeaveAcknowledged"}),
    (
        "refused",
        'Error { message: "Worker not found" }',
        {"answer": "Error", "message": "Worker not found"},
    ),
    ("refused-silently", 'Error { message: "" }', {"answer": "Error", "message": ""}),
)

REQUEST_FAULTS = (
    ("join", "no-colon", ":", "", "verb", 0, "OtherForm"),
    ("join", "no-worker", "worker-1", "", "worker_id", 5, "OtherForm"),
    ("join", "lower-case", "JOIN", "join", "verb", 0, "OtherForm"),
    ("join", "other-verb", "JOIN", "JOINT", "verb", 0, "OtherForm"),
    ("join", "space", "JOIN", " JOIN", "verb", 0, "OtherForm"),
    ("longest", "too-long", "JOIN:", "JOIN:w", "", 4096, "WideNumber"),
)
ANSWER_FAULTS = (
    ("alive", "no-name", "HeartbeatAck ", "", "", 0, "OtherForm"),
    ("alive", "other-name", "HeartbeatAck", "HeartbeatOk", "", 0, "OtherForm"),
    ("alive", "no-number", "3", "", "", 13, "OtherForm"),
    ("alive", "negative", "3", "-3", "", 13, "OtherForm"),
    ("alive", "cut", " }", "", "", 13, "OtherForm"),
    ("alive", "more", " }", " } ", "", 13, "OtherForm"),
    ("alive", "wide", "3", str(2**64), "generation", 27, "WideNumber"),
    ("assigned", "open-list", "]", "", "", 12, "OtherForm"),
    ("assigned", "no-comma", "1, 2", "1 2", "", 12, "OtherForm"),
    ("assigned", "last-comma", "3]", "3,]", "", 12, "OtherForm"),
    ("assigned", "wide-topic", "[1", f"[{2**32}", "assignments", 43, "WideNumber"),
    ("joined", "no-quote", '"w"', "w", "", 13, "OtherForm"),
    ("joined", "open-quote", '"w"', '"w', "", 13, "OtherForm"),
    ("left", "more", "LeaveAcknowledged", "LeaveAcknowledged {}", "", 0, "OtherForm"),
    ("refused", "other-field", "message", "reason", "", 6, "OtherForm"),
)
"""Pair, id, old, new, field, offset and flag of faulty messages."""


def build_names() -> dict[str, Any]:
    """Return the file of ``file_name``."""
    header = [
        "The name of a segment, or the name or content of a file with a consumer's offset.",
        "`bytes` are its letters in UTF-8. A number that is not there is left out of `fields`.",
    ]
    groups = [group("FileName", _names(form), form=form) for form in ROWS]
    return document("file_name", header, NAME_NOTES, groups)


def _names(form: str) -> Iterator[Test]:
    texts = {name: text for of, name, text, _ in NAMES if of == form}
    clause = f"{ROWS[form]}/{form}"
    for of, name, text, fields in NAMES:
        if of == form:
            shown = {each: str(value) for each, value in fields.items()}
            yield _valid(f"name-{form}-{name}", clause, text, shown)
    for of, pair, name, old, new, flag, field, offset in NAME_FAULTS:
        if of == form:
            test = _faulty(f"name-{form}", pair, name, clause, texts[pair], old, new)
            yield test | {"outcome": reject("value", field, offset), "flags": [flag]}


def build_groups() -> dict[str, Any]:
    """Return the file of ``group_text``."""
    header = [
        "A message of the text protocol between members of a group and a published coordinator.",
        "`bytes` are its letters in UTF-8; nothing marks its end.",
    ]
    groups = [
        group("GroupText", _texts("request", REQUESTS, REQUEST_FAULTS), form="request"),
        group("GroupText", _texts("answer", ANSWERS, ANSWER_FAULTS), form="answer"),
    ]
    return document("group_text", header, TEXT_NOTES, groups)


def _texts(kind: str, rows: Any, faults: Any) -> Iterator[Test]:
    texts = {name: text for name, text, _ in rows}
    clause = f"AMB-38/{kind}"
    for name, text, fields in rows:
        yield _valid(f"group-{kind}-{name}", clause, text, fields)
    for pair, name, old, new, field, offset, flag in faults:
        test = _faulty(f"group-{kind}", pair, f"{pair}-{name}", clause, texts[pair], old, new)
        yield test | {"outcome": reject("value", field, offset), "flags": [flag]}


def _valid(identifier: str, clause: str, text: str, fields: dict[str, Any]) -> Test:
    test = _test(identifier, clause, f"The text {text[:60]!r}.", text)
    return test | {"fields": fields, "result": "valid", "outcome": ACCEPT}


def _faulty(prefix: str, pair: str, name: str, clause: str, whole: str, *change: str) -> Test:
    """Return a test with one piece of its pair's text replaced."""
    old, new = change
    at = len(whole[: whole.index(old)].encode())
    fault = {
        "kind": "splice",
        "offset": at,
        "remove": len(old.encode()),
        "insert": new.encode().hex(),
    }
    text = whole.replace(old, new, 1)
    return _test(f"{prefix}-{name}", clause, f"The text {text[:60]!r}.", text) | {
        "pairOf": f"{prefix}-{pair}",
        "fault": fault,
        "result": "invalid",
    }


def _test(identifier: str, clause: str, comment: str, text: str) -> Test:
    return {
        "id": identifier,
        "comment": comment,
        "clause": clause,
        "level": "MUST",
        "basis": "decision",
        "bytes": text.encode().hex(),
        "flags": [],
    }
