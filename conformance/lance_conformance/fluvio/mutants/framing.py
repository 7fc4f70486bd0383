"""Servers that are wrong about frames, headers and versions."""

from collections.abc import Sequence

from lance_conformance.fluvio.golden.codec import Cursor, Malformed
from lance_conformance.fluvio.golden.framing import Head, Replies, Reply
from lance_conformance.fluvio.golden.server import Rules
from lance_conformance.fluvio.golden.state import Connection
from lance_conformance.fluvio.mutants.registry import golden, mutant

PRODUCE, CREATE, WATCH = 0, 1001, 1004
KNOWN = {0, 18, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008}
HIGHEST = 25
Ranges = list[tuple[int, int, int]]


@mutant(Rules.admits)
def waits_for_half_requests(server: Rules, connection: Connection, /) -> bool:
    """While one client is within a request, no other one is served."""
    others = (other for other in server.memory.connections if other is not connection)
    return not any(other.tail for other in others)


@mutant(Rules.admits)
def serves_watches_alone(_server: Rules, connection: Connection, /) -> bool:
    """A connection with a watch is not read any more."""
    return not connection.watches


@mutant(Rules.admits)
def serves_streams_alone(_server: Rules, connection: Connection, /) -> bool:
    """A connection with a stream is not read any more."""
    return not connection.streams


@mutant(Rules.survives)
def dies_of_half_a_request(_server: Rules, _tail: bytes, /) -> bool:
    """After a client that left within a request nobody is served any more."""
    return False


@mutant(Rules.length_ok)
def awaits_any_length(_server: Rules, _role: str, length: int, /) -> bool:
    """Whatever length is announced is awaited."""
    return length >= 0


@mutant(Rules.length_ok)
def awaits_any_length_as_spu(server: Rules, role: str, length: int, /) -> bool:
    """The SPU awaits whatever length is announced."""
    return (role == "spu" and length >= 0) or golden(server).length_ok(role, length)


@mutant(Rules.closes_on_length)
def drops_negative_lengths(_server: Rules, length: int, /) -> bool:
    """What comes with a negative length is dropped, and the connection stays."""
    return length >= 0


@mutant(Rules.kept)
def forgets_half_a_length(_server: Rules, tail: bytes, _whole: int, /) -> bytes:
    """Less than a length at the end of a read is dropped."""
    return tail if len(tail) >= 4 else b""


@mutant(Rules.kept)
def forgets_half_a_request(_server: Rules, tail: bytes, _whole: int, /) -> bytes:
    """A request that is not complete at the end of a read is dropped."""
    return tail if len(tail) < 4 else b""


@mutant(Rules.kept)
def forgets_what_follows_a_request(_server: Rules, tail: bytes, whole: int, /) -> bytes:
    """The beginning of a request after a whole one is dropped."""
    return b"" if whole else tail


@mutant(Rules.served)
def serves_one_request_a_read(_server: Rules, frames: Sequence[bytes], /) -> Sequence[bytes]:
    """Of the requests of one read only the first is served."""
    return frames[:1]


@mutant(Rules.served)
def serves_a_read_backwards(_server: Rules, frames: Sequence[bytes], /) -> Sequence[bytes]:
    """The requests of one read are served from the last to the first."""
    return frames[::-1]


@mutant(Rules.takes)
def serves_later_versions(server: Rules, role: str, key: int, version: int, /) -> bool:
    """Versions above the highest one are served like it."""
    return golden(server).takes(role, key, min(version, 0 if key == 1005 else 19))


@mutant(Rules.takes)
def serves_later_versions_of_produce(server: Rules, role: str, key: int, version: int, /) -> bool:
    """Produce is served in any later version."""
    later = role == "spu" and key == PRODUCE and version > HIGHEST
    return later or golden(server).takes(role, key, version)


@mutant(Rules.takes)
def serves_negative_versions(server: Rules, role: str, key: int, version: int, /) -> bool:
    """Negative versions are served like the lowest one."""
    return version < 0 or golden(server).takes(role, key, version)


