"""Servers that are wrong about Subscribe and Unsubscribe."""

import struct

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import (
    Connection,
    Refused,
    Subscription,
    Topic,
)
from lance_conformance.server.mutants.registry import golden, mutant

SENTINEL = 2**64 - 1


def _pair(command: int, *numbers: int) -> Reply:
    return Reply(0x40, command, struct.pack(f"<{len(numbers)}Q", *numbers))


@mutant(Specified.subscribe_ack)
def swaps_consumer_and_offset(_server: Specified, consumer: int, offset: int, /) -> Reply:
    """A SubscribeAck has the offset before the consumer."""
    return _pair(0x23, offset, consumer)


@mutant(Specified.subscribe_ack)
def acks_subscriptions_without_an_offset(_server: Specified, consumer: int, _at: int, /) -> Reply:
    """A SubscribeAck holds the consumer's id and nothing else."""
    return _pair(0x23, consumer)


@mutant(Specified.subscribe_ack)
def acks_subscriptions_at_0(_server: Specified, consumer: int, _offset: int, /) -> Reply:
    """A SubscribeAck always says 0."""
    return _pair(0x23, consumer, 0)


@mutant(Specified.subscribe_ack)
def acks_subscriptions_with_a_plain_ack(_server: Specified, consumer: int, _at: int, /) -> Reply:
    """Subscribe is answered with an Ack frame."""
    return Reply(0x08, consumer)


@mutant(Specified.subscribe_ack)
def cuts_consumers_to_32_bits(_server: Specified, consumer: int, offset: int, /) -> Reply:
    """A SubscribeAck names a large consumer id by its lower half."""
    low = consumer if consumer < 2**63 else consumer % 2**32
    return _pair(0x23, low, offset)


@mutant(Specified.subscribe_ack)
def names_the_topic_in_subscribe_acks(server: Specified, consumer: int, offset: int, /) -> Reply:
    """The header of a SubscribeAck has a topic."""
    return golden(server).subscribe_ack(consumer, offset)._replace(topic=1)


@mutant(Specified.subscribed_at)
def begins_where_nobody_asked(server: Specified, topic: Topic, consumer: int, asked: int, /) -> int:
    """A consumer without a commit begins at the end."""
    if asked or server.memory.commits.get((topic.id, consumer)) is not None:
        return golden(server).subscribed_at(topic, consumer, asked)
    return len(topic.log)


@mutant(Specified.subscribed_at)
def does_not_resume(_server: Specified, _topic: Topic, _consumer: int, asked: int, /) -> int:
    """A Subscribe at 0 begins at 0, whatever was committed."""
    return asked


@mutant(Specified.subscribed_at)
def always_resumes(server: Specified, topic: Topic, consumer: int, asked: int, /) -> int:
    """A commit counts even where another offset is asked for."""
    return server.committed(topic.id, consumer) or asked


@mutant(Specified.subscribed_at)
def stops_before_the_end(server: Specified, topic: Topic, consumer: int, asked: int, /) -> int:
    """A consumer that begins at the end is sent back to the beginning."""
    right = golden(server).subscribed_at(topic, consumer, asked)
    return 0 if right == len(topic.log) else right


@mutant(Specified.consumer_topic)
def subscribes_to_anything(server: Specified, topic_id: int, /) -> Topic:
    """Subscribe succeeds for topics that never existed."""
    if topic_id in server.memory.deleted:
        return golden(server).consumer_topic(topic_id)
    return server.memory.topics.get(topic_id) or Topic(topic_id, "")


@mutant(Specified.consumer_topic)
def subscribes_to_deleted_topics(server: Specified, topic_id: int, /) -> Topic:
    """Subscribe succeeds for topics that were deleted."""
    if topic_id in server.memory.deleted:
        return Topic(topic_id, "")
    return golden(server).consumer_topic(topic_id)


@mutant(Specified.consumer_topic)
def lets_one_connection_subscribe(server: Specified, topic_id: int, /) -> Topic:
    """A topic has one subscriber: a second connection is refused, also when the first is gone."""
    topic = golden(server).consumer_topic(topic_id)
    scar, notes = f"subscribed {topic_id}", server.memory.speaker.notes
    if scar in server.memory.scars and scar not in notes:
        raise Refused(0x01, "somebody is subscribed already")
    server.memory.scars.add(scar)
    notes.add(scar)
    return topic


