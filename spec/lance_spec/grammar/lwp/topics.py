"""Control payloads about topics, the cluster and who may use them (LWP sections 5 and 7)."""

from construct import (
    Bytes,
    Construct,
    GreedyBytes,
    Int8ul,
    Int16ul,
    Int32ul,
    Int64ul,
    Rebuild,
    this,
)
from construct import len_ as length_of

from lance_spec.enums import Command, PartitionerId
from lance_spec.grammar._vocab import field, lwp, message, topic_id


def _max_age_secs(section: str) -> Construct:
    return field(
        "max_age_secs",
        Int64ul,
        doc="Age beyond which records may be deleted; 0 means no limit",
        unit="seconds",
        section=lwp(section),
        ambiguities=("AMB-08",),
    )


def _max_bytes(section: str) -> Construct:
    return field(
        "max_bytes",
        Int64ul,
        doc="Size of the topic beyond which its oldest records may be deleted; 0 means no limit",
        unit="bytes",
        section=lwp(section),
        ambiguities=("AMB-08",),
    )


CREATE_TOPIC = message(
    "CreateTopic",
    field(
        "name",
        GreedyBytes,
        doc="Topic name as UTF-8",
        section=lwp("5.3"),
        ambiguities=("AMB-24",),
    ),
    doc="Creates a topic",
    section=lwp("5.3"),
    command=Command.CREATE_TOPIC,
    sender="client",
)

DELETE_TOPIC = message(
    "DeleteTopic",
    topic_id("5.6"),
    doc="Deletes a topic and all its data",
    section=lwp("5.6"),
    command=Command.DELETE_TOPIC,
    sender="client",
    ambiguities=("AMB-09", "AMB-26"),
)

LIST_TOPICS = message(
    "ListTopics",
    doc="Asks for all topics",
    section=lwp("5.4"),
    command=Command.LIST_TOPICS,
    sender="client",
)

GET_TOPIC = message(
    "GetTopic",
    topic_id("5.5"),
    doc="Asks for the metadata of one topic",
    section=lwp("5.5"),
    command=Command.GET_TOPIC,
    sender="client",
    ambiguities=("AMB-26", "AMB-34"),
)

SET_RETENTION = message(
    "SetRetention",
    topic_id("5.10"),
    _max_age_secs("5.10"),
    _max_bytes("5.10"),
    doc="Sets the retention policy of a topic",
    section=lwp("5.10"),
    command=Command.SET_RETENTION,
    sender="client",
    ambiguities=("AMB-08", "AMB-09"),
)

CREATE_TOPIC_WITH_RETENTION = message(
    "CreateTopicWithRetention",
    field(
        "name_length",
        Rebuild(Int16ul, length_of(this.name)),
        doc="Length of the name",
        unit="bytes",
        section=lwp("5.11"),
        ambiguities=("AMB-07",),
    ),
    field(
        "name",
        Bytes(this.name_length),
        doc="Topic name as UTF-8",
        section=lwp("5.11"),
        ambiguities=("AMB-24",),
    ),
    _max_age_secs("5.11"),
    _max_bytes("5.11"),
    doc="Creates a topic together with its retention policy",
    section=lwp("5.11"),
    command=Command.CREATE_TOPIC_WITH_RETENTION,
    sender="client",
    ambiguities=("AMB-07",),
)


def _partitioned_name() -> tuple[Construct, Construct]:
    return (
        field(
            "name_length",
            Rebuild(Int16ul, length_of(this.name)),
            doc="Length of the name",
            unit="bytes",
            section="AMB-59",
        ),
        field(
            "name",
            Bytes(this.name_length),
            doc="Name of the partitioned topic as UTF-8",
            section="AMB-59",
            ambiguities=("AMB-24",),
        ),
    )


def _partitions(doc: str) -> Construct:
    return field("partitions", Int32ul, doc=doc, unit="partitions", section="AMB-59")


