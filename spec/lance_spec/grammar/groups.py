"""Commands between the members of a consumer group and their coordinator (AMB-38).

Every request is answered in order, by the answer named after it or by a GroupError:

1. A member sends GroupJoin and learns its name, the generation and how often to send heartbeats.
2. It sends GroupSync with the topics that it holds and learns which topics are its own, from
   which offset, and which ones to give up and until when.
3. It sends GroupHeartbeat. An answer with ``changed`` tells it to sync again: it finishes and
   commits the topics to be revoked, and the next sync, which no longer lists them as held,
   releases them. Topics that are still held at the deadline go to others and count as lost.
4. It sends GroupCommit with, for each topic, the generation of the assignment that gave it the
   topic, and a number that rises with each of its commits. A commit of an earlier assignment is
   refused as stale; one that is older than a commit that was recorded changes nothing.
5. It sends GroupLeave; or it is silent for its session timeout and taken for dead.

The generation rises with every new division of the topics. It never falls, not even when the
coordinator starts anew: members that join again bring the last one that they knew.

What stands at the end of GroupJoin (``standing``) and GroupCommit (``order``) was added later.
Older members send nothing there, and their requests mean what they meant: every topic that they
hold or commit counts as assigned under the generation of the request.
"""

from enum import IntEnum
from typing import Any, Final

from construct import Construct, Int8ul, Int16ul, Int32ul, Int64ul

from lance_spec.enums import Command
from lance_spec.grammar._composed import Blob, Filled, Many, Maybe, Nested
from lance_spec.grammar._vocab import Declaration, Grammar, field, message


class GroupState(IntEnum):
    """What a group is doing."""

    EMPTY = 0
    """It has no members; what they committed is kept."""
    STABLE = 1
    """Every topic is with its owner."""
    REBALANCING = 2
    """Topics change hands: some owner has not given one up yet."""


class GroupErrorCode(IntEnum):
    """Why a coordinator refused a request."""

    NONE = 0
    """Nothing is wrong; only in answers that judge topics one by one."""
    INVALID_REQUEST = 1
    """The request cannot be read, or a value in it is not allowed."""
    UNKNOWN_GROUP = 2
    """There is no such group."""
    UNKNOWN_MEMBER = 3
    """The member never joined, left, or was taken for dead: what it held is lost; join again."""
    STALE_GENERATION = 4
    """Topics have changed hands since the generation that was named: sync."""
    NOT_OWNER = 5
    """The topic belongs to another member, or to none."""
    UNKNOWN_TOPIC = 6
    """The topic is none of the group's, or not the one of that name any more."""
    NAME_TAKEN = 7
    """Another connection has the member's name and is alive."""
    STRATEGY_REFUSED = 8
    """The coordinator does not know the strategy, or the group works under another one."""
    LIMIT_EXCEEDED = 9
    """Too many groups, members, topics or bytes."""
    STORE_FAILED = 10
    """Offsets could not be read or stored; the request may be repeated."""
    NOT_COORDINATOR = 11
    """The coordinator stops, or is not the group's; look for it again."""


_SECTION: Final = "AMB-38"
_NAME: Final = Blob(Int8ul, text=True)


def _field(name: str, parser: Construct, doc: str, **facts: Any) -> Construct:
    return field(name, parser, doc=doc, section=_SECTION, **facts)


def _part(name: str, *fields: Construct, doc: str, rows: tuple[str, ...] = ()) -> Declaration:
    return message(name, *fields, doc=doc, section=_SECTION, ambiguities=("AMB-38", *rows))


def _message(name: str, command: Command, *fields: Construct, doc: str) -> Declaration:
    """Return a command; requests have even codes, answers odd ones."""
    return message(
        name,
        *fields,
        doc=doc,
        section=_SECTION,
        command=command,
        sender="server" if command % 2 else "client",
        ambiguities=("AMB-38",),
    )


def _generation(doc: str) -> Construct:
    return _field("generation", Int64ul, doc)


def _milliseconds(name: str, doc: str) -> Construct:
    return _field(name, Int32ul, doc, unit="milliseconds", minimum=1, maximum=2**32 - 1)


def _state() -> Construct:
    return _field("state", Int8ul, "What the group is doing", enum=GroupState, closed=True)


def _topic_ids(name: str, doc: str) -> Construct:
    return _field(name, Many(Int32ul, Int32ul), doc)


_GROUP: Final = _field("group", _NAME, "Name of the group")
_MEMBER: Final = _field("member", _NAME, "Name of the member, unique within the group")
_OFFSET: Final = _field(
    "offset", Int64ul, "Byte offset up to which the group is done", unit="bytes"
)
_FINGERPRINT: Final = _field(
    "fingerprint",
    Blob(Int16ul),
    "Fingerprint of the whole records before the offset; empty where none was taken",
    ambiguities=("AMB-30",),
)