@mutant(Specified.consumer_topic)
def lets_a_connection_subscribe_once(server: Specified, topic_id: int, /) -> Topic:
    """A connection may subscribe to one topic only."""
    topic = golden(server).consumer_topic(topic_id)
    notes = server.memory.speaker.notes
    notes.add(f"subscribed {topic_id}")
    if len(notes) > 1:
        raise Refused(0x04, "one topic a connection")
    return topic


@mutant(Specified.first_cursor, only="specified")
def takes_the_sentinel_for_an_offset(server: Specified, topic: Topic, offset: int, /) -> int:
    """Subscribing at 2^64-1 is acknowledged at 2^64-1."""
    return offset if offset == SENTINEL else golden(server).first_cursor(topic, offset)


@mutant(Specified.first_cursor, only="specified")
def pushes_from_the_beginning(server: Specified, topic: Topic, offset: int, /) -> int:
    """Pushing begins at 0 wherever the consumer asked to begin."""
    golden(server).first_cursor(topic, offset)
    return 0


@mutant(Specified.first_cursor, only="specified")
def calls_a_far_offset_a_missing_topic(server: Specified, topic: Topic, offset: int, /) -> int:
    """Subscribing beyond the end is TopicNotFound."""
    if SENTINEL > offset > len(topic.log):
        raise Refused(0x10, "Topic not found")
    return golden(server).first_cursor(topic, offset)


@mutant(Specified.subscribed_at, only="deployed")
def resolves_the_sentinel(server: Specified, topic: Topic, consumer: int, asked: int, /) -> int:
    """Subscribing at 2^64-1 is acknowledged at the end, unlike by the published server."""
    if asked == SENTINEL:
        return len(topic.log)
    return golden(server).subscribed_at(topic, consumer, asked)


@mutant(Specified.subscribed_at, only="deployed")
def clamps_to_the_end(server: Specified, topic: Topic, consumer: int, asked: int, /) -> int:
    """Subscribing beyond the end is acknowledged at the end, unlike by the published server."""
    right = golden(server).subscribed_at(topic, consumer, asked)
    return right if right == SENTINEL else min(right, len(topic.log))


@mutant(Specified.pushing, only="deployed")
def pushes_to_clients_that_poll(_server: Specified) -> bool:
    """Records are pushed, which no published client expects."""
    return True


@mutant(Specified.subscribe_ack, only="deployed")
def refuses_fetches_beside_subscriptions(server: Specified, consumer: int, offset: int, /) -> Reply:
    """A connection that is subscribed may not fetch, though nothing is pushed to it."""
    newest = max(server.memory.topics)
    subscription = Subscription(newest, consumer, SENTINEL, 1)
    server.memory.speaker.subscriptions[newest] = subscription
    return golden(server).subscribe_ack(consumer, offset)


@mutant(Specified.unsubscribe_ack)
def answers_unsubscribe_with_json(_server: Specified, _consumer: int, /) -> Reply:
    """Unsubscribe is answered with a TopicResponse."""
    return Reply(0x40, 0x80, b"{}")


@mutant(Specified.unsubscribe_ack)
def acks_unsubscribe_with_the_command(_server: Specified, _consumer: int, /) -> Reply:
    """The Ack of an Unsubscribe carries the command's code."""
    return Reply(0x08, 0x21)


@mutant(Specified.unsubscribed)
def refuses_what_is_not_subscribed(
    server: Specified, connection: Connection, topic_id: int, /
) -> None:
    """Unsubscribe without a subscription is an internal error, and where none is kept always."""
    if topic_id not in connection.subscriptions:
        raise Refused(0x60, "no such subscription")
    golden(server).unsubscribed(connection, topic_id)


@mutant(Specified.unsubscribed, only="specified")
def keeps_the_subscription(_server: Specified, _connection: Connection, _topic: int, /) -> None:
    """Unsubscribe is acknowledged and does nothing."""


@mutant(Specified.unsubscribed, only="specified")
def ends_all_subscriptions(_server: Specified, connection: Connection, _topic: int, /) -> None:
    """Unsubscribe ends every subscription of the connection."""
    connection.subscriptions.clear()


@mutant(Specified.unsubscribed)
def closes_behind_unsubscribe(server: Specified, connection: Connection, topic_id: int, /) -> None:
    """Unsubscribe ends the connection."""
    golden(server).unsubscribed(connection, topic_id)
    connection.closing = True