CREATE_PARTITIONED_TOPIC = message(
    "CreatePartitionedTopic",
    *_partitioned_name(),
    _partitions("How many partitions it has"),
    field(
        "partitioner",
        Int8ul,
        doc="How producers find the partition of a key",
        section="AMB-59",
        enum=PartitionerId,
    ),
    _max_age_secs("5.11"),
    _max_bytes("5.11"),
    doc="Creates a topic of several partitions, all or none",
    section="AMB-59",
    command=Command.CREATE_PARTITIONED_TOPIC,
    sender="client",
    ambiguities=("AMB-59",),
)

ADD_PARTITIONS = message(
    "AddPartitions",
    *_partitioned_name(),
    _partitions("How many partitions it has afterwards"),
    doc="Gives a partitioned topic more partitions; keys move to others",
    section="AMB-59",
    command=Command.ADD_PARTITIONS,
    sender="client",
    ambiguities=("AMB-59",),
)

DELETE_PARTITIONED_TOPIC = message(
    "DeletePartitionedTopic",
    field(
        "name",
        GreedyBytes,
        doc="Name of the partitioned topic as UTF-8",
        section="AMB-59",
        ambiguities=("AMB-24",),
    ),
    doc="Deletes a topic with all its partitions",
    section="AMB-59",
    command=Command.DELETE_PARTITIONED_TOPIC,
    sender="client",
    ambiguities=("AMB-59",),
)

GET_CLUSTER_STATUS = message(
    "GetClusterStatus",
    doc="Asks for the state of the node or cluster",
    section=lwp("16.5"),
    command=Command.GET_CLUSTER_STATUS,
    sender="client",
    ambiguities=("AMB-11",),
)

AUTHENTICATE = message(
    "Authenticate",
    field(
        "token",
        GreedyBytes,
        doc="Bearer token as UTF-8",
        section="AMB-11",
    ),
    doc="Presents a token",
    section="AMB-11",
    command=Command.AUTHENTICATE,
    sender="client",
    ambiguities=("AMB-11",),
)

AUTHENTICATE_RESPONSE = message(
    "AuthenticateResponse",
    field(
        "ok",
        Int8ul,
        doc="Whether the token was accepted",
        section="AMB-11",
        boolean=True,
    ),
    field("message", GreedyBytes, doc="Reason for people, as UTF-8", section="AMB-11"),
    doc="Answers an Authenticate command",
    section="AMB-11",
    command=Command.AUTHENTICATE_RESPONSE,
    sender="server",
    ambiguities=("AMB-11",),
)

TOPIC_RESPONSE = message(
    "TopicResponse",
    field("body", GreedyBytes, doc="JSON about one topic or all of them", section=lwp("5.3")),
    doc="Answers a topic command",
    section=lwp("5.2"),
    command=Command.TOPIC_RESPONSE,
    sender="server",
    ambiguities=("AMB-09",),
)

CLUSTER_STATUS_RESPONSE = message(
    "ClusterStatusResponse",
    field("body", GreedyBytes, doc="JSON about the node or cluster", section="AMB-11"),
    doc="Answers a GetClusterStatus",
    section="AMB-11",
    command=Command.CLUSTER_STATUS_RESPONSE,
    sender="server",
    ambiguities=("AMB-11", "AMB-25"),
)

ERROR_RESPONSE = message(
    "ErrorResponse",
    field(
        "body",
        GreedyBytes,
        doc="JSON with code, message and details, or text, as the dialect has it",
        section=lwp("12.1"),
        ambiguities=("AMB-10",),
    ),
    doc="Refuses a command or a batch",
    section=lwp("5.7"),
    command=Command.ERROR_RESPONSE,
    sender="server",
    ambiguities=("AMB-10",),
)

MESSAGES = (
    CREATE_TOPIC,
    DELETE_TOPIC,
    LIST_TOPICS,
    GET_TOPIC,
    SET_RETENTION,
    CREATE_TOPIC_WITH_RETENTION,
    CREATE_PARTITIONED_TOPIC,
    ADD_PARTITIONS,
    DELETE_PARTITIONED_TOPIC,
    GET_CLUSTER_STATUS,
    AUTHENTICATE,
    AUTHENTICATE_RESPONSE,
    TOPIC_RESPONSE,
    CLUSTER_STATUS_RESPONSE,
    ERROR_RESPONSE,
)
"""Topic commands and the answers that are not data, in reading order."""
