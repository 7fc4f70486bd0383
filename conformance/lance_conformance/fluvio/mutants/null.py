"""Servers that do not speak Fluvio at all, and servers that attack the kit."""

import struct
from collections.abc import Mapping

from lance_conformance.engine.selftest.hostile_servers import Floods, Resets, dribbles, reacting
from lance_conformance.engine.selftest.null_servers import COMMON, NullServer, React, named
from lance_conformance.engine.selftest.test_server import Connections
from lance_conformance.engine.selftest.test_server import serving as listening
from lance_conformance.engine.suite import StartServer
from lance_conformance.fluvio.golden.framing import Reply
from lance_conformance.fluvio.golden.server import Rules, Session, serving

HEADER = 12


def _correlation(data: bytes) -> int:
    return int.from_bytes(data[8:HEADER], "big", signed=True)


def _answer(server: NullServer, data: bytes, body: bytes) -> None:
    if len(data) >= HEADER:
        server.say(Rules().encode(Reply(_correlation(data), body)))


def stalls_in_the_header(server: NullServer, data: bytes) -> None:
    """Answers with half a header, and then nothing."""
    if data:
        server.say(struct.pack(">ih", 20, 0))


def answers_with_nothing(server: NullServer, data: bytes) -> None:
    """Answers whatever comes with an empty body."""
    _answer(server, data, b"")


def answers_with_zeros(server: NullServer, data: bytes) -> None:
    """Answers whatever comes with zeros."""
    _answer(server, data, bytes(64))


NULLS: Mapping[str, React] = {
    **COMMON,
    **named(stalls_in_the_header, answers_with_nothing, answers_with_zeros),
}


class NeverCloses(Session):
    """A golden server, but for one thing: it never closes a connection."""

    def hang_up(self) -> None:
        """Stay."""


def _announces(length: int) -> React:
    def react(server: NullServer, data: bytes) -> None:
        if data:
            server.say(struct.pack(">ii", length, _correlation(data)))

    return react


def _listen(connections: Connections) -> StartServer:
    return lambda: listening(connections)


def null_servers() -> Mapping[str, StartServer]:
    """Every null server by its name."""
    return {name: _listen(reacting(react)) for name, react in NULLS.items()}


def hostile() -> Mapping[str, StartServer]:
    """Every hostile server by its name."""
    versions = Rules().encode(Reply(1, Rules().versions("sc")))
    return {
        "dribbles": _listen(reacting(dribbles(versions))),
        "announces-2-gib": _listen(reacting(_announces(2**31 - 1))),
        "announces-a-negative-length": _listen(reacting(_announces(-5))),
        "floods": _listen(lambda: Floods(versions * 64)),
        "resets": _listen(Resets),
        "never-closes": lambda: serving(Rules(), NeverCloses),
    }
