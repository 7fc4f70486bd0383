"""The servers that prove the suite about Fluvio."""

from collections.abc import Mapping
from typing import ClassVar

from lance_conformance.engine.suite import Mutant, Proof, StartServer
from lance_conformance.fluvio.golden.server import Rules, serving
from lance_conformance.fluvio.mutants import all_mutants
from lance_conformance.fluvio.mutants.null import hostile, null_servers


class FluvioProof(Proof):
    """Golden, broken, null and hostile Fluvio servers."""

    attacked = ("fl-frame/key-unknown",)
    reaching: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "never-closes": {"fl-frame/key-unknown": "not-closed"}
    }

    def golden(self, dialect: str, setting: str) -> StartServer:
        """The servers that do everything right."""
        del dialect, setting
        return lambda: serving(Rules())

    def mutants(self) -> Mapping[str, Mutant]:
        """The servers that are wrong in one way."""
        return all_mutants()

    def mutant(self, name: str, dialect: str, setting: str) -> StartServer:
        """One of them."""
        del setting
        return lambda: serving(all_mutants()[name].rules(dialect))

    def null_servers(self, dialect: str) -> Mapping[str, StartServer]:
        """Servers that do not speak Fluvio at all."""
        del dialect
        return null_servers()

    def hostile(self, dialect: str) -> Mapping[str, StartServer]:
        """Servers that attack the kit."""
        del dialect
        return hostile()
