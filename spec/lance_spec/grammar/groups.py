"""Commands between the members of a consumer group and their coordinator (AMB-38)."""

from construct import Bytes, Construct, GreedyBytes, Int16ul, Int32ul, Int64ul, Rebuild, this
from construct import len_ as length_of

from lance_spec.enums import Command
from lance_spec.grammar._vocab import Declaration, field, message

_SECTION = "AMB-38"


def _group() -> tuple[Construct, Construct]:
    return (
        field(
            "group_length",
            Rebuild(Int16ul, length_of(this.group)),
            doc="Length of the group's name",
            unit="bytes",
            section=_SECTION,
            minimum=1,
            maximum=255,
        ),
        field(
            "group", Bytes(this.group_length), doc="Name of the group as UTF-8", section=_SECTION
        ),
    )


def _member() -> Construct:
    return field(
        "member",
        GreedyBytes,
        doc="Name of the member as UTF-8, unique within the group",
        section=_SECTION,
    )


def _generation(doc: str) -> Construct:
    return field("generation", Int64ul, doc=doc, section=_SECTION)


def _topic_id() -> Construct:
    return field("topic_id", Int32ul, doc="Topic that is read", section=_SECTION)


def _offset() -> Construct:
    return field(
        "offset",
        Int64ul,
        doc="Byte offset up to which the group is done",
        unit="bytes",
        section=_SECTION,
    )


def _request(name: str, command: Command, doc: str, *before: Construct) -> Declaration:
    return message(
        name,
        *before,
        *_group(),
        _member(),
        doc=doc,
        section=_SECTION,
        command=command,
        sender="client",
        ambiguities=("AMB-38",),
    )


def _answer(name: str, command: Command, doc: str, *fields: Construct) -> Declaration:
    return message(
        name,
        *fields,
        doc=doc,
        section=_SECTION,
        command=command,
        sender="server",
        ambiguities=("AMB-38",),
    )


GROUP_JOIN = _request(
    "GroupJoin",
    Command.GROUP_JOIN,
    "Joins a group; answered with an assignment",
    field(
        "session_timeout_ms",
        Int32ul,
        doc="Silence after which the coordinator takes the member for dead",
        unit="milliseconds",
        section=_SECTION,
        minimum=1,
        maximum=2**32 - 1,
    ),
)

GROUP_ASSIGNMENT = _answer(
    "GroupAssignment",
    Command.GROUP_ASSIGNMENT,
    "Says which topics a member reads, and from where",
    _generation("Rises whenever topics change hands"),
    field(
        "assigned",
        GreedyBytes,
        doc="Topics and offsets back to back, each an AssignedTopic",
        section=_SECTION,
    ),
)

ASSIGNED_TOPIC = message(
    "AssignedTopic",
    _topic_id(),
    _offset(),
    doc="One topic of an assignment",
    section=_SECTION,
    sender="server",
    ambiguities=("AMB-38",),
)

GROUP_GET_ASSIGNMENT = _request(
    "GroupGetAssignment",
    Command.GROUP_GET_ASSIGNMENT,
    "Asks for the member's assignment after the generation has risen",
)

GROUP_HEARTBEAT = _request(
    "GroupHeartbeat",
    Command.GROUP_HEARTBEAT,
    "Shows that a member lives",
    _generation("Generation that the member works under"),
)

GROUP_HEARTBEAT_ACK = _answer(
    "GroupHeartbeatAck",
    Command.GROUP_HEARTBEAT_ACK,
    "Answers a heartbeat; a higher generation tells the member to ask for its assignment",
    _generation("Generation of the group"),
)

GROUP_COMMIT = _request(
    "GroupCommit",
    Command.GROUP_COMMIT,
    "Records how far a group has come in a topic; refused under a stale generation",
    _generation("Generation under which the member was given the topic"),
    _topic_id(),
    _offset(),
)

GROUP_COMMIT_ACK = _answer(
    "GroupCommitAck",
    Command.GROUP_COMMIT_ACK,
    "Answers a commit that was recorded",
    _generation("Generation of the group"),
    _topic_id(),
    _offset(),
)

GROUP_LEAVE = _request(
    "GroupLeave",
    Command.GROUP_LEAVE,
    "Leaves a group, whose other members take over at once",
    _generation("Generation that the member worked under"),
)

GROUP_LEAVE_ACK = _answer(
    "GroupLeaveAck",
    Command.GROUP_LEAVE_ACK,
    "Answers a member that left",
    _generation("Generation of the group without the member"),
)

MESSAGES = (
    GROUP_JOIN,
    GROUP_ASSIGNMENT,
    ASSIGNED_TOPIC,
    GROUP_GET_ASSIGNMENT,
    GROUP_HEARTBEAT,
    GROUP_HEARTBEAT_ACK,
    GROUP_COMMIT,
    GROUP_COMMIT_ACK,
    GROUP_LEAVE,
    GROUP_LEAVE_ACK,
)
"""Commands of consumer groups and their answers, in reading order."""
