"""Servers that are wrong about what they push to subscribers."""

import asyncio

from lance_conformance.server.golden.codec import Reply, Wire
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import (
    Connection,
    Member,
    Refused,
    Replies,
    Subscription,
    Topic,
)
from lance_conformance.server.mutants.registry import golden, mutant

FORGOTTEN = 1.5
"""Seconds of silence: more than a case of the self-test waits for an answer."""


@mutant(Specified.subscribed_already, only="specified")
def subscribes_twice(server: Specified, subscription: Subscription, /) -> None:
    """A second subscription to a topic takes the place of the first one."""
    server.memory.speaker.subscriptions.pop(subscription.topic)


@mutant(Specified.subscribed_already, only="specified")
def keeps_the_first_of_two_subscriptions(server: Specified, first: Subscription, /) -> None:
    """An Unsubscribe ends the second of two subscriptions to a topic, and never the first."""
    server.memory.speaker.subscriptions[-first.topic] = first


@mutant(Specified.batch_limit_ok, only="specified")
def pushes_batches_of_0_bytes(_server: Specified, _max_bytes: int, /) -> bool:
    """A subscription whose batches may bring nothing is accepted."""
    return True


@mutant(Specified.fetch_beside_push, only="specified")
def mixes_fetches_and_pushes(_server: Specified) -> None:
    """A Fetch beside a subscription is answered, and looks like a push."""


@mutant(Specified.fetch_beside_push, only="specified")
def drops_fetches_beside_pushes(_server: Specified) -> None:
    """A Fetch beside a subscription is refused as an internal error."""
    raise Refused(0x60, "oops")


@mutant(Specified.pushes, only="specified", asked=("sub/*",))
def pushes_by_the_limit_of_the_first_topic(server: Specified, connection: Connection, /) -> Replies:
    """All subscriptions of a connection have the limit of the first one."""
    subscriptions = list(connection.subscriptions.values())
    for each in subscriptions[1:]:
        each.max_bytes = subscriptions[0].max_bytes
    return golden(server).pushes(connection)


@mutant(Specified.pushes, only="specified", asked=("sub/*",))
def ends_all_subscriptions_with_a_deleted_topic(
    server: Specified, connection: Connection, /
) -> Replies:
    """When one topic is deleted, its subscribers are pushed no other topic either."""
    before = len(connection.subscriptions)
    replies = golden(server).pushes(connection)
    if len(connection.subscriptions) < before:
        connection.subscriptions.clear()
    return replies


@mutant(Specified.keepalives, only="specified", asked=("sub/*",))
def ends_subscriptions_with_a_keepalive(server: Specified, frame: Wire, /) -> Replies:
    """A subscriber that sends a Keepalive is pushed nothing more."""
    server.memory.speaker.subscriptions.clear()
    return golden(server).keepalives(frame)


@mutant(Specified.first_cursor, only="specified", asked=("sub/*",))
def begins_a_second_subscription_at_the_end(server: Specified, topic: Topic, offset: int, /) -> int:
    """Whoever subscribes again on a connection is pushed only what is stored later."""
    note = f"subscribed to {topic.id}"
    again = note in server.memory.speaker.notes
    server.memory.speaker.notes.add(note)
    return len(topic.log) if again else golden(server).first_cursor(topic, offset)


@mutant(Specified.pushes, only="specified")
def pushes_only_once(server: Specified, connection: Connection, /) -> Replies:
    """What is there when a consumer subscribes is pushed, and nothing later."""
    replies = golden(server).pushes(connection)
    connection.subscriptions.clear()
    return replies


@mutant(Specified.pushed, only="specified")
def pushes_only_news(server: Specified, topic: Topic, subscription: Subscription, /) -> Replies:
    """What is there when a consumer subscribes is not pushed, only what comes later."""
    if "begun" not in subscription.notes:
        subscription.notes.add("begun")
        subscription.cursor = len(topic.log)
    return golden(server).pushed(topic, subscription)


@mutant(Specified.pushed, only="specified")
def pushes_everything_twice(
    server: Specified, topic: Topic, subscription: Subscription, /
) -> Replies:
    """Every push comes twice."""
    return [each for reply in golden(server).pushed(topic, subscription) for each in (reply,) * 2]


@mutant(Specified.pushed, only="specified")
def pushes_to_one_subscriber(
    server: Specified, topic: Topic, subscription: Subscription, /
) -> Replies:
    """What one subscriber was pushed, the others are not."""
    scar = f"pushed {topic.id} {len(topic.log)}"
    if scar in server.memory.scars and subscription.cursor < len(topic.log):
        subscription.cursor = len(topic.log)
        return []
    server.memory.scars.add(scar)
    return golden(server).pushed(topic, subscription)


@mutant(Specified.pushed, only="specified")
def pushes_what_others_wrote(
    server: Specified, topic: Topic, subscription: Subscription, /
) -> Replies:
    """A connection is not pushed what it wrote itself."""
    own = server.memory.speaker.subscriptions.get(topic.id) is subscription
    if own and "begun" in subscription.notes:
        subscription.cursor = len(topic.log)
    subscription.notes.add("begun")
    return golden(server).pushed(topic, subscription)


