"""The first requests on every connection.

A linear procedure, written as a generator that the session steps: a Keepalive, which proves
the dialect and that an LWP server is there; Authenticate, when there is a token; and the
topic's number, when the topic is given by name. So no control request ever travels beside
Ingest frames, where a text error could not be told apart (AMB-10).
"""

import shlex
import unicodedata
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from lance_sdk._api.arguments.redaction import Redaction
from lance_sdk.errors import (
    AuthenticationFailed,
    ClusterNotReady,
    TopicAlreadyExists,
    TopicDeleted,
    TopicNotFound,
)
from lance_sdk.types import PartitionedTopic
from lance_spec.bodies import TopicInfo, decode_topic, decode_topics, is_complete
from lance_spec.enums import Command
from lance_spec.limits import DEFAULT_TOPIC_ID
from lance_spec.messages.lwp import Authenticate, AuthenticateResponse, CreateTopic, GetTopic

LOOKS = 50
"""How often a topic that somebody else is creating is looked for."""
BETWEEN_LOOKS = 0.02
"""Seconds; creating a topic takes a server a few flushes of its disk."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a connection is for.

    Attributes:
        server_url: the server's URL without secrets, for advice.
        topic: name of the topic to resolve, or None.
        topic_id: number of the topic to look up, or None.
        create_topic: create the topic when its name is unknown; None where that is not an option.
        token: to authenticate with, or None.
    """

    server_url: str
    topic: str | None = None
    topic_id: int | None = None
    create_topic: bool | None = None
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Ping:
    """Step: send a Keepalive and wait for its answer."""

    phase: str = "handshake"


@dataclass(frozen=True, slots=True)
class Ask:
    """Step: send a control request and wait for its answer."""

    phase: str
    command: Command
    payload: bytes
    expects: Command


@dataclass(frozen=True, slots=True)
class Pause:
    """Step: wait before the next one."""

    seconds: float
    phase: str = "topic"


Step: TypeAlias = Ping | Ask | Pause
Handshake: TypeAlias = Generator[Step, bytes, TopicInfo | None]


def handshake(plan: Plan) -> Handshake:
    """Yield the steps; return the topic, when one is resolved.

    Each answer's payload is sent in, an ErrorResponse is thrown in as a `ServerError`.
    """
    yield Ping()
    if plan.token is not None:
        yield from _authenticate(plan.token)
    if plan.topic is not None:
        return (yield from _resolve(plan))
    if plan.topic_id not in {None, DEFAULT_TOPIC_ID}:
        return (yield from _look_up(plan))
    return None


def _authenticate(token: str) -> Generator[Step, bytes, None]:
    answer = yield Ask(
        "auth",
        Command.AUTHENTICATE,
        Authenticate(token=token.encode()).encode(),
        Command.AUTHENTICATE_RESPONSE,
    )
    response = AuthenticateResponse.decode(answer)
    if not response.ok:
        words = bytes(response.message).decode(errors="replace")
        raise AuthenticationFailed(Redaction(token).text(words))


def _resolve(plan: Plan) -> Handshake:
    wanted = plan.topic or ""
    answer = yield from _list_answer()
    topics = decode_topics(answer)
    if (topic := find_topic(topics, wanted)) is not None:
        return topic
    if (whole := find_partitioned(topics, wanted)) is not None:
        raise TopicNotFound(partitioned_topic(whole, plan.server_url))
    if not is_complete(answer):
        raise uncertain_topic(wanted, plan.server_url)
    if not plan.create_topic:
        advice = "" if plan.create_topic is None else " or pass create_topic=True"
        raise TopicNotFound(missing_topic(wanted, topics, plan.server_url) + advice)
    name = CreateTopic(name=wanted.encode())
    try:
        answer = yield Ask("topic", Command.CREATE_TOPIC, name.encode(), Command.TOPIC_RESPONSE)
    except TopicAlreadyExists:  # somebody else was faster, but need not have finished yet
        for _ in range(LOOKS):
            if (topic := find_topic((yield from _listed()), wanted)) is not None:
                return topic
            yield Pause(BETWEEN_LOOKS)
        raise
    return decode_topic(answer)


