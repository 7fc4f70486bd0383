"""Family ``group_message``: what members of consumer groups and their coordinator say (AMB-38)."""

from typing import Any

from generate.codec.cursor import Shape
from generate.codec.nested import Field, Filled, Many, Maybe, Nested, Struct
from generate.codec.shapes import FLAG, U8, U16LE, U32LE, U64LE, Blob
from generate.composed import NOTES, Example, Family, used
from generate.document import document, group

NAME, BYTES = Blob(U8, text=True), Blob(U16LE)
IDS = Many(U32LE, U32LE)
TIME = U32LE.but(limits=(1, 2**32 - 1))
MAX32, MAX64 = 2**32 - 1, 2**64 - 1


def f(name: str, shape: Shape) -> Field:
    """Return a field."""
    return Field(name, shape)


def vec(struct: Struct) -> Many:
    """Return a counted list of messages."""
    return Many(U32LE, Nested(struct))


GROUP, MEMBER, GENERATION = f("group", NAME), f("member", NAME), f("generation", U64LE)
STATE, STRATEGY, CLIENT = f("state", U8.but(names=range(3))), f("strategy", NAME), f("client", NAME)
TOPIC_ID, OWNED, DEADLINE = f("topic_id", U32LE), f("owned", IDS), f("deadline_ms", U32LE)
OFFSET, FINGERPRINT = f("offset", U64LE), f("fingerprint", BYTES)
SESSION = f("session_timeout_ms", TIME)

TOPIC = Struct(
    "GroupTopic", (TOPIC_ID, f("created_at", U64LE), f("topic_epoch", U64LE), f("name", NAME))
)
POSITION = Struct("GroupPosition", (OFFSET, GENERATION, f("committed_at_ns", U64LE), FINGERPRINT))
TOPIC_POSITION = Struct(
    "TopicPosition", (f("topic", Nested(TOPIC)), f("position", Maybe(Nested(POSITION))))
)
SINCE = f("since", Many(U32LE, U64LE))
STANDING = Struct("MemberStanding", (f("secret", U64LE), SINCE))
ORDER = Struct("CommitOrder", (f("sequence", U64LE), SINCE))
JOIN = Struct(
    "GroupJoin",
    (
        GROUP,
        MEMBER,
        GENERATION,
        SESSION,
        f("rebalance_timeout_ms", TIME),
        STRATEGY,
        CLIENT,
        f("metadata", BYTES),
        f("topics", vec(TOPIC)),
        OWNED,
        f("standing", Filled(Nested(STANDING))),
    ),
)
JOINED = Struct(
    "GroupJoinAck",
    (MEMBER, GENERATION, STATE, SESSION, f("heartbeat_interval_ms", TIME), STRATEGY),
)
SYNC = Struct("GroupSync", (GROUP, MEMBER, GENERATION, OWNED))
ASSIGNMENT = Struct(
    "GroupAssignment",
    (
        GENERATION,
        STATE,
        DEADLINE,
        f("assigned", vec(TOPIC_POSITION)),
        f("revoked", IDS),
        f("lost", IDS),
    ),
)
HEARTBEAT = Struct("GroupHeartbeat", (GROUP, MEMBER, GENERATION))
HEARD = Struct("GroupHeartbeatAck", (GENERATION, STATE, f("changed", FLAG)))
TOPIC_COMMIT = Struct("TopicCommit", (f("topic", Nested(TOPIC)), OFFSET, FINGERPRINT))
COMMIT = Struct(
    "GroupCommit",
    (
        GROUP,
        MEMBER,
        GENERATION,
        f("topics", vec(TOPIC_COMMIT)),
        f("order", Filled(Nested(ORDER))),
    ),
)
RESULT = Struct("TopicCommitResult", (TOPIC_ID, f("code", U16LE)))
COMMITTED = Struct("GroupCommitAck", (GENERATION, f("results", vec(RESULT))))
ASK = Struct("GroupFetchCommitted", (GROUP, f("topics", IDS)))
ASKED = Struct("GroupCommitted", (GENERATION, f("topics", vec(TOPIC_POSITION))))
LEAVE = Struct("GroupLeave", (GROUP, MEMBER, GENERATION))
LEFT = Struct("GroupLeaveAck", (GENERATION,))
DESCRIBE = Struct("GroupDescribe", (GROUP,))
DESCRIBED_MEMBER = Struct(
    "DescribedMember",
    (MEMBER, CLIENT, SESSION, f("idle_ms", U32LE), GENERATION, OWNED, f("pending", IDS)),
)
DESCRIBED_GROUP = Struct(
    "DescribedGroup",
    (
        GROUP,
        STATE,
        GENERATION,
        DEADLINE,
        STRATEGY,
        f("members", vec(DESCRIBED_MEMBER)),
        f("topics", vec(TOPIC_POSITION)),
    ),
)
DESCRIPTION = Struct("GroupDescription", (f("groups", vec(DESCRIBED_GROUP)),))
ERROR = Struct("GroupError", (f("code", U16LE), GENERATION, f("message", Blob(U16LE, text=True))))

