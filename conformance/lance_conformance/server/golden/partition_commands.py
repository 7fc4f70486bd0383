"""Commands about partitioned topics (AMB-59), put together from the rules."""

import json
import struct
from collections.abc import Callable

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.rules.partitions import demand
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, PartitionedTopic

CREATE, ADD, DELETE = 0x72, 0x73, 0x74


def _json(body: Body) -> Reply:
    return Reply(0x40, 0x80, json.dumps(body).encode())


def _named(rules: Specified, command: int, payload: bytes, form: str) -> tuple[str, bytes]:
    """The name in a request, and the fields after it, filled up where the rules let them."""
    size = int.from_bytes(payload[:2], "little")
    wanted = 2 + size + struct.calcsize(form)
    fits = rules.partition_size_ok(command, len(payload), wanted)
    demand(fits, "Invalid payload length")
    fields = payload[2 + size :].ljust(struct.calcsize(form), b"\0")
    return rules.name_of(payload[2 : 2 + size]), fields


def _create(rules: Specified, payload: bytes) -> Reply:
    name, fields = _named(rules, CREATE, payload, "<IBQQ")
    count, number, _, _ = struct.unpack_from("<IBQQ", fields)
    demand(rules.partitions_ok(count), f"Invalid partitions: {count}")
    partitioner = rules.partitioner_of(number)
    demand(partitioner is not None, f"Invalid partitioner: {number}")
    rules.whole_taken(rules.in_the_way(name))
    demand(not rules.reserved(name), f"Topic '{name}' already exists")
    whole = PartitionedTopic(name, str(partitioner))
    rules.memory.partitioned[name] = whole
    return _extended(rules, whole, count)


def _extended(rules: Specified, whole: PartitionedTopic, count: int) -> Reply:
    rules.extended(whole, count)
    rules.told(whole)
    return _json(rules.whole_body(whole))


def _add(rules: Specified, payload: bytes) -> Reply:
    name, fields = _named(rules, ADD, payload, "<I")
    (count,) = struct.unpack_from("<I", fields)
    whole = rules.find_whole(name)
    fits = count >= len(whole.ids) or rules.fewer_ok(whole, count)
    demand(fits and count <= 10_000, f"Invalid partitions: {count}")
    return _extended(rules, whole, count)


def _delete(rules: Specified, payload: bytes) -> Reply:
    whole = rules.find_whole_to_delete(rules.name_of(payload))
    rules.whole_forgotten(whole)
    return _json({"name": whole.name, "deleted_topics": whole.ids})


HANDLERS: dict[int, Callable[[Specified, bytes], Reply]] = {
    CREATE: _create,
    ADD: _add,
    DELETE: _delete,
}
