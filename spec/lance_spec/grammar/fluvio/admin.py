"""What is asked of the SC of Fluvio: watching, creating, deleting and listing objects.

An object request names its type in a text; what follows depends on that text and stands behind
its length. Each type is a message of its own here, so that nothing is read by guesswork.
"""

from enum import IntEnum

from construct import Const, Construct, Int8ub, Int16sb, Int32sb, Int32ub, Int64sb

from lance_spec.grammar._composed import Blob, Many, Maybe, Nested, Sized
from lance_spec.grammar._vocab import Declaration
from lance_spec.grammar.fluvio._primitives import (
    OPTION_STRING,
    STRING,
    corrected,
    corrected_message,
    flag,
    vec,
)
from lance_spec.grammar.fluvio.errors import OUTCOME
from lance_spec.grammar.fluvio.objects import (
    FIRST_OBJECT_VERSION,
    PARTITION_OBJECT,
    SPU_OBJECT,
    TOPIC_OBJECT,
    TOPIC_SPEC,
)


class ChangeKind(IntEnum):
    """What happened to an object."""

    UPDATE = 0
    """It is new or different."""
    DELETE = 1
    """It is gone."""


def _type(name: bytes) -> Construct:
    return corrected("object_type", Const(name, Blob(Int16sb)), "Type of the objects, in letters")


WATCH = corrected_message(
    "Watch",
    corrected("epoch", Int64sb, "State the client has; clients send 0"),
    flag("summary", "Whether parts of the objects may be left out"),
    doc="What a watch is to bring",
)
WATCH_REQUEST = corrected_message(
    "WatchRequest",
    corrected("object_type", STRING, "SPU, Topic or Partition"),
    corrected("watch", Sized(Int32ub, Nested(WATCH)), "What the watch is to bring"),
    doc="Opens a stream of changes; key 1004 of the SC",
    since=FIRST_OBJECT_VERSION,
)


def _watched(kind: str, name: bytes, item: Declaration) -> tuple[Declaration, ...]:
    """Return the messages that bring the objects of one type."""
    change = corrected_message(
        f"{kind}Change",
        corrected("change", Int8ub, "What happened", enum=ChangeKind, closed=True),
        corrected("object", Nested(item), "The object"),
        doc=f"A change of one {kind} object",
    )
    update = corrected_message(
        f"{kind}Update",
        corrected("epoch", Int64sb, "State that this leads to"),
        corrected("changes", vec(change), "What changed; used only where ``all`` is empty"),
        corrected("all", vec(item), "All objects, in the first response of a watch"),
        doc=f"The {kind} objects, or what changed",
    )
    response = corrected_message(
        f"Watch{kind}Response",
        _type(name),
        corrected("update", Sized(Int32ub, Nested(update)), "The objects, or what changed"),
        doc=f"One piece of a watch of {kind} objects",
        since=FIRST_OBJECT_VERSION,
    )
    listed = corrected_message(
        f"List{kind}Response",
        _type(name),
        corrected("objects", Sized(Int32ub, vec(item)), "The objects"),
        doc=f"Answers a ListRequest for {kind} objects",
        since=FIRST_OBJECT_VERSION,
    )
    return (change, update, response, listed)


LISTING = corrected_message(
    "Listing",
    corrected("names", Many(Int32sb, STRING), "Names to look for; none: all"),
    flag("summary", "Whether parts of the objects may be left out"),
    flag("system", "Whether the cluster's own objects are wanted"),
    doc="Which objects are wanted",
)
LIST_REQUEST = corrected_message(
    "ListRequest",
    corrected("object_type", STRING, "SPU, Topic or Partition"),
    corrected("listing", Sized(Int32ub, Nested(LISTING)), "Which are wanted"),
    doc="Asks for objects; key 1003 of the SC",
    since=FIRST_OBJECT_VERSION,
)
TOPIC_CREATION = corrected_message(
    "TopicCreation",
    corrected("name", STRING, "Name of the topic"),
    flag("dry_run", "Whether to check the request and do nothing"),
    corrected("timeout", Maybe(Int32ub), "How long to wait", unit="milliseconds"),
    corrected("spec", Nested(TOPIC_SPEC), "What it is to be"),
    doc="A topic to create",
)
CREATE_TOPIC_REQUEST = corrected_message(
    "CreateTopicRequest",
    _type(b"Topic"),
    corrected("creation", Sized(Int32ub, Nested(TOPIC_CREATION)), "The topic"),
    doc="Creates a topic; key 1001 of the SC",
    since=FIRST_OBJECT_VERSION,
)
TOPIC_DELETION = corrected_message(
    "TopicDeletion",
    corrected("name", STRING, "Name of the topic"),
    flag("force", "Whether a topic of the cluster may be deleted"),
    doc="A topic to delete",
)
DELETE_TOPIC_REQUEST = corrected_message(
    "DeleteTopicRequest",
    _type(b"Topic"),
    corrected("deletion", Sized(Int32ub, Nested(TOPIC_DELETION)), "The topic"),
    doc="Deletes a topic; key 1002 of the SC",
    since=FIRST_OBJECT_VERSION,
)
STATUS = corrected_message(
    "Status",
    corrected("name", STRING, "Name of the object"),
    corrected("outcome", Nested(OUTCOME), "Whether it succeeded"),
    corrected("message", OPTION_STRING, "Why not, for people"),
    doc="Answers a request to create or delete",
)

MESSAGES = (
    WATCH,
    WATCH_REQUEST,
    *_watched("Spu", b"SPU", SPU_OBJECT),
    *_watched("Topic", b"Topic", TOPIC_OBJECT),
    *_watched("Partition", b"Partition", PARTITION_OBJECT),
    LISTING,
    LIST_REQUEST,
    TOPIC_CREATION,
    CREATE_TOPIC_REQUEST,
    TOPIC_DELETION,
    DELETE_TOPIC_REQUEST,
    STATUS,
)
"""Requests to the SC, in reading order."""
