"""The servers that prove the suite about LWP."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar

from lance_conformance.engine.conditions import Conditions
from lance_conformance.engine.suite import Mutant, Proof, StartServer
from lance_conformance.server.golden.pair import pair, second_of
from lance_conformance.server.golden.restartable import restart
from lance_conformance.server.golden.server import GOLDEN, Connections, serving
from lance_conformance.server.golden.settings import access_in, furnished
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants import all_mutants
from lance_conformance.server.mutants.hostile import hostile
from lance_conformance.server.mutants.null import connections, null_names

RESTART_TIMEOUT = 0.5
"""Seconds that the restart of a server in this process may take."""


def _server(connections: Connections) -> StartServer:
    return partial(serving, connections)


def _served(rules: Callable[[], Specified], setting: str) -> StartServer:
    if setting == "second-target":
        return lambda: pair(rules())
    return lambda: serving(furnished(rules(), setting))


class LwpProof(Proof):
    """Golden, broken, null and hostile LWP servers."""

    attacked = ("hdr/magic-closes", "kal/answered")
    reaching: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "never-closes": {"hdr/magic-closes": "not-closed"}
    }

    def golden(self, dialect: str, setting: str) -> StartServer:
        """The server that does everything right."""
        return _served(GOLDEN[dialect], setting)

    def mutants(self) -> Mapping[str, Mutant]:
        """The servers that are wrong in one way."""
        return all_mutants()

    def mutant(self, name: str, dialect: str, setting: str) -> StartServer:
        """One of them."""
        return _served(partial(all_mutants()[name].rules, dialect), setting)

    def equipped(self, base: Conditions, setting: str) -> Conditions:
        """What gets in, how the server is restarted, and where other servers are."""
        second = replace(base.target, port=second_of(base.target.port))
        access = access_in(setting)
        equipped = replace(base, access=access, restart=restart, restart_timeout=RESTART_TIMEOUT)
        return replace(equipped, second=second, coordinator=base.target)

    def null_servers(self, dialect: str) -> Mapping[str, StartServer]:
        """Servers that do not speak LWP at all."""
        return {name: _server(connections(name, dialect)) for name in null_names()}

    def hostile(self, dialect: str) -> Mapping[str, StartServer]:
        """Servers that attack the kit."""
        return {name: _server(made) for name, made in hostile(dialect).items()}
