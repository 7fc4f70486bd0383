"""What consumers and producers need of their client."""

from typing import Protocol, TypeVar

from lance_sdk._api.other_systems import Address
from lance_sdk.fluvio._asks import Steps
from lance_sdk.fluvio._async_driver import AsyncDriver
from lance_sdk.fluvio.types import FluvioSettings
from lance_spec.fluvio.apis import Server

T = TypeVar("T")


class AsyncConnections(Protocol):
    """A client of a cluster: its settings, and connections to its servers."""

    settings: FluvioSettings

    async def run(self, steps: Steps[T]) -> T:
        """Do what steps ask for, and return what they come to."""

    async def connect(self, server: Server, address: Address) -> AsyncDriver:
        """Return a connection of one's own."""
