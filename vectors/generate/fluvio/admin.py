"""Examples of Fluvio's objects, and of the requests to the SC."""

from typing import Any

from generate.codec.nested import Struct
from generate.composed import Example
from generate.fluvio import calls
from generate.fluvio.examples import MAX63, MAX64, NONE, ex

PUBLIC = {"port": 9010, "ingress": [{"hostname": None, "ip": "127.0.0.1"}], "encryption": 0}
PRIVATE = {"port": 9011, "host": "127.0.0.1", "encryption": 0}
SPU: dict[str, Any] = {
    "name": "custom-spu-5001",
    "id": 5001,
    "spu_type": 1,
    "public_endpoint": PUBLIC,
    "private_endpoint": PRIVATE,
    "rack": None,
    "local_endpoint": None,
    "resolution": 0,
}
AGE = {"seconds": 3600, "nanoseconds": 0}
DROPPING = {"count": 100, "age": AGE, "uses": "dedup", "parameters": [{"name": "k", "value": "v"}]}
KEPT: dict[str, Any] = {
    "cleanup_policy": None,
    "storage": None,
    "compression": 4,
    "deduplication": None,
    "system": False,
}
KEPT_WHOLLY: dict[str, Any] = {
    "cleanup_policy": {"seconds": 86400},
    "storage": {"segment_size": 2**30, "max_partition_size": 2**40},
    "compression": 5,
    "deduplication": DROPPING,
    "system": True,
}
COMPUTED = {"partitions": 1, "replication": 1, "ignore_rack": False}
BY_HAND = {"partitions": [{"id": 0, "replicas": [5001]}]}
SPECIFIED: dict[str, Any] = {"form": 1, "replicas": COMPUTED, **KEPT}
TOPIC: dict[str, Any] = {
    "name": "hello",
    "spec": SPECIFIED,
    "resolution": 4,
    "replica_map": [{"partition": 0, "spus": [5001]}],
    "reason": "",
}
LEADER = {"spu": 5001, "high_watermark": 0, "end_offset": 0}
PLACED: dict[str, Any] = {
    "name": "hello-0",
    "leader": 5001,
    "replicas": [5001],
    **KEPT,
    "resolution": 1,
    "leader_status": LEADER,
    "in_sync": 0,
    "replica_statuses": [],
    "size": 0,
    "deleting": False,
}
PARTITION = PLACED | {"base_offset": 0}
OBJECTS: tuple[tuple[Struct, tuple[Example, ...]], ...] = (
    (
        calls.INGRESS,
        (
            ex("ip", "An address.", 19, hostname=None, ip="::1"),
            ex("host", "A name.", 19, hostname="a", ip=None),
        ),
    ),
    (calls.PUBLIC, (ex("one", "One host.", 19, **PUBLIC),)),
    (
        calls.ENDPOINT,
        (
            ex("plain", "In the clear.", 19, **PRIVATE),
            ex("tls", "Encrypted.", 19, **PRIVATE | {"encryption": 1}),
        ),
    ),
    (
        calls.SPU,
        (
            ex("custom", "An SPU.", 19, **SPU),
            ex(
                "whole",
                "With everything.",
                19,
                **SPU | {"rack": "r1", "local_endpoint": PRIVATE, "resolution": 2, "spu_type": 0},
            ),
        ),
    ),
    (calls.CLEANUP, (ex("day", "A day.", 19, seconds=86400),)),
    (
        calls.STORAGE,
        (
            ex("both", "Both.", 19, segment_size=2**30, max_partition_size=MAX64),
            ex("neither", "Neither.", 19, segment_size=None, max_partition_size=None),
        ),
    ),
    (
        calls.DEDUPLICATION,
        (
            ex("hour", "An hour.", 19, **DROPPING),
            ex("ageless", "A number.", 19, **DROPPING | {"age": None}),
        ),
    ),
    (
        calls.ASSIGNED,
        (
            ex("one", "One SPU.", 19, id=0, replicas=[5001]),
            ex("none", "None.", 19, id=0, replicas=[]),
        ),
    ),
    (calls.BY_HAND, (ex("one", "One partition.", 19, **BY_HAND),)),
    (calls.COMPUTED, (ex("one", "One partition.", 19, **COMPUTED),)),
    (
        calls.TOPIC_SPEC,
        (
            ex("computed", "Placed by the cluster.", 19, **SPECIFIED),
            ex("assigned", "Placed by hand.", 19, form=0, replicas=BY_HAND, **KEPT),
            ex("whole", "With everything.", 19, form=1, replicas=COMPUTED, **KEPT_WHOLLY),
        ),
    ),
    (calls.MAP_ENTRY, (ex("one", "One SPU.", 19, partition=0, spus=[5001]),)),
    (
        calls.TOPIC_OBJECT,
        (
            ex("hello", "A topic.", 19, **TOPIC),
            ex(
                "pending",
                "One that waits.",
                19,
                **TOPIC | {"resolution": 1, "replica_map": [], "reason": "no SPU"},
            ),
        ),
    ),
    (calls.REPLICA_STATUS, (ex("one", "One.", 19, **LEADER),)),
    (
        calls.PARTITION_OBJECT,
        (
            ex("hello", "A partition.", 19, (15,), **PARTITION),
            ex("version-16", "The first with a start.", 16, (15,), **PARTITION),
            ex("version-15", "The last without.", 15, (16,), **PLACED),
            ex(
                "whole",
                "With everything.",
                19,
                **PARTITION
                | KEPT_WHOLLY
                | {
                    "replica_statuses": [LEADER],
                    "in_sync": 1,
                    "size": MAX63,
                    "deleting": True,
                    "base_offset": 7,
                },
            ),
        ),
    ),
)
"""SPUs, topics and partitions."""


