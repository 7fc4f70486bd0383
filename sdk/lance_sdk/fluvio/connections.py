# Written by sdk/sync_from_async.py from lance_sdk/fluvio/aio/connections.py: change that one.
"""What consumers and producers need of their client."""

from typing import Protocol, TypeVar

from lance_sdk._api.other_systems import Address
from lance_sdk.fluvio._asks import Steps
from lance_sdk.fluvio._driver import Driver
from lance_sdk.fluvio.types import FluvioSettings
from lance_spec.fluvio.apis import Server

T = TypeVar("T")


class Connections(Protocol):
    """A client of a cluster: its settings, and connections to its servers."""

    settings: FluvioSettings

    def run(self, steps: Steps[T]) -> T:
        """Do what steps ask for, and return what they come to."""

    def connect(self, server: Server, address: Address) -> Driver:
        """Return a connection of one's own."""
