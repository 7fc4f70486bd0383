"""Commands of consumers and about the node, put together from the rules."""

import json
import struct
from collections.abc import Callable

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Refused, Subscription

INVALID_PAYLOAD = 0x04


def _fields(
    rules: Specified, command: int, form: str, payload: bytes, words: str
) -> tuple[int, ...]:
    """The fields of a command; where the rules let a short payload pass, zeros are missing."""
    if not rules.size_ok(command, len(payload)):
        raise Refused(INVALID_PAYLOAD, f"Invalid {words} payload")
    return struct.unpack_from(form, payload.ljust(struct.calcsize(form), b"\0"))


def _subscribe(rules: Specified, payload: bytes) -> Reply:
    topic_id, asked, most, consumer = _fields(rules, 0x20, "<IQIQ", payload, "subscribe")
    topic = rules.consumer_topic(topic_id)
    offset = rules.subscribed_at(topic, consumer, asked)
    if rules.pushing():
        subscriptions = rules.memory.speaker.subscriptions
        if topic_id in subscriptions:
            rules.subscribed_already(subscriptions[topic_id])
        if not rules.batch_limit_ok(most):
            raise Refused(INVALID_PAYLOAD, "max_batch_bytes is at least 1")
        offset = rules.first_cursor(topic, offset)
        subscriptions[topic_id] = Subscription(topic_id, consumer, offset, most)
    return rules.subscribe_ack(consumer, offset)


def _unsubscribe(rules: Specified, payload: bytes) -> Reply:
    topic_id, consumer = _fields(rules, 0x21, "<IQ", payload, "unsubscribe")
    rules.unsubscribed(rules.memory.speaker, topic_id)
    return rules.unsubscribe_ack(consumer)


def _commit(rules: Specified, payload: bytes) -> Reply:
    topic_id, consumer, offset = _fields(rules, 0x22, "<IQQ", payload, "commit offset")
    topic = rules.topic_to_commit(topic_id)
    offset = rules.offset_to_commit(topic, offset)
    rules.commit_kept(topic.id, consumer, offset)
    return rules.commit_ack(consumer, offset)


def _offset_for_time(rules: Specified, payload: bytes) -> Reply:
    topic_id, time_ns = _fields(rules, 0x70, "<IQ", payload, "offset for time")
    return rules.time_answer(rules.offset_at(rules.timed_topic(topic_id), time_ns))


def _batch_times(rules: Specified, payload: bytes) -> Reply:
    topic_id, start, end = _fields(rules, 0x75, "<IQQ", payload, "batch times")
    topic = rules.timed_topic(topic_id)
    end = rules.end_of_times(topic, end)
    found = rules.times_between(topic, start, end)
    told = found[: rules.most_times()]
    following = found[len(told)][1] if len(told) < len(found) else end
    return rules.times_answer(following, told)


def _status(rules: Specified, payload: bytes) -> Reply:
    _fields(rules, 0x07, "", payload, "status")
    return Reply(0x40, rules.status_command(), json.dumps(rules.status_body()).encode())


HANDLERS: dict[int, Callable[[Specified, bytes], Reply]] = {
    0x07: _status,
    0x20: _subscribe,
    0x21: _unsubscribe,
    0x22: _commit,
    0x30: _status,
    0x70: _offset_for_time,
    0x75: _batch_times,
}
