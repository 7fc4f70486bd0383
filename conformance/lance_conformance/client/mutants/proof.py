"""The clients that prove the suite about clients."""

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from lance_conformance.client.golden.driver import GoldenDriver
from lance_conformance.client.inprocess import standing
from lance_conformance.client.mutants import all_mutants
from lance_conformance.client.mutants.hostile import HOSTILE
from lance_conformance.client.mutants.null import NULLS
from lance_conformance.engine.suite import Mutant, Proof, StartServer


class ClientProof(Proof):
    """Golden, broken, null and hostile clients, all of them in this process."""

    budget = 1.2
    attacked: ClassVar[tuple[str, ...]] = ("ack/awaited", "admin/get-request")

    def golden(self, dialect: str, setting: str = "") -> StartServer:
        """The client that does everything right."""
        del dialect, setting
        return partial(standing, "the golden client", GoldenDriver)

    def mutants(self) -> Mapping[str, Mutant]:
        """The clients that are wrong in one way."""
        return all_mutants()

    def mutant(self, name: str, dialect: str, setting: str = "") -> StartServer:
        """One of them."""
        del dialect, setting
        return partial(standing, name, lambda: GoldenDriver(all_mutants()[name].rules))

    def null_servers(self, dialect: str) -> Mapping[str, StartServer]:
        """Drivers without a client."""
        del dialect
        return {name: partial(standing, name, make) for name, make in NULLS.items()}

    def hostile(self, dialect: str) -> Mapping[str, StartServer]:
        """Drivers that attack the kit."""
        del dialect
        return {name: partial(standing, name, make) for name, make in HOSTILE.items()}