@mutant(Rules.takes)
def refuses_the_newest_version(server: Rules, role: str, key: int, version: int, /) -> bool:
    """The highest version is offered, and not served."""
    return version < HIGHEST and golden(server).takes(role, key, version)


@mutant(Rules.takes)
def refuses_the_oldest_objects(server: Rules, role: str, key: int, version: int, /) -> bool:
    """Version 15 of watches is offered, and not served."""
    return version != 15 and golden(server).takes(role, key, version)


@mutant(Rules.serves_on)
def passes_over_half_headers(_server: Rules, _connection: Connection, head: Head, /) -> bool:
    """A request that ends before its client id is passed over."""
    return head == Head(0, 0, 0, b"")


@mutant(Rules.serves_on)
def passes_over_cut_client_ids(_server: Rules, _connection: Connection, head: Head, /) -> bool:
    """A request whose client id goes on after its end is passed over."""
    return head != Head(0, 0, 0, b"") and not head.body


@mutant(Rules.serves_on)
def passes_over_unknown_keys(_server: Rules, _connection: Connection, head: Head, /) -> bool:
    """A request that nobody knows is passed over."""
    return head.key not in KNOWN


@mutant(Rules.serves_on)
def passes_over_unknown_keys_as_spu(_server: Rules, connection: Connection, head: Head, /) -> bool:
    """A request that nobody knows is passed over by the SPU."""
    return connection.role == "spu" and head.key not in KNOWN


@mutant(Rules.serves_on)
def passes_over_broken_creations(_server: Rules, _connection: Connection, head: Head, /) -> bool:
    """A Create request that cannot be read is passed over."""
    return head.key == CREATE and bool(head.body)


@mutant(Rules.serves_on)
def passes_over_broken_records(_server: Rules, connection: Connection, head: Head, /) -> bool:
    """A Produce request that cannot be read is passed over."""
    return connection.role == "spu" and head.key == PRODUCE and bool(head.body)


@mutant(Rules.serves_on)
def passes_over_records_at_the_sc(_server: Rules, connection: Connection, head: Head, /) -> bool:
    """Records that come to the SC are passed over."""
    return connection.role == "sc" and head.key == PRODUCE


@mutant(Rules.serves_on)
def passes_over_broken_bodies(server: Rules, connection: Connection, head: Head, /) -> bool:
    """A request whose body cannot be read is passed over."""
    return server.takes(connection.role, head.key, head.version) and bool(head.body)


@mutant(Rules.serves_on)
def passes_over_unknown_objects(_server: Rules, _connection: Connection, head: Head, /) -> bool:
    """A watch of objects that there are not stays without an answer."""
    return head.key == WATCH


@mutant(Rules.last_words)
def stammers_before_it_closes(_server: Rules, /) -> bytes:
    """Before a connection is closed the beginning of a response is sent."""
    return b"\0\0\0\x20\0\0"


@mutant(Rules.last_words)
def explains_before_it_closes(server: Rules, /) -> bytes:
    """Before a connection is closed a response says that something was wrong."""
    return server.encode(Reply(1, b"\xff\xff"))


@mutant(Rules.spent_ok)
def wants_a_byte_behind_requests(_server: Rules, left: int, /) -> bool:
    """A request that ends where its body does is refused."""
    return left > 0


@mutant(Rules.finished)
def never_finds_an_end(_server: Rules, _cursor: Cursor, /) -> None:
    """Every request to the SPU with a body is taken for one that goes on after it."""
    raise Malformed("bytes after the request")


@mutant(Rules.client_ok)
def knows_published_clients_only(_server: Rules, client: str, /) -> bool:
    """Only the client id of published clients is served."""
    return client == "fluvio"


@mutant(Rules.client_ok)
def has_no_room_for_long_client_ids(_server: Rules, client: str, /) -> bool:
    """A client id of more than 100 letters is refused."""
    return len(client) <= 100


@mutant(Rules.correlation)
def keeps_half_of_the_id(_server: Rules, correlation: int, /) -> int:
    """Only two bytes of a correlation id are kept."""
    return correlation & 0xFFFF