@mutant(Specified.push_limit, only="specified")
def ignores_max_batch_bytes(_server: Specified, _max_bytes: int, /) -> int:
    """A push brings all there is."""
    return 2**32


@mutant(Specified.push_limit, only="specified")
def doubles_max_batch_bytes(_server: Specified, max_bytes: int, /) -> int:
    """A push brings up to twice as much as was asked for."""
    return max_bytes * 2


@mutant(Specified.push_limit, only="specified")
def halves_max_batch_bytes(_server: Specified, max_bytes: int, /) -> int:
    """A push brings half as much as it could."""
    return (max_bytes + 1) // 2


@mutant(Specified.cursor_after, only="specified")
def skips_a_byte_between_pushes(_server: Specified, start: int, data: bytes, /) -> int:
    """Between two pushes a byte is lost."""
    return start + len(data) + 1


@mutant(Specified.cursor_after, only="specified")
def skips_the_rest_of_a_large_record(_server: Specified, start: int, data: bytes, /) -> int:
    """Of a record that does not fit the rest is never pushed."""
    size = 5 + int.from_bytes(data[1:5], "little") if len(data) >= 5 else len(data)
    return start + max(size, len(data))


@mutant(Specified.push_frame, only="specified")
def pushes_without_a_topic(_server: Specified, _topic_id: int, fetched: Reply, /) -> Reply:
    """The header of a push does not name the topic."""
    return fetched


@mutant(Specified.push_frame, only="specified")
def names_the_newest_topic_in_pushes(server: Specified, _topic: int, fetched: Reply, /) -> Reply:
    """The header of a push names the topic that was created last."""
    return fetched._replace(topic=max(server.memory.topics))


@mutant(Specified.push_frame, only="specified")
def pushes_without_a_count(_server: Specified, topic_id: int, fetched: Reply, /) -> Reply:
    """The record count of a push is 0."""
    payload = fetched.payload[:12] + bytes(4) + fetched.payload[16:]
    return fetched._replace(topic=topic_id, payload=payload)


@mutant(Specified.push_frame, only="specified")
def pushes_without_a_next_offset(_server: Specified, topic_id: int, fetched: Reply, /) -> Reply:
    """The next offset of a push is 0."""
    return fetched._replace(topic=topic_id, payload=bytes(8) + fetched.payload[8:])


@mutant(Specified.push_ended, only="specified")
def ends_subscriptions_in_silence(_server: Specified, _topic_id: int, /) -> Replies:
    """When its topic is deleted a subscription ends without a word."""
    return []


@mutant(Specified.push_ended, only="specified")
def ends_subscriptions_without_naming_them(server: Specified, topic_id: int, /) -> Replies:
    """The error that ends a subscription does not name the topic."""
    return [server.error(server.missing_code(topic_id), "a topic was deleted", {})]


@mutant(Specified.pushes, only="specified")
def pushes_to_creators(server: Specified, connection: Connection, /) -> Replies:
    """What is pushed to a subscriber is pushed to the connection that made the topic, too."""
    replies = golden(server).pushes(connection)
    scars, topics = server.memory.scars, server.memory.topics
    scars.update(f"pushed {reply.topic}" for reply in replies)
    for topic in topics.values():
        mark = f"pushed {topic.id}"
        if topic.made_by is connection and mark in scars and mark not in connection.notes:
            connection.notes.add(mark)
            return [*replies, server.fetched(0, 0, b"")]
    return replies


def _end_when_read(member: Member) -> None:
    """End a connection a while after its peer has read what was sent."""
    call_later = asyncio.get_running_loop().call_later
    if member.unread:
        call_later(0.05, _end_when_read, member)
    else:
        call_later(FORGOTTEN, member.hang_up)


@mutant(Specified.pushes, only="specified", asked=("wait/slow-subscriber",))
def forgets_a_slow_subscriber(server: Specified, connection: Connection, /) -> Replies:
    """A subscriber that had a MiB to read is pushed nothing more, and ended a while later."""
    for member in server.memory.crowd:
        if member.unread > 1 << 20 and "slow" not in connection.notes:
            connection.notes.add("slow")
            _end_when_read(member)
    return [] if "slow" in connection.notes else golden(server).pushes(connection)


@mutant(Specified.pushes, only="specified", asked=("wait/slow-subscriber",))
def drops_what_a_slow_subscriber_misses(server: Specified, connection: Connection, /) -> Replies:
    """What was stored while a subscriber had a MiB to read is not pushed to it."""
    for member in server.memory.crowd:
        if member.unread > 1 << 20:
            connection.notes.add("slow")
    if "slow" in connection.notes:
        for subscription in connection.subscriptions.values():
            topic = server.memory.topics.get(subscription.topic)
            if topic is not None and len(topic.log) - subscription.cursor > 1 << 18:
                subscription.cursor = len(topic.log)
    return golden(server).pushes(connection)
