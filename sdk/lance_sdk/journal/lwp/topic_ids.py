"""Which number each topic of a slot has at the server at hand."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from lance_sdk._protocol.connection import Connection, Request
from lance_sdk._protocol.handshake import find_topic
from lance_sdk.errors import (
    InvalidTopicName,
    RemoteProtocolError,
    ServerError,
    TopicAlreadyExists,
)
from lance_sdk.journal.lwp.metadata import SlotMetadata
from lance_sdk.journal.lwp.refusals import category_of
from lance_sdk.journal.rejections import Category
from lance_spec.bodies import TopicInfo, decode_topic, decode_topics, is_complete
from lance_spec.enums import Command
from lance_spec.errors import EncodeError
from lance_spec.messages.lwp import CreateTopic
from lance_spec.messages.store_forward import SlotTopic
from lance_spec.names import check_topic_name

OnMissing: TypeAlias = Literal["create", "hold", "dead_letter"]
ON_MISSING: Final = ("create", "hold", "dead_letter")


@dataclass(frozen=True, slots=True)
class TopicMissing:
    """Why a topic has no number at this server.

    Attributes:
        text: for people.
        hold: whether to wait and look again; otherwise the frame is rejected.
        bury: whether it goes to the dead-letter file whatever the policies say.
        category: as what it is rejected.
        news: whether this was not told before.
    """

    text: str
    hold: bool = False
    bury: bool = False
    category: Category = Category.UNSUPPORTED
    news: bool = True


OnRouted: TypeAlias = Callable[[TopicMissing | None, float], None]


class TopicIds:
    """Topic numbers, found when they are needed and good for one connection.

    Args:
        metadata: the slot's topics; what the server says of them is kept there.
        on_missing: ``create`` a topic that does not exist, ``hold`` everything until somebody
            does, or ``dead_letter`` its frames.
        notice: told of what people should know.

    Attributes:
        asking: whether an answer is awaited.
    """

    def __init__(
        self, metadata: SlotMetadata, on_missing: OnMissing, notice: Callable[[str], None]
    ) -> None:
        self._metadata = metadata
        self._on_missing = on_missing
        self._notice = notice
        self._known: dict[int, int] = {}
        self._told: set[int] = set()
        self.asking = False

    def __repr__(self) -> str:
        return f"<TopicIds {len(self._known)} known, asking={self.asking}>"

    def get(self, number: int) -> int | None:
        """Return the server's number of a topic, if it is known on this connection."""
        return self._known.get(number)

    def drop(self, number: int) -> None:
        """Look a topic up again: the server says that it is gone."""
        self._known.pop(number, None)

    def forget(self) -> None:
        """Forget everything: this is another connection, maybe another server."""
        self._known.clear()
        self.asking = False

    def ask(self, topic: SlotTopic, connection: Connection, now: float, done: OnRouted) -> None:
        """Find a topic's number, creating the topic where that is the policy.

        Args:
            topic: the slot's topic.
            connection: a connection with no Ingest waiting for its acknowledgement.
            now: the time.
            done: called with None once the number is known, or with why it is not.
        """
        if not topic.name:
            self._known[topic.topic_number] = topic.topic_id
            done(None, now)
            return
        name = topic.name.decode(errors="replace")
        try:
            check_topic_name(name, connection.dialect)
        except EncodeError as error:
            text = f"topic {name!r}: expected {error.expected} at this server (AMB-24)"
            done(TopicMissing(text), now)
            return
        self.asking = True
        connection.ask(self._listing(topic, name, connection, done), now)

    def _listing(
        self, topic: SlotTopic, name: str, connection: Connection, done: OnRouted
    ) -> Request:
        def answered(_code: int, payload: memoryview, now: float) -> None:
            self.asking = False
            found = find_topic(decode_topics(payload), name)
            if found is not None:
                self._learn(topic, found)
                done(None, now)
            elif not is_complete(payload):
                raise RemoteProtocolError(
                    f"the node does not know topic {name!r} and cannot read the shared log of its "
                    "cluster now; it is asked again"
                )
            elif self._on_missing == "create":
                self.asking = True
                connection.ask(self._creation(topic, name, done), now)
            else:
                done(self._missing(topic, name), now)

        return Request(
            Command.LIST_TOPICS,
            b"",
            frozenset({Command.TOPIC_RESPONSE}),
            answered,
            lambda error, now: self._refused(error, now, done),
        )

    def _creation(self, topic: SlotTopic, name: str, done: OnRouted) -> Request:
        def answered(_code: int, payload: memoryview, now: float) -> None:
            self.asking = False
            self._learn(topic, decode_topic(payload))
            self._notice(f"topic {name!r} did not exist and was created")
            done(None, now)

        def refused(error: ServerError, now: float) -> None:
            if isinstance(error, TopicAlreadyExists):  # another client created it: look again soon
                self.asking = False
                done(TopicMissing(str(error), hold=True, news=False), now)
            elif isinstance(error, InvalidTopicName):
                self.asking = False
                done(TopicMissing(f"topic {name!r}: {error} (AMB-24)"), now)
            else:
                self._refused(error, now, done)

        return Request(
            Command.CREATE_TOPIC,
            CreateTopic(name=topic.name).encode(),
            frozenset({Command.TOPIC_RESPONSE}),
            answered,
            refused,
        )

    def _refused(self, error: ServerError, now: float, done: OnRouted) -> None:
        self.asking = False
        if error.retryable:
            raise RemoteProtocolError(f"topics cannot be looked up now: {error}") from error
        done(TopicMissing(str(error), category=category_of(error)), now)

    def _learn(self, topic: SlotTopic, found: TopicInfo) -> None:
        self._known[topic.topic_number] = found.id
        self._told.discard(topic.topic_number)
        try:
            another = self._metadata.found(topic.topic_number, found.id, found.created_at)
        except OSError as error:
            self._notice(f"what the server says of topic {found.name!r} cannot be kept: {error}")
            return
        if another:
            self._notice(
                f"topic {found.name!r} is another one than before (number {found.id}, created "
                f"{found.created_at}); frames stored for it go there (AMB-30)"
            )

    def _missing(self, topic: SlotTopic, name: str) -> TopicMissing:
        news = topic.topic_number not in self._told
        self._told.add(topic.topic_number)
        text = f"topic {name!r} does not exist at the server"
        if self._on_missing == "hold":
            advice = "; its frames and all after them wait until it is created"
            return TopicMissing(text + advice, hold=True, news=news)
        return TopicMissing(text, bury=True)