@mutant(Rules.correlation)
def takes_ids_for_natural_numbers(_server: Rules, correlation: int, /) -> int:
    """A negative correlation id comes back as 0."""
    return max(correlation, 0)


@mutant(Rules.repeated)
def serves_an_id_once(_server: Rules, connection: Connection, correlation: int, /) -> bool:
    """A correlation id that was used before on the connection is passed over."""
    known = correlation in connection.seen
    connection.seen.add(correlation)
    return known


@mutant(Rules.arranged)
def answers_twice(_server: Rules, replies: Replies, /) -> Replies:
    """Every response is sent twice."""
    return [reply for reply in replies for _ in range(2)]


@mutant(Rules.arranged)
def answers_backwards(_server: Rules, replies: Replies, /) -> Replies:
    """The responses to one read leave in reverse."""
    return replies[::-1]


@mutant(Rules.encode)
def sends_long_frames_without_their_end(server: Rules, reply: Reply, /) -> bytes:
    """The last byte of responses of more than 1,000 bytes is lost."""
    data = golden(server).encode(reply)
    return data if len(data) <= 1000 else data[:-1]


# Versions ----------------------------------------------------------------------------------------


@mutant(Rules.offered)
def offers_nothing(_server: Rules, _role: str, /) -> Ranges:
    """No request is offered."""
    return []


@mutant(Rules.offered)
def offers_no_watch(server: Rules, role: str, /) -> Ranges:
    """Watches are served, but not offered."""
    return [row for row in golden(server).offered(role) if row[0] != WATCH]


@mutant(Rules.offered)
def offers_old_objects(server: Rules, role: str, /) -> Ranges:
    """Objects are offered in versions that published clients know no more."""
    rows = golden(server).offered(role)
    return [(key, 1, 14) if role == "sc" and key > 18 else (key, a, b) for key, a, b in rows]


@mutant(Rules.offered)
def offers_no_streams(server: Rules, role: str, /) -> Ranges:
    """The SPU offers no streams."""
    return [row for row in golden(server).offered(role) if role == "sc" or row[0] != 1003]


@mutant(Rules.offered)
def offers_old_streams(server: Rules, role: str, /) -> Ranges:
    """The SPU offers streams below the versions that published clients use."""
    rows = golden(server).offered(role)
    return [(key, 0, 10) if role == "spu" and key == 1003 else (key, a, b) for key, a, b in rows]


@mutant(Rules.offered)
def offers_everything_twice(server: Rules, role: str, /) -> Ranges:
    """Each request is offered twice."""
    return golden(server).offered(role) * 2


@mutant(Rules.offered)
def offers_empty_ranges(server: Rules, role: str, /) -> Ranges:
    """A request that no client uses is offered from a higher version to a lower one."""
    return [*golden(server).offered(role), (19, 3, 1)]


@mutant(Rules.versions_error)
def refuses_to_tell_versions(_server: Rules, /) -> int:
    """ApiVersions is answered with an error."""
    return -1


@mutant(Rules.platform)
def is_too_old(_server: Rules, /) -> str:
    """The platform is older than clients take."""
    return "0.8.11"


@mutant(Rules.platform)
def has_no_version(_server: Rules, /) -> str:
    """The platform version is a word."""
    return "latest"


@mutant(Rules.platform)
def has_half_a_version(_server: Rules, /) -> str:
    """The platform version has two numbers."""
    return "0.18"


@mutant(Rules.platform)
def changes_its_version(server: Rules, /) -> str:
    """The platform version is another one each time."""
    server.memory.streams += 1
    return f"0.18.{server.memory.streams}"


@mutant(Rules.versions)
def forgets_the_platform(server: Rules, role: str, /) -> bytes:
    """The answer to ApiVersions ends before the platform version."""
    return golden(server).versions(role)[: -2 - len(server.platform())]


@mutant(Rules.versions)
def goes_on_behind_versions(server: Rules, role: str, /) -> bytes:
    """The answer to ApiVersions of the SPU has four bytes too many."""
    return golden(server).versions(role) + bytes(4 if role == "spu" else 0)