def _list_answer() -> Generator[Step, bytes, bytes]:
    answer = yield Ask("topic", Command.LIST_TOPICS, b"", Command.TOPIC_RESPONSE)
    return answer


def _listed() -> Generator[Step, bytes, list[TopicInfo]]:
    return decode_topics((yield from _list_answer()))


def find_topic(topics: list[TopicInfo], name: str) -> TopicInfo | None:
    """Return the topic of this name, compared as Unicode NFC (AMB-24)."""
    wanted = unicodedata.normalize("NFC", name)
    same = (topic for topic in topics if unicodedata.normalize("NFC", topic.name) == wanted)
    return next(same, None)


def partitioned_topics(topics: Iterable[TopicInfo]) -> list[PartitionedTopic]:
    """Return the partitioned topics among the topics of a server, by name (AMB-59)."""
    parts: dict[str, dict[int, TopicInfo]] = {}
    for topic in topics:
        if (part := topic.partition) is not None:
            parts.setdefault(part.topic, {})[part.index] = topic
    found = []
    for name, by_index in sorted(parts.items()):
        in_order = tuple(by_index[index] for index in sorted(by_index))
        told = in_order[0].partition
        assert told is not None, "it is a partition"
        found.append(PartitionedTopic(name, told.count, told.partitioner, in_order))
    return found


def find_partitioned(topics: Iterable[TopicInfo], name: str) -> PartitionedTopic | None:
    """Return the partitioned topic of this name, compared as Unicode NFC; None without one."""
    wanted = unicodedata.normalize("NFC", name)
    return next((each for each in partitioned_topics(topics) if each.name == wanted), None)


def partitioned_topic(whole: PartitionedTopic, server_url: str) -> str:
    """Return the sentence that says that a topic is not one but several, and what to do."""
    first, last = whole.names[0], whole.names[-1]
    several = first if first == last else f"{first} to {last}"
    return (
        f"topic {whole.name!r} at {server_url} is a partitioned topic ({several}): write to it "
        "with TopicsProducer and read it with TopicsConsumer or GroupConsumer, or name one of "
        "its partitions"
    )


def _look_up(plan: Plan) -> Handshake:
    payload = GetTopic(topic_id=plan.topic_id or 0).encode()
    try:
        answer = yield Ask("topic", Command.GET_TOPIC, payload, Command.TOPIC_RESPONSE)
    except (TopicNotFound, TopicDeleted) as error:
        raise type(error)(
            f"no topic has the number {plan.topic_id} at {plan.server_url}; "
            f"see `lwp topics list --url {plan.server_url}`",
            details=error.details,
        ) from None
    return decode_topic(answer)


def uncertain_topic(name: str, server_url: str) -> ClusterNotReady:
    """Return the error for a topic that is unknown to a node which may lag behind its cluster."""
    return ClusterNotReady(
        f"{no_topic(name, server_url)} as far as the node knows that was asked, and it cannot read "
        "the shared log of its cluster now; ask another node, or try again"
    )


def missing_topic(name: str, topics: Iterable[TopicInfo], server_url: str) -> str:
    """Return the sentence that says that a topic is missing, and what to do.

    Args:
        name: the topic's name.
        topics: those that are there; one of nearly that name may have been meant.
        server_url: where.
    """
    near = near_topic(name, topics)
    question = "" if near is None else f"did you mean {near!r}? If not, "
    return (
        f"{no_topic(name, server_url)}; {question}create it with "
        f"`lwp topics create {shlex.quote(name)} --url {server_url}`"
    )


def near_topic(name: str, topics: Iterable[TopicInfo]) -> str | None:
    """Return the name of a topic that is there and was probably meant; None without one."""
    import difflib  # noqa: PLC0415 - only for what is misspelt

    close = difflib.get_close_matches(name, [topic.name for topic in topics], n=1)
    return close[0] if close else None


def no_topic(name: str, server_url: str) -> str:
    """Return the sentence that says that a topic is missing."""
    return f"topic {name!r} does not exist at {server_url}"
