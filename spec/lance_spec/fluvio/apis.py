"""Which messages Fluvio's requests and responses are, by server and key (FLV-01).

The two servers use the same numbers for different requests. A response says neither key nor
version: it is read as its request was.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Server: TypeAlias = Literal["sc", "spu"]

PORTS: Final[Mapping[Server, int]] = {"sc": 9003, "spu": 9005}
"""Where published servers listen; an SPU on a developer's machine uses 9010."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One kind of request.

    Attributes:
        server: which server takes it.
        key: its number in the request's header.
        name: its name.
        versions: first and last version that published servers take.
        request: name of the request's message in `lance_spec.messages.fluvio`.
        responses: name of the response's message by the type of object that the request names
            first; under ``""`` where it names none.
        stream: many responses with one correlation id may come.
    """

    server: Server
    key: int
    name: str
    versions: tuple[int, int]
    request: str
    responses: Mapping[str, str]
    stream: bool = False


_SINGLE: Final = ""
"""The key of a response that does not depend on a type of object."""


def _spu(key: int, name: str, versions: tuple[int, int], *, stream: bool = False) -> Api:
    """Return a request to the SPU, whose messages have its name."""
    return Api(
        server="spu",
        key=key,
        name=name,
        versions=versions,
        request=f"{name}Request",
        responses={_SINGLE: f"{name}Response"},
        stream=stream,
    )


def _sc(
    key: int, name: str, request: str, responses: Mapping[str, str], *, stream: bool = False
) -> Api:
    """Return a request to the SC about objects."""
    return Api(
        server="sc",
        key=key,
        name=name,
        versions=(15, 19),
        request=request,
        responses=responses,
        stream=stream,
    )


def _each_type(name: str) -> dict[str, str]:
    return {each: f"{name}{each.title()}Response" for each in ("SPU", "Topic", "Partition")}


APIS: Final = (
    Api(
        server="sc",
        key=18,
        name="ApiVersions",
        versions=(0, 2),
        request="ApiVersionsRequest",
        responses={_SINGLE: "ApiVersionsResponse"},
    ),
    _sc(1001, "Create", "CreateTopicRequest", {"Topic": "Status"}),
    _sc(1002, "Delete", "DeleteTopicRequest", {"Topic": "Status"}),
    _sc(1003, "List", "ListRequest", _each_type("List")),
    _sc(1004, "Watch", "WatchRequest", _each_type("Watch"), stream=True),
    _spu(18, "ApiVersions", (0, 2)),
    _spu(0, "Produce", (0, 25)),
    _spu(1002, "FetchOffsets", (0, 25)),
    _spu(1003, "StreamFetch", (19, 25), stream=True),
    _spu(1005, "UpdateOffsets", (0, 0)),
    _spu(1006, "UpdateConsumerOffset", (0, 25)),
    _spu(1007, "DeleteConsumerOffset", (0, 25)),
    _spu(1008, "FetchConsumerOffsets", (0, 25)),
)
"""Every request that producing, consuming and administration need."""


def api(server: Server, key: int) -> Api:
    """Return the kind of request that a server knows under a key.

    Raises:
        KeyError: it knows none; the text lists the keys there are.
    """
    for each in APIS:
        if (each.server, each.key) == (server, key):
            return each
    known = ", ".join(str(each.key) for each in APIS if each.server == server)
    raise KeyError(f"the {server} has no request {key}; there are {known}")


def server_of(key: int, version: int) -> Server:
    """Return which server a request is meant for, where one port takes both.

    Requests to the SC come in the versions of its objects, 15 to 19, those to the SPU in others;
    a published client never uses a key in a version that both would take.
    """
    watch, low, high = 1004, 15, 19
    shared = {each.key for each in APIS if each.server == "sc"} - {18}
    return "sc" if key == watch or (key in shared and low <= version <= high) else "spu"
