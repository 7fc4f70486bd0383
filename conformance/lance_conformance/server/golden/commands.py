"""Control commands, put together from the rules."""

import json
import struct
from collections.abc import Callable

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.consumer_commands import HANDLERS
from lance_conformance.server.golden.partition_commands import HANDLERS as PARTITION_HANDLERS
from lance_conformance.server.golden.rules.access_rules import admitted
from lance_conformance.server.golden.rules.groups import GROUP_COMMANDS, coordinate
from lance_conformance.server.golden.rules.ingest import INVALID_PAYLOAD
from lance_conformance.server.golden.rules.partitions import TAKEN
from lance_conformance.server.golden.rules.topics import INVALID_NAME
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Refused, Replies, Topic

SENTINEL = 2**64 - 1
SERVER_ONLY = frozenset({0x09, 0x11, 0x12, 0x23, 0x24, 0x71, 0x76, 0x80, 0x81, 0xFF})
STATUS_ALIAS = 0x30
AUTHENTICATE = 0x08


def obey(rules: Specified, batch_id: int, payload: bytes) -> Replies:
    """Carry out one control command.

    Raises:
        Refused: The rules say no.
    """
    command = rules.command_of(batch_id)
    if command == AUTHENTICATE:
        return [_authenticate(rules, payload)]
    if not admitted(rules, rules.memory.speaker, command):
        rules.without_token(command, payload)
    handler = _HANDLERS.get(command)
    if handler is not None and (command != STATUS_ALIAS or rules.status_alias_ok()):
        return [handler(rules, payload)]
    if command in GROUP_COMMANDS:
        return [coordinate(rules, command, payload)]
    if command in SERVER_ONLY:
        return rules.server_command(command)
    return rules.unknown_command(command)


def _json(body: Body) -> Reply:
    return Reply(0x40, 0x80, json.dumps(body).encode())


def _demand(holds: bool, words: str, code: int = INVALID_PAYLOAD) -> None:
    if not holds:
        raise Refused(code, words)


def _number(payload: bytes) -> int:
    """The topic id at the beginning of a payload; 0 when the payload is too short for one."""
    return int.from_bytes(payload[:4], "little") if len(payload) >= 4 else 0


def _new_topic(rules: Specified, raw: bytes) -> Topic:
    _demand(bool(raw) or rules.empty_name_ok(), "Topic name required", INVALID_NAME)
    name = rules.name_of(raw)
    _demand(rules.name_length_ok(raw), "the name is longer than 255 bytes", INVALID_NAME)
    fits = not name or rules.name_characters_ok(name)
    _demand(fits, f"Topic name '{name}' contains invalid characters", INVALID_NAME)
    owner = rules.taken_by(name)
    if owner is not None:
        return rules.duplicate(owner)
    _demand(not rules.reserved(name), f"Topic '{name}' already exists", TAKEN)
    topic = Topic(rules.next_id(), name, log=rules.first_log(name))
    topic.epoch, topic.made_by = rules.epoch_of(name), rules.memory.speaker
    rules.memory.last_id = max(rules.memory.last_id, topic.id)
    rules.memory.topics[topic.id] = topic
    return topic


def _authenticate(rules: Specified, token: bytes) -> Reply:
    ok = rules.let_in(rules.memory.speaker, token)
    return rules.auth_answer(ok, rules.auth_words(token, ok))


def _create(rules: Specified, payload: bytes) -> Reply:
    return _json(rules.created_body(_new_topic(rules, payload)))


def _create_limited(rules: Specified, payload: bytes) -> Reply:
    _demand(rules.create_size_ok(len(payload)), "Invalid create topic payload")
    size, start = rules.name_length(payload)
    end = start + size
    _demand(rules.limits_ok(payload, end), "Invalid payload length")
    topic = _new_topic(rules, payload[start:end])
    padded = payload.ljust(end + 16, b"\0")
    rules.limits_kept(topic, struct.unpack_from("<QQ", padded, end))
    return _json(rules.limited_body(topic))


def _list(rules: Specified, payload: bytes) -> Reply:
    _demand(rules.size_ok(0x03, len(payload)), "ListTopics has no payload")
    return _json(rules.list_body(rules.listed()))


def _get(rules: Specified, payload: bytes) -> Reply:
    _demand(rules.get_size_ok(len(payload)), "GetTopic has 4 bytes")
    topic_id = _number(payload)
    topic = rules.find(topic_id) if topic_id else rules.default_topic()
    return _json({**rules.found_body(topic), **rules.log_body(topic)})


def _delete(rules: Specified, payload: bytes) -> Reply:
    _demand(rules.size_ok(0x02, len(payload)), "DeleteTopic has 4 bytes")
    topic = rules.find_to_delete(_number(payload))
    rules.alone_ok(topic)
    rules.forget(topic)
    return _json(rules.deleted_body(topic.id))


def _set(rules: Specified, payload: bytes) -> Reply:
    _demand(rules.set_size_ok(len(payload)), "Invalid set retention payload")
    padded = payload.ljust(20, b"\0")
    topic = rules.find_to_limit(_number(payload))
    rules.limits_kept(topic, struct.unpack_from("<QQ", padded, 4))
    return _json(rules.set_body(topic))


def _fetch(rules: Specified, payload: bytes) -> Reply:
    what = "too small" if payload else "payload required"
    _demand(rules.fetch_size_ok(len(payload)), f"Fetch request payload {what}")
    topic_id, asked, max_bytes = struct.unpack_from("<IQI", payload.ljust(16, b"\0"))
    if rules.memory.speaker.subscriptions:
        rules.fetch_beside_push()
    topic = rules.fetch_topic(topic_id)
    log, start = rules.readable(topic), rules.start_of(asked)
    if start == SENTINEL:
        return rules.end_answer(log)
    if start > len(log):
        return rules.beyond_end(log, start)
    if start == len(log):
        return rules.at_end_answer(log)
    data = rules.cut(log, start, rules.limit(max_bytes))
    return rules.fetched(rules.next_offset(start, data), rules.counted(log, start, data), data)


_HANDLERS: dict[int, Callable[[Specified, bytes], Reply]] = {
    0x01: _create,
    0x02: _delete,
    0x03: _list,
    0x04: _get,
    0x05: _set,
    0x06: _create_limited,
    0x10: _fetch,
    **HANDLERS,
    **PARTITION_HANDLERS,
}
