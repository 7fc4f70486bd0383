"""Which requests a server takes, and in which versions."""

from collections.abc import Mapping
from typing import Final, Protocol

from lance_server.listeners.fluvio.connection import Answer
from lance_server.listeners.fluvio.refusals import ProtocolError
from lance_spec.fluvio.apis import APIS, Api, Server
from lance_spec.messages.fluvio import ApiVersionRange, ApiVersionsResponse, Request

_PLATFORM: Final = "0.18.1"
"""The version of Fluvio whose requests these are; clients refuse servers before 0.9.0."""
API_VERSIONS: Final = 18
PRODUCE: Final = 0
_MOST: Final = 256 * 1024
"""Bytes of any request but Produce: each is read on the event loop."""


class ApiHandler(Protocol):
    """Carries out one kind of request."""

    async def __call__(self, request: Request, /) -> Answer:
        """Return what answers it."""
        ...


class Apis:
    """The requests of one server.

    Args:
        server: which of the two.
        operations: what carries each out, by key.
    """

    def __init__(self, server: Server, operations: Mapping[int, ApiHandler]) -> None:
        self._server = server
        self._offered: dict[int, Api] = {
            each.key: each
            for each in APIS
            if each.server == server and each.key in {API_VERSIONS, *operations}
        }
        self._operations = dict(operations)

    def __repr__(self) -> str:
        return f"<Apis of the {self._server}: {sorted(self._offered)}>"

    async def handle(self, request: Request) -> Answer:
        """Carry a request out.

        Raises:
            ProtocolError: the server does not take it in this version.
        """
        api = self._offered.get(request.api_key)
        if api is None:
            raise ProtocolError(f"the {self._server} takes no requests with key {request.api_key}")
        low, high = api.versions
        if not low <= request.api_version <= high:
            raise ProtocolError(
                f"{api.name} in version {request.api_version}; expected {low} to {high}"
            )
        if request.api_key != PRODUCE and len(request.body) > _MOST:
            raise ProtocolError(f"{api.name} with {len(request.body)} bytes, over {_MOST}")
        if request.api_key == API_VERSIONS:
            return self._versions()
        return await self._operations[request.api_key](request)

    def _versions(self) -> bytes:
        ranges = [
            ApiVersionRange(
                api_key=each.key, min_version=each.versions[0], max_version=each.versions[1]
            )
            for each in self._offered.values()
        ]
        return ApiVersionsResponse(
            error_code=0, api_keys=ranges, platform_version=_PLATFORM
        ).encode()