GROUP_TOPIC = _part(
    "GroupTopic",
    _field("topic_id", Int32ul, "Number of the topic"),
    _field("created_at", Int64ul, "When it was created, 0 where not known", unit="seconds"),
    _field("topic_epoch", Int64ul, "Which topic of this name it is, 0 where not known"),
    _field("name", _NAME, "Name of the topic"),
    doc="Identity of a topic",
)
GROUP_POSITION = _part(
    "GroupPosition",
    _OFFSET,
    _generation("Generation under which it was committed"),
    _field("committed_at_ns", Int64ul, "When it was committed", unit="nanoseconds"),
    _FINGERPRINT,
    doc="How far a group has come in a topic",
)
TOPIC_POSITION = _part(
    "TopicPosition",
    _field("topic", Nested(GROUP_TOPIC), "The topic"),
    _field("position", Maybe(Nested(GROUP_POSITION)), "Where one was committed, how far it is"),
    doc="A topic and how far the group has come in it",
)
MEMBER_STANDING = _part(
    "MemberStanding",
    _field("secret", Int64ul, "Random number of the member's process, 0 for none"),
    _field(
        "since",
        Many(Int32ul, Int64ul),
        "Generation under which each topic that it still holds was assigned to it, in their order",
    ),
    doc="Proves that a member that joins again is the one that the coordinator knows",
    rows=("AMB-54",),
)
GROUP_JOIN = _message(
    "GroupJoin",
    Command.GROUP_JOIN,
    _GROUP,
    _field("member", _NAME, "Name that the member wants; empty leaves it to the coordinator"),
    _generation("Last generation that the member knew, 0 for none"),
    _milliseconds("session_timeout_ms", "Silence after which the member is taken for dead"),
    _milliseconds("rebalance_timeout_ms", "Time that the member needs to give topics up"),
    _field("strategy", _NAME, "Strategy that divides the topics; empty leaves it open"),
    _field("client", _NAME, "What the member is, for people: program, host, process"),
    _field("metadata", Blob(Int16ul), "Anything that a custom strategy wants to know"),
    _field("topics", Many(Int32ul, Nested(GROUP_TOPIC)), "Topics that the member reads"),
    _topic_ids("owned", "Topics that it still holds from before"),
    _field("standing", Filled(Nested(MEMBER_STANDING)), "At most one; none from older members"),
    doc="Joins a group, or joins it again",
)
GROUP_JOIN_ACK = _message(
    "GroupJoinAck",
    Command.GROUP_JOIN_ACK,
    _MEMBER,
    _generation("Generation of the group with the member"),
    _state(),
    _milliseconds("session_timeout_ms", "Silence after which the member is taken for dead"),
    _milliseconds("heartbeat_interval_ms", "How often the member shows that it lives"),
    _field("strategy", _NAME, "Strategy that the group works under"),
    doc="Answers a GroupJoin",
)
GROUP_SYNC = _message(
    "GroupSync",
    Command.GROUP_SYNC,
    _GROUP,
    _MEMBER,
    _generation("Last generation that the member knew"),
    _topic_ids("owned", "Topics that the member holds; those left out are released"),
    doc="Asks for the member's topics and releases others",
)
GROUP_ASSIGNMENT = _message(
    "GroupAssignment",
    Command.GROUP_ASSIGNMENT,
    _generation("Generation of this assignment; the member's commits carry it"),
    _state(),
    _field("deadline_ms", Int32ul, "Time left to release what is revoked", unit="milliseconds"),
    _field("assigned", Many(Int32ul, Nested(TOPIC_POSITION)), "Topics that the member owns now"),
    _topic_ids("revoked", "Topics to finish, commit and release; the member owns them until then"),
    _topic_ids("lost", "Topics that the member held too long and does not own any more"),
    doc="Answers a GroupSync",
)
GROUP_HEARTBEAT = _message(
    "GroupHeartbeat",
    Command.GROUP_HEARTBEAT,
    _GROUP,
    _MEMBER,
    _generation("Generation of the member's last sync"),
    doc="Shows that a member lives",
)
GROUP_HEARTBEAT_ACK = _message(
    "GroupHeartbeatAck",
    Command.GROUP_HEARTBEAT_ACK,
    _generation("Generation of the group"),
    _state(),
    _field("changed", Int8ul, "The member's topics have changed: sync", boolean=True),
    doc="Answers a GroupHeartbeat",
)
TOPIC_COMMIT = _part(
    "TopicCommit",
    _field("topic", Nested(GROUP_TOPIC), "The topic"),
    _OFFSET,
    _FINGERPRINT,
    doc="How far a member has come in one of its topics",
)
COMMIT_ORDER = _part(
    "CommitOrder",
    _field("sequence", Int64ul, "Rises with each commit of the member's process, from 1 on"),
    _field(
        "since",
        Many(Int32ul, Int64ul),
        "Generation under which each topic was assigned to the member, in their order",
    ),
    doc="Which of two commits is the later one, and whose they are",
    rows=("AMB-54",),
)
GROUP_COMMIT = _message(
    "GroupCommit",
    Command.GROUP_COMMIT,
    _GROUP,
    _MEMBER,
    _generation("Generation of the member's last sync; refused when it is stale"),
    _field("topics", Many(Int32ul, Nested(TOPIC_COMMIT)), "How far each topic is"),
    _field("order", Filled(Nested(COMMIT_ORDER)), "At most one; none from older members"),
    doc="Records how far a member has come",
)
TOPIC_COMMIT_RESULT = _part(
    "TopicCommitResult",
    _field("topic_id", Int32ul, "Number of the topic"),
    _field("code", Int16ul, "Why it was refused, 0 where it was recorded", enum=GroupErrorCode),
    doc="What became of the commit of one topic",
)
GROUP_COMMIT_ACK = _message(
    "GroupCommitAck",
    Command.GROUP_COMMIT_ACK,
    _generation("Generation of the group"),
    _field(
        "results",
        Many(Int32ul, Nested(TOPIC_COMMIT_RESULT)),
        "What became of each topic, in the order of the commit",
    ),
    doc="Answers a GroupCommit once what it recorded is durable",
)
GROUP_FETCH_COMMITTED = _message(
    "GroupFetchCommitted",
    Command.GROUP_FETCH_COMMITTED,
    _GROUP,
    _topic_ids("topics", "Topics that are asked about; none asks about all"),
    doc="Asks how far a group has come, from members and others",
)
GROUP_COMMITTED = _message(
    "GroupCommitted",
    Command.GROUP_COMMITTED,
    _generation("Generation of the group"),
    _field("topics", Many(Int32ul, Nested(TOPIC_POSITION)), "How far each topic is"),
    doc="Answers a GroupFetchCommitted",
)
GROUP_LEAVE = _message(
    "GroupLeave",
    Command.GROUP_LEAVE,
    _GROUP,
    _MEMBER,
    _generation("Generation of the member's last sync"),
    doc="Leaves a group, whose other members take over at once",
)
GROUP_LEAVE_ACK = _message(
    "GroupLeaveAck",
    Command.GROUP_LEAVE_ACK,
    _generation("Generation of the group without the member"),
    doc="Answers a GroupLeave",
)
GROUP_DESCRIBE = _message(
    "GroupDescribe",
    Command.GROUP_DESCRIBE,
    _field("group", _NAME, "Name of the group; empty asks for the names of all"),
    doc="Asks about a group, or for the groups there are",
)
DESCRIBED_MEMBER = _part(
    "DescribedMember",
    _MEMBER,
    _field("client", _NAME, "What the member says that it is"),
    _milliseconds("session_timeout_ms", "Silence after which the member is taken for dead"),
    _field("idle_ms", Int32ul, "Silence so far", unit="milliseconds"),
    _generation("Generation of the member's last sync"),
    _topic_ids("owned", "Topics that it owns"),
    _topic_ids("pending", "Topics that it will own when others have released them"),
    doc="One member of a group",
)
DESCRIBED_GROUP = _part(
    "DescribedGroup",
    _GROUP,
    _state(),
    _generation("Generation of the group"),
    _field(
        "deadline_ms",
        Int32ul,
        "Time left to release topics, 0 outside of a rebalance",
        unit="milliseconds",
    ),
    _field("strategy", _NAME, "Strategy that divides the topics"),
    _field(
        "members",
        Many(Int32ul, Nested(DESCRIBED_MEMBER)),
        "Its members by name; none where all groups were asked for",
    ),
    _field(
        "topics",
        Many(Int32ul, Nested(TOPIC_POSITION)),
        "How far each topic is; none where all groups were asked for",
    ),
    doc="One group",
)
GROUP_DESCRIPTION = _message(
    "GroupDescription",
    Command.GROUP_DESCRIPTION,
    _field("groups", Many(Int32ul, Nested(DESCRIBED_GROUP)), "The groups by name"),
    doc="Answers a GroupDescribe",
)
GROUP_ERROR = _message(
    "GroupError",
    Command.GROUP_ERROR,
    _field("code", Int16ul, "Why the request was refused", enum=GroupErrorCode),
    _generation("Generation of the group, 0 where there is none"),
    _field("message", Blob(Int16ul, text=True), "Why, for people"),
    doc="Answers any request that was refused",
)

GRAMMAR: Final = Grammar(
    name="groups",
    doc="Messages of consumer groups: payloads of LWP control commands 0x60 to 0x6F.",
    sources=("lance_spec/grammar/groups.py",),
    messages=(
        GROUP_TOPIC,
        GROUP_POSITION,
        TOPIC_POSITION,
        MEMBER_STANDING,
        GROUP_JOIN,
        GROUP_JOIN_ACK,
        GROUP_SYNC,
        GROUP_ASSIGNMENT,
        GROUP_HEARTBEAT,
        GROUP_HEARTBEAT_ACK,
        TOPIC_COMMIT,
        COMMIT_ORDER,
        GROUP_COMMIT,
        TOPIC_COMMIT_RESULT,
        GROUP_COMMIT_ACK,
        GROUP_FETCH_COMMITTED,
        GROUP_COMMITTED,
        GROUP_LEAVE,
        GROUP_LEAVE_ACK,
        GROUP_DESCRIBE,
        DESCRIBED_MEMBER,
        DESCRIBED_GROUP,
        GROUP_DESCRIPTION,
        GROUP_ERROR,
    ),
    composed=True,
)