CODES = {
    "GroupJoin": 0x60,
    "GroupJoinAck": 0x61,
    "GroupSync": 0x62,
    "GroupAssignment": 0x63,
    "GroupHeartbeat": 0x64,
    "GroupHeartbeatAck": 0x65,
    "GroupCommit": 0x66,
    "GroupCommitAck": 0x67,
    "GroupFetchCommitted": 0x68,
    "GroupCommitted": 0x69,
    "GroupLeave": 0x6A,
    "GroupLeaveAck": 0x6B,
    "GroupDescribe": 0x6C,
    "GroupDescription": 0x6D,
    "GroupError": 0x6F,
}
"""The command of each message; the others are parts."""


def named(name: str, comment: str, /, **value: Any) -> Example:
    """Return an example."""
    return Example(name, comment, value)


ORDERS: dict[str, Any] = {
    "topic_id": 7,
    "created_at": 1_706_918_400,
    "topic_epoch": 2,
    "name": "größe",
}
UNKNOWN: dict[str, Any] = {"topic_id": 1, "created_at": 0, "topic_epoch": 0, "name": "t"}
DONE: dict[str, Any] = {
    "offset": 1034,
    "generation": 3,
    "committed_at_ns": 1_706_918_400_000_000_000,
    "fingerprint": bytes(range(8)),
}
SOMEBODY: dict[str, Any] = {"group": "billing", "member": "worker-1", "generation": 3}
JOINING: dict[str, Any] = SOMEBODY | {
    "session_timeout_ms": 30000,
    "rebalance_timeout_ms": 60000,
    "strategy": "range",
    "client": "lance-sdk 0.1 on host a, process 7",
    "metadata": b"\x00\xff",
    "topics": [ORDERS, UNKNOWN],
    "owned": [7],
    "standing": [],
}
WORKER: dict[str, Any] = {
    "member": "worker-1",
    "client": "host a",
    "session_timeout_ms": 30000,
    "idle_ms": 12,
    "generation": 3,
    "owned": [7],
    "pending": [1],
}
BILLING: dict[str, Any] = {
    "group": "billing",
    "state": 1,
    "generation": 3,
    "deadline_ms": 0,
    "strategy": "range",
    "members": [WORKER],
    "topics": [{"topic": ORDERS, "position": DONE}],
}
REFUSALS = (
    *(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
    999,
)
"""Every reason for which a coordinator refuses, and one that has no name yet."""
EXAMPLES: tuple[tuple[Struct, tuple[Example, ...]], ...] = (
    (TOPIC, (named("known", "A topic of which all is known.", **ORDERS),
             named("unknown", "One of which only name and number are.", **UNKNOWN))),
    (POSITION, (named("done", "How far a group is.", **DONE),
                named("no-fingerprint", "Without a fingerprint.", **DONE | {"fingerprint": b""}),
                named("largest", "The largest numbers.", offset=MAX64, generation=MAX64,
                      committed_at_ns=MAX64, fingerprint=bytes(300)))),
    (TOPIC_POSITION, (named("done", "With a position.", topic=ORDERS, position=DONE),
                      named("new", "Without one.", topic=ORDERS, position=None))),
    (
        JOIN,
        (
            named("again", "A member that comes back.", **JOINING),
            named("new", "A new one that leaves all to the coordinator.", **JOINING | {
                "member": "", "generation": 0, "strategy": "", "client": "", "metadata": b"",
                "topics": [UNKNOWN], "owned": []}),
            named("longest", "The longest names and times.", **JOINING | {
                "group": "g" * 255, "member": "m" * 255, "session_timeout_ms": MAX32,
                "rebalance_timeout_ms": MAX32}),
            named("standing", "With its secret and the generation of its topic.", **JOINING | {
                "standing": [{"secret": MAX64, "since": [3]}]}),
        ),
    ),
    (
        JOINED,
        tuple(
            named(name, f"State {state}.", member="worker-1", generation=3, state=state,
                  session_timeout_ms=30000, heartbeat_interval_ms=10000, strategy="range")
            for state, name in ((1, "stable"), (0, "empty"), (2, "rebalancing"))
        ),
    ),
    (SYNC, (named("two", "Two topics are held.", **SOMEBODY, owned=[1, 7]),
            named("none", "None is.", **SOMEBODY, owned=[]))),
    (
        ASSIGNMENT,
        (
            named("change", "Topics change hands.", generation=4, state=2, deadline_ms=60000,
                  assigned=[{"topic": ORDERS, "position": DONE},
                            {"topic": UNKNOWN, "position": None}], revoked=[9], lost=[11, 12]),
            named("none", "Nothing to do.", generation=4, state=1, deadline_ms=0, assigned=[],
                  revoked=[], lost=[]),
        ),
    ),
    (HEARTBEAT, (named("plain", "A member lives.", **SOMEBODY),
                 named("largest", "The largest generation.", **SOMEBODY | {"generation": MAX64}))),
    (HEARD, (named("same", "Nothing changed.", generation=3, state=1, changed=False),
             named("changed", "Sync again.", generation=4, state=2, changed=True))),
    (TOPIC_COMMIT, (named("one", "One topic.", topic=ORDERS, offset=1034, fingerprint=b""),)),
    (COMMIT, (named("one", "One topic.", **SOMEBODY, topics=[
        {"topic": ORDERS, "offset": 1034, "fingerprint": bytes(8)}], order=[]),
              named("none", "None.", **SOMEBODY, topics=[], order=[]),
              named("order", "With its place among the member's commits.", **SOMEBODY, topics=[
                  {"topic": ORDERS, "offset": 1034, "fingerprint": b""}],
                  order=[{"sequence": 12, "since": [2]}]))),
    (ORDER, (named("two", "Two topics.", sequence=MAX64, since=[2, MAX64]),
             named("none", "None.", sequence=1, since=[]))),
    (STANDING, (named("two", "Two topics.", secret=MAX64, since=[2, 3]),
                named("none", "A new process.", secret=1, since=[]))),
    (RESULT, (named("done", "Recorded.", topic_id=7, code=0),
              named("not-owner", "Refused.", topic_id=7, code=5))),
    (COMMITTED, (named("two", "One of two.", generation=3, results=[
        {"topic_id": 7, "code": 0}, {"topic_id": 1, "code": 4}]),
                 named("none", "None.", generation=3, results=[]))),
    (ASK, (named("two", "Two topics.", group="billing", topics=[1, 7]),
           named("all", "All topics.", group="billing", topics=[]))),
    (ASKED, (named("one", "One topic.", generation=3, topics=[
        {"topic": ORDERS, "position": DONE}]), named("none", "None.", generation=0, topics=[]))),
    (LEAVE, (named("plain", "A member leaves.", **SOMEBODY),)),
    (LEFT, (named("plain", "The next generation.", generation=4),)),
    (DESCRIBE, (named("one", "One group.", group="billing"), named("all", "All.", group=""))),
    (DESCRIBED_MEMBER, (named("one", "One member.", **WORKER),)),
    (DESCRIBED_GROUP, (named("one", "One group.", **BILLING),
                       named("short", "One of all.", **BILLING | {"members": [], "topics": []}))),
    (DESCRIPTION, (named("one", "One group.", groups=[BILLING]),
                   named("none", "None.", groups=[]))),
    (ERROR, tuple(named(f"code-{code}", f"Code {code}.", code=code, generation=3, message="größer")
                  for code in REFUSALS)),
)  # fmt: skip
"""Each message with its examples; the first is the one that is spoilt."""


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "A message between the members of a consumer group and their coordinator, as the payload",
        "of a control command, or a part of one. A valid one is read as `fields`, exactly to its",
        "end. An invalid one is refused; `reason`, `field` and `offset` say why: it is `short`,",
        "has `trailing` bytes, or a `value` that must not be.",
    ]
    family = Family("group", "GroupMessage", "AMB-38")
    groups = [_group(family, struct, examples) for struct, examples in EXAMPLES]
    return document("group_message", header, used(NOTES, groups), groups)


def _group(family: Family, struct: Struct, examples: tuple[Example, ...]) -> dict[str, Any]:
    code = {"command": CODES[struct.name]} if struct.name in CODES else {}
    return group(family.kind, family.tests(struct, examples), message=struct.name, **code)
