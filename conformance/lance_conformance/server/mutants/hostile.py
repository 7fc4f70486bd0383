"""Servers that speak some LWP and attack the kit."""

from collections.abc import Mapping

from lance_conformance.engine.selftest.hostile_servers import Floods, Resets, dribbles, reacting
from lance_conformance.engine.selftest.null_servers import answers_with
from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.server import GOLDEN, Connections, Session
from lance_conformance.server.golden.specified import Specified


class NeverCloses(Session):
    """A golden server, but for one thing: it never closes a connection."""

    def hang_up(self) -> None:
        """Stay."""


def _announcing_4_gib(rules: Specified) -> bytes:
    header = bytearray(rules.encode(Reply(0x40, 0x80)))
    header[32:36] = b"\xff\xff\xff\xff"
    return bytes(header)


def hostile(dialect: str) -> Mapping[str, Connections]:
    """The connections of every hostile server, by its name."""
    rules = GOLDEN[dialect]()
    return {
        "dribbles": reacting(dribbles(rules.encode(Reply(0x40, 0x80, b'{"topics": []}')))),
        "announces-4-gib": reacting(answers_with(_announcing_4_gib(rules))),
        "floods": lambda: Floods(rules.encode(Reply(0x20)) * 256),
        "never-closes": lambda: NeverCloses(rules),
        "resets": Resets,
    }
