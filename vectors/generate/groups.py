"""Commands of consumer groups, a part of the family ``control_payload`` (AMB-38)."""

from collections.abc import Iterator
from typing import Any

from generate.document import Test, error, group
from generate.layouts import Layout, Maker, Slot, Value, examples
from generate.wire import u16, u32, u64

GROUP = (Slot("group_length", 2, measures="group"), Slot("group", measured=True))
GENERATION, TOPIC_ID, OFFSET = Slot("generation", 8), Slot("topic_id", 4), Slot("offset", 8)

REQUESTS: tuple[tuple[str, int, tuple[Slot, ...]], ...] = (
    ("GroupJoin", 0x60, (Slot("session_timeout_ms", 4),)),
    ("GroupGetAssignment", 0x62, ()),
    ("GroupHeartbeat", 0x63, (GENERATION,)),
    ("GroupCommit", 0x65, (GENERATION, TOPIC_ID, OFFSET)),
    ("GroupLeave", 0x67, (GENERATION,)),
)
"""Name, code and first fields of what members send; a group and a member follow."""

ANSWERS: tuple[tuple[str, int, tuple[Slot, ...]], ...] = (
    ("GroupHeartbeatAck", 0x64, (GENERATION,)),
    ("GroupCommitAck", 0x66, (GENERATION, TOPIC_ID, OFFSET)),
    ("GroupLeaveAck", 0x68, (GENERATION,)),
)
"""Name, code and fields of what the coordinator answers."""

MEMBER: dict[str, Value] = {
    "session_timeout_ms": 30000,
    "generation": 3,
    "topic_id": 7,
    "offset": 1034,
    "group": b"billing",
    "member": b"worker-1",
}


def groups() -> list[dict[str, Any]]:
    """Return the groups of tests."""
    found = [_group(name, code, _request(name, slots)) for name, code, slots in REQUESTS]
    found += [_group(name, code, _answer(name, slots)) for name, code, slots in ANSWERS]
    return [*found, _group("GroupAssignment", 0x61, _assignment())]


def _group(message: str, code: int, tests: Iterator[Test]) -> dict[str, Any]:
    return group("ControlPayload", tests, message=message, command=code)


def _refuse(_reason: str, field: str, offset: int) -> dict[str, Any]:
    return error(4, field, offset)


def _request(name: str, slots: tuple[Slot, ...]) -> Iterator[Test]:
    layout = Layout(name, "AMB-38", (*slots, *GROUP, Slot("member")))
    maker = Maker(layout, f"control-{name}", _refuse)
    yield maker.valid("plain", "A member of a group.", MEMBER)
    yield maker.valid("utf-8", "Names beyond ASCII.", MEMBER | {"group": "Größe".encode()})
    yield maker.valid("longest", "A group's name of 255 bytes.", MEMBER | {"group": b"g" * 255})
    yield from maker.faults("plain", MEMBER)
    data = layout.encode(MEMBER)
    at = sum(slot.size for slot in slots)
    for length, field, offset, flag in (
        (0, "group_length", at, "Bounds"),
        (256, "group_length", at, "Bounds"),
        (65535, "group_length", at, "Bounds"),
        (255, "group", at + 2, "WrongNameLength"),
    ):
        comment = f"The length of the group's name says {length}, it is 7."
        outcome = error(4, field, offset)
        yield maker.splice(
            "plain",
            f"group-of-{length}",
            comment,
            data=data,
            at=at,
            insert=u16(length),
            outcome=outcome,
            flag=flag,
        )
    if name == "GroupJoin":
        outcome = error(4, "session_timeout_ms", 0)
        comment = "A member that is dead at once."
        yield maker.splice(
            "plain",
            "no-timeout",
            comment,
            data=data,
            at=0,
            insert=u32(0),
            outcome=outcome,
            flag="Bounds",
        )


def _answer(name: str, slots: tuple[Slot, ...]) -> Iterator[Test]:
    layout = Layout(name, "AMB-38", slots)
    maker = Maker(layout, f"control-{name}", _refuse)
    values: dict[str, Value] = {}
    for example, comment, values in examples(layout):
        yield maker.valid(example, comment, values)
    yield from maker.faults("numbers", values)


def _assignment() -> Iterator[Test]:
    layout = Layout("GroupAssignment", "AMB-38", (GENERATION, Slot("assigned")))
    maker = Maker(layout, "control-GroupAssignment", _refuse)
    one, two = u32(1) + u64(0), u32(7) + u64(1034)
    for name, comment, assigned in (
        ("none", "Nothing to do.", b""),
        ("one", "One topic, from its start.", one),
        ("two", "Two topics.", one + two),
    ):
        yield maker.valid(name, comment, {"generation": 3, "assigned": assigned})
    yield from maker.faults("two", {"generation": 3, "assigned": one + two})
