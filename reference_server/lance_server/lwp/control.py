"""Carries out control commands (LWP section 5)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from lance_server.log.log_manager import Topic
from lance_server.log.metadata.partition_description import PARTITIONERS, partition_name
from lance_server.log.metadata.topic_file import Retention
from lance_server.lwp.fetch import FetchHandler
from lance_server.lwp.push import Subscriptions
from lance_server.lwp.refusals import Refusal
from lance_server.lwp.requests import (
    invalid_payload,
    read_create_with_retention,
    read_partitioned,
    read_request,
    read_topic_name,
)
from lance_server.lwp.responses import Answer, json_frame
from lance_server.lwp.service import Service
from lance_server.lwp.topic_access import permitted_topic
from lance_server.runtime.completion import Completion
from lance_server.security.access import Right
from lance_server.security.authorizer import Authorizer
from lance_spec.bodies import TopicInfo
from lance_spec.dialect import Dialect
from lance_spec.enums import Command, ErrorCode
from lance_spec.errors import DecodeError
from lance_spec.frames import Frame, encode_ack, encode_control
from lance_spec.messages import lwp

_Handler: TypeAlias = Callable[[memoryview, Dialect], Answer | Completion[Answer]]


_MOST_CONSUMERS: Final = 1024
"""Consumers of one connection that are remembered as connected."""


class ControlHandler:
    """Carries out the commands of one connection, one at a time.

    Args:
        service: what all connections share.
        authorizer: judges the client.
        subscriptions: what the connection is subscribed to.
        fetching: answers its Fetch requests.
    """

    def __init__(
        self,
        service: Service,
        authorizer: Authorizer,
        subscriptions: Subscriptions,
        fetching: FetchHandler,
    ) -> None:
        self._service = service
        self._engine = service.engine
        self._counters = service.counters
        self._authorizer = authorizer
        self._subscriptions = subscriptions
        self._fetching = fetching
        self._now = 0.0
        self._consumers: set[tuple[Topic, int]] = set()
        self._handlers: Mapping[int, _Handler] = {
            Command.CREATE_TOPIC: self._create_topic,
            Command.DELETE_TOPIC: self._delete_topic,
            Command.LIST_TOPICS: self._list_topics,
            Command.GET_TOPIC: self._get_topic,
            Command.SET_RETENTION: self._set_retention,
            Command.CREATE_TOPIC_WITH_RETENTION: self._create_with_retention,
            Command.GET_CLUSTER_STATUS: self._cluster_status,
            Command.GET_CLUSTER_STATUS_ALIAS: self._cluster_status,
            Command.AUTHENTICATE: self._authenticate,
            Command.FETCH: self._fetch,
            Command.SUBSCRIBE: self._subscribe,
            Command.UNSUBSCRIBE: self._unsubscribe,
            Command.COMMIT_OFFSET: self._commit,
            Command.OFFSET_FOR_TIME: self._offset_for_time,
            Command.BATCH_TIMES: self._batch_times,
            Command.CREATE_PARTITIONED_TOPIC: self._create_partitioned,
            Command.ADD_PARTITIONS: self._add_partitions,
            Command.DELETE_PARTITIONED_TOPIC: self._delete_partitioned,
        }

    def execute(self, frame: Frame, dialect: Dialect, now: float) -> Answer | Completion[Answer]:
        """Carry out a Control frame and return its answer, or the outcome that will be it.

        Args:
            frame: the request.
            dialect: of the connection.
            now: the current time in seconds.

        Raises:
            Refusal: it cannot be carried out.
            PostponedError: it is to be tried again when the connection is woken.
        """
        self._now = now
        # The published server looks at the low byte of the code only (AMB-26).
        code = frame.batch_id if dialect.strict else frame.batch_id & 0xFF
        handler = self._handlers.get(code)
        if handler is None:
            raise Refusal(
                ErrorCode.INVALID_PAYLOAD,
                f"Unknown command {code:#x}: a client may not send it",
                text="Invalid client command",
            )
        return handler(frame.payload, dialect)

    # Topics ----------------------------------------------------------------------------------

    def _create_topic(self, payload: memoryview, dialect: Dialect) -> Completion[Answer]:
        self._authorizer.check(Right.ADMIN)
        name = read_topic_name(payload, dialect)
        self._authorizer.check(Right.ADMIN, name=name)
        created = self._engine.create_topic(name, Retention())
        return created.then(partial(_described, dialect, full=False))

    def _create_with_retention(self, payload: memoryview, dialect: Dialect) -> Completion[Answer]:
        self._authorizer.check(Right.ADMIN)
        request = read_create_with_retention(payload, dialect)
        name = read_topic_name(request.name, dialect)
        self._authorizer.check(Right.ADMIN, name=name)
        retention = Retention(request.max_age_secs, request.max_bytes)
        created = self._engine.create_topic(name, retention)
        return created.then(partial(_described, dialect, full=True))

    def _delete_topic(self, payload: memoryview, dialect: Dialect) -> Completion[Answer]:
        self._authorizer.check(Right.ADMIN)
        topic_id = read_request(lwp.DeleteTopic, payload, dialect).topic_id
        self._topic(Right.ADMIN, topic_id, text=_missing(topic_id))
        deleted = self._engine.delete_topic(topic_id, text=_missing(topic_id))
        return deleted.then(
            lambda _: json_frame(dialect, Command.TOPIC_RESPONSE, {"deleted": topic_id})
        )

    def _list_topics(self, payload: memoryview, dialect: Dialect) -> Answer | Completion[Answer]:
        self._authorizer.check(Right.READ)
        if dialect.strict:
            _expect_nothing(payload)
        lookup = self._engine.catch_up()  # a topic that another node acknowledged is in the list
        if lookup is None:
            return self._listed(dialect)
        return lookup.then(lambda is_whole: self._listed(dialect, is_whole=is_whole))

    def _listed(self, dialect: Dialect, *, is_whole: bool = True) -> Answer:
        found = {each.id: _basics(each) for each in self._engine.topics() if self._is_visible(each)}
        for info in self._engine.remote_topics():  # which other nodes of the cluster serve
            if info.id not in found and self._may_see(info.id, info.name):
                found[info.id] = _told(info)
        body: dict[str, Any] = {"topics": [found[topic_id] for topic_id in sorted(found)]}
        if not is_whole:
            body["complete"] = False
        return json_frame(dialect, Command.TOPIC_RESPONSE, body)

    def _get_topic(self, payload: memoryview, dialect: Dialect) -> Answer:
        self._authorizer.check(Right.READ)
        request = read_request(lwp.GetTopic, payload, dialect)
        topic = self._topic(Right.READ, request.topic_id)
        return json_frame(dialect, Command.TOPIC_RESPONSE, self._info(topic).to_body())

    def _set_retention(self, payload: memoryview, dialect: Dialect) -> Completion[Answer]:
        self._authorizer.check(Right.ADMIN)
        request = read_request(lwp.SetRetention, payload, dialect)
        topic = self._topic(Right.ADMIN, request.topic_id, text=_missing(request.topic_id))
        retention = Retention(request.max_age_secs, request.max_bytes)
        body = {
            "topic_id": topic.id,
            "max_age_secs": retention.max_age_secs,
            "max_bytes": retention.max_bytes,
        }
        saved = self._engine.set_retention(topic, retention)
        return saved.then(lambda _: json_frame(dialect, Command.TOPIC_RESPONSE, body))

    # Partitioned topics ------------------------------------------------------------------------

    def _create_partitioned(self, payload: memoryview, dialect: Dialect) -> Completion[Answer]:
        self._authorizer.check(Right.ADMIN)
        request, name = read_partitioned(lwp.CreatePartitionedTopic, payload, dialect)
        self._authorizer.check(Right.ADMIN, name=name)
        partitioner = PARTITIONERS.get(request.partitioner)
        if partitioner is None:
            raise Refusal(
                ErrorCode.INVALID_PAYLOAD,
                f"Invalid partitioner: {request.partitioner}; expected 1 (murmur2) or 2 (siphash)",
                details={"field": "partitioner"},
            )
        last = partition_name(name, max(request.partitions, 1) - 1)
        read_topic_name(last.encode(), dialect)  # it is the longest
        retention = Retention(request.max_age_secs, request.max_bytes)
        created = self._engine.partitioned.create(name, request.partitions, partitioner, retention)
        return created.then(partial(_whole, dialect, name))

    def _add_partitions(self, payload: memoryview, dialect: Dialect) -> Completion[Answer]:
        self._authorizer.check(Right.ADMIN)
        request, name = read_partitioned(lwp.AddPartitions, payload, dialect)
        self._authorizer.check(Right.ADMIN, name=name)
        last = partition_name(name, max(request.partitions, 1) - 1)
        read_topic_name(last.encode(), dialect)
        added = self._engine.partitioned.add(name, request.partitions)
        return added.then(partial(_whole, dialect, name))

    def _delete_partitioned(self, payload: memoryview, dialect: Dialect) -> Completion[Answer]:
        self._authorizer.check(Right.ADMIN)
        _, name = read_partitioned(lwp.DeletePartitionedTopic, payload, dialect)
        self._authorizer.check(Right.ADMIN, name=name)
        deleted = self._engine.partitioned.delete(name)
        return deleted.then(
            lambda ids: json_frame(
                dialect, Command.TOPIC_RESPONSE, {"name": name, "deleted_topics": ids}
            )
        )

    def _info(self, topic: Topic) -> TopicInfo:
        """Return what is told of a topic."""
        return topic.info()

    def _topic(self, right: Right, topic_id: int, *, text: str = "Topic not found") -> Topic:
        """Return a topic that this client may use in some way."""
        return permitted_topic(self._engine, self._authorizer, right, topic_id, text=text)

    def _is_visible(self, topic: Topic) -> bool:
        return self._may_see(topic.id, topic.access_name)

    def _may_see(self, topic_id: int, name: str) -> bool:
        return any(
            self._authorizer.may_see(right, topic_id, name) for right in (Right.READ, Right.WRITE)
        )

    # The node --------------------------------------------------------------------------------

    def _cluster_status(self, payload: memoryview, dialect: Dialect) -> Answer:
        self._authorizer.check(Right.READ)
        if dialect.strict:
            _expect_nothing(payload)
        return json_frame(dialect, Command.CLUSTER_STATUS_RESPONSE, self._status())

    def _status(self) -> dict[str, Any]:
        """Return what is told of the node."""
        window = self._engine.window
        return {
            "node_id": self._service.config.node_id,
            "is_leader": True,
            "leader_id": self._service.config.node_id,
            "current_term": 0,
            "node_count": 1,
            "healthy_nodes": 1,
            "quorum_available": True,
            "peer_states": {},
            "mode": "standalone",
            "dedup_window": {"entries": window.entries, "max_age_secs": window.max_age_secs},
            **self._engine.cluster_facts(),
        }

    def _authenticate(self, payload: memoryview, dialect: Dialect) -> Answer:
        ok, words = self._authorizer.authenticate(bytes(payload))
        if not ok:
            self._counters.auth_failures += 1
        answer = lwp.AuthenticateResponse(ok=ok, message=words.encode()).encode()
        return encode_control(dialect, Command.AUTHENTICATE_RESPONSE, answer)

    # Reading ---------------------------------------------------------------------------------

    def _offset_for_time(self, payload: memoryview, dialect: Dialect) -> Completion[Answer]:
        self._authorizer.check(Right.READ)
        request = read_request(lwp.OffsetForTime, payload, dialect)
        topic = self._topic(Right.READ, request.topic_id)
        found = self._engine.offset_for_time(topic, request.time_ns)
        return found.then(
            lambda offset: encode_control(
                dialect,
                Command.OFFSET_FOR_TIME_RESPONSE,
                lwp.OffsetForTimeResponse(offset).encode(),
            )
        )

    def _batch_times(self, payload: memoryview, dialect: Dialect) -> Completion[Answer]:
        self._authorizer.check(Right.READ)
        request = read_request(lwp.BatchTimes, payload, dialect)
        topic = self._topic(Right.READ, request.topic_id)
        found = self._engine.batch_times(topic, request.start_offset, request.end_offset)
        return found.then(
            lambda told: encode_control(
                dialect,
                Command.BATCH_TIMES_RESPONSE,
                lwp.BatchTimesResponse(told.next_offset, len(told.times), told.times).encode(),
            )
        )

    def _fetch(self, payload: memoryview, dialect: Dialect) -> Answer | Completion[Answer]:
        return self._fetching.fetch(payload, dialect, self._now)

    # Consumers -------------------------------------------------------------------------------

    def _subscribe(self, payload: memoryview, dialect: Dialect) -> Answer:
        self._authorizer.check(Right.READ)
        request = read_request(lwp.Subscribe, payload, dialect)
        topic = self._topic(Right.READ, request.topic_id)
        offset = request.start_offset
        if not offset:
            offset = topic.consumers.committed(request.consumer_id) or 0
        if dialect.push:
            offset = self._subscriptions.add(topic, offset, request.max_batch_bytes)
        self._connect(topic, request.consumer_id)
        answer = lwp.SubscribeAck(request.consumer_id, offset).encode()
        return encode_control(dialect, Command.SUBSCRIBE_ACK, answer)

    def _unsubscribe(self, payload: memoryview, dialect: Dialect) -> Answer:
        self._authorizer.check(Right.READ)
        request = read_request(lwp.Unsubscribe, payload, dialect)
        self._subscriptions.remove(request.topic_id)
        return encode_ack(dialect, request.consumer_id)

    def _connect(self, topic: Topic, consumer_id: int) -> None:
        """Note that a consumer uses this connection: its commit does not expire meanwhile."""
        if (topic, consumer_id) not in self._consumers:
            if len(self._consumers) >= _MOST_CONSUMERS:
                self.disconnect()
            self._consumers.add((topic, consumer_id))
            topic.consumers.connect(consumer_id)

    def disconnect(self) -> None:
        """Let go of the consumers that used this connection."""
        for topic, consumer_id in self._consumers:
            topic.consumers.disconnect(consumer_id)
        self._consumers.clear()

    def _commit(self, payload: memoryview, dialect: Dialect) -> Completion[Answer]:
        # A commit changes something: with write_only it needs a token.
        self._authorizer.check(Right.WRITE)
        request = read_request(lwp.CommitOffset, payload, dialect)
        topic = self._topic(Right.READ, request.topic_id)
        end = topic.partition.end_offset
        if request.offset > end and dialect.strict:
            raise Refusal(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Offset {request.offset} is beyond the end of the topic, {end}; commit what "
                "was read",
                details={"end_offset": end},
            )
        answer = lwp.CommitAck(request.consumer_id, request.offset).encode()
        self._connect(topic, request.consumer_id)
        committed = topic.consumers.commit(request.consumer_id, min(request.offset, end))
        return committed.then(lambda _: encode_control(dialect, Command.COMMIT_ACK, answer))


_BASICS: Final = ("id", "name", "created_at", "topic_epoch", "partition")


def _basics(topic: Topic) -> dict[str, Any]:
    """Return what a creation and a list tell of a topic (LWP sections 5.3 and 5.4)."""
    return _told(topic.info())


def _told(info: TopicInfo) -> dict[str, Any]:
    body = info.to_body()
    return {name: body[name] for name in _BASICS if name in body}


def _whole(dialect: Dialect, name: str, topics: Sequence[Topic]) -> Answer:
    body = {"name": name, "topics": [_basics(topic) for topic in topics]}
    return json_frame(dialect, Command.TOPIC_RESPONSE, body)


def _described(dialect: Dialect, topic: Topic, *, full: bool) -> Answer:
    body = _basics(topic)
    if full:
        retention = topic.file.retention
        body |= {"max_age_secs": retention.max_age_secs, "max_bytes": retention.max_bytes}
    return json_frame(dialect, Command.TOPIC_RESPONSE, body)


def _missing(topic_id: int) -> str:
    return f"Configuration error: Topic {topic_id} not found"


def _expect_nothing(payload: memoryview) -> None:
    """Refuse a payload where a command has none (AMB-26)."""
    try:
        lwp.ListTopics.decode(payload)
    except DecodeError as error:
        raise invalid_payload(error) from None
