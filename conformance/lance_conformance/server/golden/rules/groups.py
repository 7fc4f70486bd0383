"""The golden rules of a coordinator of consumer groups (AMB-38), as far as cases ask."""

import struct
from collections.abc import Callable

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.rules.partitions import Partitions
from lance_conformance.server.golden.state import Connection

STRATEGIES = ("", "sticky", "round-robin", "range")
Members = dict[str, Connection]


class GroupRefusedError(Exception):
    """Carries a code of a GroupError out of a handler."""

    def __init__(self, code: int) -> None:
        super().__init__(f"refused with {code}")
        self.code = code


class Groups(Partitions):
    """Rules about groups. Every public method is a hook."""

    def member_name(self, asked: str, members: Members, /) -> str:
        """A member is called what it wants, else what nobody is called."""
        return asked or f"member-{len(members) + 1}-of-{len(self.memory.groups)}"

    def name_free(self, members: Members, name: str, /) -> bool:
        """A name belongs to the connection that joined with it."""
        return members.get(name, self.memory.speaker) is self.memory.speaker

    def strategy_ok(self, name: str, /) -> bool:
        """Only known strategies divide topics."""
        return name in STRATEGIES

    def members_of(self, group: str, /) -> Members:
        """The members of a group that somebody joined."""
        members = self.memory.groups.get(group)
        if members is None:
            raise GroupRefusedError(2)
        return members

    def known_member(self, members: Members, name: str, /) -> None:
        """Only who joined is a member."""
        if name not in members:
            raise GroupRefusedError(3)

    def joined(self, name: str, generation: int, session_ms: int, /) -> Reply:
        """GroupJoinAck: a member is heard of three times a session."""
        raw = name.encode()
        times = struct.pack("<QBII", generation, 1, session_ms, max(1, session_ms // 3))
        return Reply(0x40, 0x61, bytes((len(raw),)) + raw + times + b"\x06sticky")

    def heard(self, generation: int, /) -> Reply:
        """GroupHeartbeatAck."""
        return Reply(0x40, 0x65, struct.pack("<QBB", generation, 1, 0))

    def left(self, members: Members, name: str, /) -> None:
        """Who leaves is not a member any more."""
        del members[name]

    def commit_code(self, _topic_id: int, /) -> int:
        """A topic that no member reads cannot be committed."""
        return 6

    def described(self, group: str, members: Members, /) -> Reply:
        """GroupDescription: the group and its members by name."""
        raw = group.encode()
        body = struct.pack("<I", 1) + bytes((len(raw),)) + raw + struct.pack("<BQI", 1, 1, 0)
        body += b"\x06sticky" + struct.pack("<I", len(members))
        for name in sorted(members):
            told = name.encode()
            body += bytes((len(told),)) + told + b"\0" + struct.pack("<IIQII", 1, 0, 1, 0, 0)
        return Reply(0x40, 0x6D, body + struct.pack("<I", 0))

    def group_error(self, code: int, /) -> Reply:
        """GroupError: a code, a generation and words."""
        return Reply(0x40, 0x6F, struct.pack("<HQH", code, 0, 7) + b"refused")

    def group_size_ok(self, left: bytes, /) -> bool:
        """Nothing stands after a request."""
        return not left


class Words:
    """Reads a request field by field."""

    def __init__(self, payload: bytes) -> None:
        self.left = payload

    def take(self, size: int) -> bytes:
        """The next bytes.

        Raises:
            GroupRefusedError: There are not so many.
        """
        if len(self.left) < size:
            raise GroupRefusedError(1)
        data, self.left = self.left[:size], self.left[size:]
        return data

    def number(self, size: int) -> int:
        """The next number."""
        return int.from_bytes(self.take(size), "little")

    def name(self) -> str:
        """The next name."""
        return self.take(self.number(1)).decode(errors="replace")


def _join(rules: Groups, words: Words) -> Reply:
    group, asked = words.name(), words.name()
    words.take(8)
    session, _, strategy, _ = words.number(4), words.take(4), words.name(), words.name()
    words.take(words.number(2))
    for _ in range(words.number(4)):
        words.take(20)
        words.name()
    words.take(4 * words.number(4))
    _end(rules, words)
    if not rules.strategy_ok(strategy):
        raise GroupRefusedError(8)
    members = rules.memory.groups.setdefault(group, {})
    name = rules.member_name(asked, members)
    if not rules.name_free(members, name):
        raise GroupRefusedError(7)
    members[name] = rules.memory.speaker
    return rules.joined(name, len(members), session)


def _end(rules: Groups, words: Words) -> None:
    if not rules.group_size_ok(words.left):
        raise GroupRefusedError(1)


def _known(rules: Groups, words: Words) -> tuple[Members, str]:
    group, name = words.name(), words.name()
    words.take(8)
    members = rules.members_of(group)
    rules.known_member(members, name)
    return members, name


def _heartbeat(rules: Groups, words: Words) -> Reply:
    members, _ = _known(rules, words)
    _end(rules, words)
    return rules.heard(len(members))


def _leave(rules: Groups, words: Words) -> Reply:
    members, name = _known(rules, words)
    _end(rules, words)
    rules.left(members, name)
    return Reply(0x40, 0x6B, struct.pack("<Q", 1))


def _commit(rules: Groups, words: Words) -> Reply:
    _known(rules, words)
    results = b""
    count = words.number(4)
    for _ in range(count):
        topic = words.number(4)
        words.take(16)
        words.name()
        words.take(8)
        words.take(words.number(2))
        results += struct.pack("<IH", topic, rules.commit_code(topic))
    _end(rules, words)
    return Reply(0x40, 0x67, struct.pack("<QI", 1, count) + results)


def _describe(rules: Groups, words: Words) -> Reply:
    group = words.name()
    return rules.described(group, rules.members_of(group))


_HANDLERS: dict[int, Callable[[Groups, Words], Reply]] = {
    0x60: _join,
    0x64: _heartbeat,
    0x66: _commit,
    0x6A: _leave,
    0x6C: _describe,
}
GROUP_COMMANDS = frozenset(_HANDLERS)


def coordinate(rules: Groups, command: int, payload: bytes) -> Reply:
    """Answer one request of a member."""
    try:
        return _HANDLERS[command](rules, Words(payload))
    except GroupRefusedError as refused:
        return rules.group_error(refused.code)
