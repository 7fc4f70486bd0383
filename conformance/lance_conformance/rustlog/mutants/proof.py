"""The servers that prove the suite about RustLog."""

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from lance_conformance.engine.selftest.hostile_servers import Floods, Resets, dribbles, reacting
from lance_conformance.engine.selftest.null_servers import COMMON, NullServer, React, answers_with
from lance_conformance.engine.selftest.test_server import Connections, serving
from lance_conformance.engine.suite import Mutant, Proof, StartServer
from lance_conformance.rustlog.golden import codec
from lance_conformance.rustlog.golden.rules import GOLDEN
from lance_conformance.rustlog.golden.server import Session, sessions
from lance_conformance.rustlog.mutants import MUTANTS


def _framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def _acks_everything(server: NullServer, data: bytes) -> None:
    """Answers each read with what a Produce would be told."""
    if data:
        server.say(_framed(codec.produced(0, 1)))


NULLS: Mapping[str, React] = {
    **COMMON,
    "stalls-in-the-length": answers_with(b"\0\0"),
    "acks-everything": _acks_everything,
    "refuses-everything": answers_with(_framed(codec.error(2, "Decode error: decode error: "))),
    "refuses-everything-in-json": answers_with(_framed(b'{"Error":{"message":"no"}}')),
}


class NeverCloses(Session):
    """A golden server, but for one thing: it never closes a connection."""

    def hang_up(self) -> None:
        """Stay."""


class RustlogProof(Proof):
    """Golden, broken, null and hostile RustLog servers."""

    attacked = ("rl-frame/empty-closes", "rl-topic/ping")
    reaching: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "never-closes": {"rl-frame/empty-closes": "not-closed"},
        # A slow target is waited for; this one has the same answer to everything.
        "dribbles": {
            "rl-frame/empty-closes": "unexpected-frame",
            "rl-topic/ping": "unexpected-frame",
        },
    }

    def golden(self, dialect: str, setting: str) -> StartServer:
        """The server that does everything right."""
        del setting
        return lambda: serving(sessions(GOLDEN[dialect]()))

    def mutants(self) -> Mapping[str, Mutant]:
        """The servers that are wrong in one way."""
        return MUTANTS.registered()

    def mutant(self, name: str, dialect: str, setting: str) -> StartServer:
        """One of them."""
        del setting
        rules = MUTANTS.registered()[name].rules
        return lambda: serving(sessions(rules(dialect)))

    def null_servers(self, dialect: str) -> Mapping[str, StartServer]:
        """Servers that speak no RustLog, whatever the dialect."""
        del dialect
        return {name: partial(serving, reacting(react)) for name, react in NULLS.items()}

    def hostile(self, dialect: str) -> Mapping[str, StartServer]:
        """Servers that attack the kit."""
        rules = GOLDEN[dialect]()
        attacks: Mapping[str, Connections] = {
            "dribbles": reacting(dribbles(_framed(codec.topics([])))),
            "announces-4-gib": reacting(answers_with(b"\xff" * 4)),
            "floods": lambda: Floods(_framed(codec.produced(0, 1)) * 256),
            "never-closes": lambda: NeverCloses(rules, []),
            "resets": Resets,
        }
        return {name: partial(serving, made) for name, made in attacks.items()}