def watching(brought: tuple[Struct, ...], item: dict[str, Any]) -> tuple[Any, ...]:
    """Return examples of what brings objects of one type."""
    change, update, answer, listed = brought
    every = {"epoch": 1, "changes": [], "all": [item]}
    some = {"epoch": 2, "changes": [{"change": 0, "object": item}], "all": []}
    return (
        (change, (ex("update", "A change.", 19, change=0, object=item),
                  ex("delete", "The end of one.", 19, change=1, object=item))),
        (update, (ex("all", "All objects.", 19, **every), ex("some", "What changed.", 19, **some),
                  ex("none", "None, which wakes no client.", 19, epoch=0, changes=[], all=[]))),
        (answer, (ex("all", "All objects.", 19, update=every),
                  ex("some", "What changed.", 19, update=some))),
        (listed, (ex("one", "One object.", 19, objects=[item]),
                  ex("none", "No object.", 19, objects=[]))),
    )  # fmt: skip


ADMIN: tuple[tuple[Struct, tuple[Example, ...]], ...] = (
    (calls.WATCH, (ex("start", "From nothing.", 19, epoch=0, summary=False),)),
    (
        calls.WATCHING,
        (
            ex("spu", "SPUs.", 19, object_type="SPU", watch={"epoch": 0, "summary": False}),
            ex(
                "topic",
                "Topics, in short.",
                15,
                object_type="Topic",
                watch={"epoch": MAX63, "summary": True},
            ),
        ),
    ),
    *watching(calls.SPUS, SPU),
    *watching(calls.TOPICS, TOPIC),
    *watching(calls.PARTITIONS, PARTITION),
    (
        calls.LISTING,
        (
            ex("all", "All.", 19, names=[], summary=False, system=True),
            ex("two", "Two.", 19, names=["a", "b"], summary=True, system=False),
        ),
    ),
    (
        calls.LIST,
        (
            ex(
                "topics",
                "All topics.",
                19,
                object_type="Topic",
                listing={"names": ["a"], "summary": False, "system": False},
            ),
        ),
    ),
    (
        calls.CREATION,
        (
            ex("hello", "A topic.", 19, name="hello", dry_run=False, timeout=None, spec=SPECIFIED),
            ex("dry", "A rehearsal.", 19, name="hello", dry_run=True, timeout=1000, spec=SPECIFIED),
        ),
    ),
    (
        calls.CREATE,
        (
            ex(
                "hello",
                "A topic.",
                19,
                creation={"name": "hello", "dry_run": False, "timeout": 1000, "spec": SPECIFIED},
            ),
        ),
    ),
    (calls.DELETION, (ex("hello", "A topic.", 19, name="hello", force=False),)),
    (calls.DELETE, (ex("hello", "A topic.", 19, deletion={"name": "hello", "force": True}),)),
    (
        calls.STATUS,
        (
            ex("done", "Done.", 19, name="hello", outcome=NONE, message=None),
            ex(
                "exists",
                "It is there.",
                19,
                name="hello",
                outcome={"code": 2002, "detail": None},
                message="Topic exists",
            ),
        ),
    ),
)
"""Requests to the SC."""
