"""The SC: topics, partitions, watches; and how they are kept in the log."""

import select
from pathlib import Path
from typing import Any

import pytest

from lance_server.listeners.fluvio.testing import FluvioPeer, FluvioServers, fluvio_servers
from lance_server.testing import RawClient
from lance_spec.bodies import decode_topics
from lance_spec.enums import Command
from lance_spec.messages.fluvio import (
    AssignedPartition,
    AssignedReplicas,
    ChangeKind,
    CleanupPolicy,
    ComputedReplicas,
    Deduplication,
    DeleteTopicRequest,
    ErrorCode,
    Listing,
    ListPartitionResponse,
    ListRequest,
    ListSpuResponse,
    ListTopicResponse,
    ReplicaForm,
    Status,
    TopicCompression,
    TopicDeletion,
    Watch,
    WatchPartitionResponse,
    WatchRequest,
    WatchTopicResponse,
)
from lance_spec.messages.lwp import CreatePartitionedTopic

from .messages import OBJECTS, batch, create, produce, spec


def listed(
    sc: FluvioPeer, kind: str, *names: str, version: int = OBJECTS, system: bool = False
) -> list[Any]:
    """Return the objects of a kind."""
    responses: dict[str, Any] = {
        "SPU": ListSpuResponse,
        "Topic": ListTopicResponse,
        "Partition": ListPartitionResponse,
    }
    asked = ListRequest(
        object_type=kind, listing=Listing(names=list(names), summary=False, system=system)
    )
    body = sc.ask(1003, version, asked.encode(version))
    found: list[Any] = responses[kind].decode(body, version).objects
    return found


def delete(sc: FluvioPeer, name: str) -> Status:
    """Delete a topic."""
    body = DeleteTopicRequest(deletion=TopicDeletion(name=name, force=False)).encode(OBJECTS)
    return Status.decode(sc.ask(1002, OBJECTS, body))


def watch(sc: FluvioPeer, kind: str) -> int:
    """Begin a watch; return its number."""
    asked = WatchRequest(object_type=kind, watch=Watch(epoch=0, summary=False))
    return sc.send(1004, OBJECTS, asked.encode(OBJECTS))


def in_the_log(servers: FluvioServers) -> list[str]:
    """Return the topics that LWP clients see."""
    with RawClient(servers.server.address) as client:
        return [each.name for each in decode_topics(client.ask(Command.LIST_TOPICS).payload)]


def create_in_the_log(servers: FluvioServers, *names: str) -> None:
    """Create topics as LWP clients do."""
    with RawClient(servers.server.address) as client:
        for name in names:
            client.ask(Command.CREATE_TOPIC, name.encode())


def test_partitions_are_topics_of_the_log(servers: FluvioServers, sc: FluvioPeer) -> None:
    """Partition 0 has the topic's name, the others a number after it."""
    create(sc, "wide", spec(3))
    assert sorted(in_the_log(servers)) == ["wide", "wide.1", "wide.2"]
    assert [each.name for each in listed(sc, "Topic")] == ["wide"]
    assert [each.name for each in listed(sc, "Partition")] == ["wide-0", "wide-1", "wide-2"]


def test_the_servers_own_topic_is_listed_apart(sc: FluvioPeer) -> None:
    """As in a published cluster, a list has the users' topics or the server's own."""
    create(sc, "wide", spec(3))
    assert [each.name for each in listed(sc, "Topic", system=True)] == ["consumer-offset"]
    assert [each.name for each in listed(sc, "Partition", system=True)] == ["consumer-offset-0"]


def test_topics_are_listed_by_how_their_names_begin(sc: FluvioPeer) -> None:
    """As in a published cluster, a name stands for all that begin with it; partitions ignore it."""
    for name in ("da", "db", "e"):
        create(sc, name)
    assert sorted(each.name for each in listed(sc, "Topic", "d")) == ["da", "db"]
    assert sorted(each.name for each in listed(sc, "Topic", "da", "e")) == ["da", "e"]
    assert len(listed(sc, "Partition", "da")) == 3


@pytest.mark.parametrize("version", [15, 16, 17, 18, 19])
def test_objects_come_in_every_version(sc: FluvioPeer, version: int) -> None:
    """A client reads objects in the version that it asked for."""
    create(sc, "wide", spec(2))
    assert [each.spec.replicas.partitions for each in listed(sc, "Topic", "wide", version=version)]
    assert len(listed(sc, "Partition", version=version)) == 2
    (spu,) = listed(sc, "SPU", version=version)
    assert spu.public_endpoint.ingress[0].ip == "127.0.0.1"


def test_a_name_with_a_number_is_a_topic_where_no_other_claims_it(
    servers: FluvioServers, sc: FluvioPeer
) -> None:
    """``a.2`` belongs to ``a`` only where ``a`` and ``a.1`` are there."""
    create_in_the_log(servers, "a.2", "b.01", "b", "c.x", "c")
    seen = {each.name: each.spec.replicas.partitions for each in listed(sc, "Topic")}
    assert seen == {"a.2": 1, "b.01": 1, "b": 1, "c.x": 1, "c": 1}
    create_in_the_log(servers, "a", "a.1")
    seen = {each.name: each.spec.replicas.partitions for each in listed(sc, "Topic")}
    assert seen["a"] == 3
    assert "a.2" not in seen
    assert len(in_the_log(servers)) == 7


def test_a_partitioned_topic_is_there_with_its_partitions(
    servers: FluvioServers, sc: FluvioPeer
) -> None:
    """AMB-59: and those are no topics of their own; its deletion takes all."""
    with RawClient(servers.server.address) as client:
        request = CreatePartitionedTopic(b"orders", 3, 2, 0, 0).encode()
        client.ask_json(Command.CREATE_PARTITIONED_TOPIC, request)
        seen = {each.name: each.spec.replicas.partitions for each in listed(sc, "Topic")}
        assert seen == {"orders": 3}
        assert delete(sc, "orders").outcome.code is ErrorCode.NONE
        assert decode_topics(client.ask(Command.LIST_TOPICS).payload) == []


def test_a_topic_is_deleted_with_all_its_partitions(servers: FluvioServers, sc: FluvioPeer) -> None:
    """Nothing of it stays in the log."""
    create(sc, "wide", spec(3))
    assert delete(sc, "wide").outcome.code is ErrorCode.NONE
    assert in_the_log(servers) == []
    assert delete(sc, "wide").outcome.code is ErrorCode.TOPIC_NOT_FOUND


def test_what_stands_in_the_way_is_not_overwritten(
    servers: FluvioServers, sc: FluvioPeer, spu: FluvioPeer
) -> None:
    """A topic of the log that holds records does not silently become a partition."""
    create_in_the_log(servers, "wide.1", "wide.2")
    produce(spu, "wide.1", batch(b"mine"))
    refused = create(sc, "wide", spec(3))
    assert refused.outcome.code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert "'wide.1'" in (refused.message or "")
    assert sorted(in_the_log(servers)) == ["wide.1", "wide.2"]
    delete(sc, "wide.1")
    assert create(sc, "wide", spec(3)).outcome.code is ErrorCode.NONE


def test_a_dry_run_creates_nothing(servers: FluvioServers, sc: FluvioPeer) -> None:
    """It says what would happen."""
    assert create(sc, "later", dry_run=True).outcome.code is ErrorCode.NONE
    assert in_the_log(servers) == []
    create(sc, "later")
    assert create(sc, "later", dry_run=True).outcome.code is ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {
                "replicas": ComputedReplicas(
                    partitions=partitions, replication=replication, ignore_rack=False
                )
            },
            words,
        )
        for partitions, replication, words in (
            (0, 1, "0 partitions"),
            (257, 1, "1 to 256"),
            (1, 2, "replication must be 1"),
        )
    ]
    + [
        ({"compression": TopicCompression.GZIP}, "every compression"),
        (
            {"deduplication": Deduplication(count=1, age=None, uses="x", parameters=[])},
            "no deduplication",
        ),
        (
            {
                "form": ReplicaForm.ASSIGNED,
                "replicas": AssignedReplicas(partitions=[AssignedPartition(id=1, replicas=[5001])]),
            },
            "from 0 without gaps",
        ),
    ],
)
def test_a_topic_that_cannot_be_had_is_refused(
    sc: FluvioPeer, changes: dict[str, Any], words: str
) -> None:
    """Nothing that was asked for is left out in silence."""
    refused = create(sc, "special", spec(**changes))
    assert refused.outcome.code is ErrorCode.TOPIC_INVALID_CONFIGURATION
    assert words in (refused.message or "")


def test_assigned_partitions_are_counted(servers: FluvioServers, sc: FluvioPeer) -> None:
    """Where they are to be does not matter: there is one place."""
    parts = [AssignedPartition(id=each, replicas=[5001]) for each in (1, 0)]
    wanted = spec(form=ReplicaForm.ASSIGNED, replicas=AssignedReplicas(partitions=parts))
    assert create(sc, "placed", wanted).outcome.code is ErrorCode.NONE
    assert sorted(in_the_log(servers)) == ["placed", "placed.1"]


def test_retention_is_taken_over(servers: FluvioServers, sc: FluvioPeer) -> None:
    """What a topic is created with holds in the log, and shows."""
    create(sc, "short", spec(cleanup_policy=CleanupPolicy(seconds=3600)))
    topic = servers.cluster.engine.topic_named("short")
    assert topic is not None
    assert topic.file.retention.max_age_secs == 3600
    assert [each.spec.cleanup_policy for each in listed(sc, "Topic", "short")] == [
        CleanupPolicy(seconds=3600)
    ]


def test_watches_bring_everything_then_changes(sc: FluvioPeer, servers: FluvioServers) -> None:
    """What comes and goes is told to whoever watches, whoever did it."""
    create(sc, "first")
    with FluvioPeer(servers.sc) as watching:
        watch(watching, "Topic")
        first = WatchTopicResponse.decode(watching.receive().body, OBJECTS).update
        assert [each.name for each in first.all] == ["first", "consumer-offset"]
        with RawClient(servers.server.address) as client:
            client.ask(Command.CREATE_TOPIC, b"by-lwp")
        second = WatchTopicResponse.decode(watching.receive().body, OBJECTS).update
        assert [(each.change, each.object.name) for each in second.changes] == [
            (ChangeKind.UPDATE, "by-lwp")
        ]
        delete(sc, "first")
        third = WatchTopicResponse.decode(watching.receive().body, OBJECTS).update
        assert [(each.change, each.object.name) for each in third.changes] == [
            (ChangeKind.DELETE, "first")
        ]
        assert first.epoch < second.epoch < third.epoch


def test_partitions_are_watched(sc: FluvioPeer, servers: FluvioServers) -> None:
    """A new topic brings its partitions."""
    with FluvioPeer(servers.sc) as watching:
        watch(watching, "Partition")
        first = WatchPartitionResponse.decode(watching.receive().body, OBJECTS).update
        assert [each.name for each in first.all] == ["consumer-offset-0"]
        create(sc, "wide", spec(2))
        found: list[str] = []
        while len(found) < 2:
            update = WatchPartitionResponse.decode(watching.receive().body, OBJECTS).update
            found += [each.object.name for each in update.changes]
        assert found == ["wide-0", "wide-1"]


@pytest.mark.parametrize("kind", ["SmartModule", "TableFormat", "SpuGroup", "CustomSpu", "Mirror"])
def test_there_are_no_other_objects(sc: FluvioPeer, kind: str) -> None:
    """A list of what a published cluster may have, and we have not, is empty."""
    asked = ListRequest(
        object_type=kind, listing=Listing(names=[], summary=False, system=False)
    ).encode(OBJECTS)
    assert sc.ask(1003, OBJECTS, asked)[-8:] == bytes([0, 0, 0, 4, 0, 0, 0, 0])


OTHER_KINDS = ["SmartModule", "TableFormat", "SpuGroup", "Mirror"]


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_a_watch_of_other_objects_tells_that_there_are_none(sc: FluvioPeer, kind: str) -> None:
    """The first response has no objects, and the connection is of use afterwards."""
    number = watch(sc, kind)
    response = sc.receive()
    assert response.correlation_id == number
    assert response.body == titled(kind) + bytes([0, 0, 0, 16]) + bytes(16)
    assert listed(sc, "Topic") == []


def titled(kind: str) -> bytes:
    """Return what a request or a response about a kind of objects begins with."""
    return len(kind).to_bytes(2, "big") + kind.encode()


def named(kind: str, name: str) -> bytes:
    """Return a request to create or to delete an object, as far as the server reads it."""
    content = titled(name) + bytes(1)
    return titled(kind) + len(content).to_bytes(4, "big") + content


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_other_objects_are_not_there_to_be_deleted(sc: FluvioPeer, kind: str) -> None:
    """The refusal names the object, and the connection is of use afterwards."""
    status = Status.decode(sc.ask(1002, OBJECTS, named(kind, "x")))
    wanted = ErrorCode.SMART_MODULE_NOT_FOUND if kind == "SmartModule" else ErrorCode.OTHER
    assert (status.name, status.outcome.code) == ("x", wanted)
    assert status.message == f"{kind} x was not found"
    assert listed(sc, "Topic") == []


@pytest.mark.parametrize("kind", [*OTHER_KINDS, "CustomSpu"])
def test_other_objects_are_not_created(sc: FluvioPeer, kind: str) -> None:
    """The refusal says so, and the connection is of use afterwards."""
    status = Status.decode(sc.ask(1001, OBJECTS, named(kind, "x")))
    assert (status.name, status.outcome.code) == ("x", ErrorCode.OTHER)
    assert status.message == f"there are no {kind} objects here"
    assert listed(sc, "Topic") == []


@pytest.mark.parametrize("key", [1001, 1002])
@pytest.mark.parametrize("cut", [b"", b"\x00", titled("SmartModule"), b"\x00\x02\xff\xff"])
def test_a_request_about_nothing_ends_the_connection(
    servers: FluvioServers, key: int, cut: bytes
) -> None:
    """It ends before it names an object, or names it with bytes that are no text."""
    with FluvioPeer(servers.sc) as peer:
        peer.send(key, OBJECTS, cut)
        assert peer.closed()


@pytest.mark.parametrize(
    "name", ["", "UPPER", "a_b", "a.b", "a b", "-a", "a-", "x" * 64, "größe", "a/b"]
)
def test_names_follow_fluvios_rule(servers: FluvioServers, sc: FluvioPeer, name: str) -> None:
    """What other Fluvio programs could not use is refused, with the rule."""
    status = create(sc, name)
    assert status.outcome.code is ErrorCode.TOPIC_INVALID_NAME
    assert in_the_log(servers) == []


def test_a_topic_of_another_protocol_is_used_whatever_its_name(
    servers: FluvioServers, sc: FluvioPeer, spu: FluvioPeer
) -> None:
    """What LWP allows beyond Fluvio's rule is listed, written and deleted."""
    create_in_the_log(servers, "Größe_1")
    assert [each.name for each in listed(sc, "Topic")] == ["Größe_1"]
    produce(spu, "Größe_1", batch(b"a"))
    assert delete(sc, "Größe_1").outcome.code is ErrorCode.NONE


@pytest.mark.parametrize("seconds", [0, 1, 9])
def test_a_retention_that_is_too_short_is_refused(sc: FluvioPeer, seconds: int) -> None:
    """Published clusters keep records for 10 seconds at least."""
    status = create(sc, "short", spec(cleanup_policy=CleanupPolicy(seconds=seconds)))
    assert status.outcome.code is ErrorCode.TOPIC_INVALID_CONFIGURATION


def test_a_topic_is_announced_before_its_creation_is_answered(servers: FluvioServers) -> None:
    """A client that watches knows of a topic when another one is told that it is there."""
    with FluvioPeer(servers.sc) as watching, FluvioPeer(servers.sc) as sc:
        watch(watching, "Topic")
        watching.receive()
        for number in range(20):
            create(sc, f"t{number}")
            assert select.select([watching.socket], [], [], 0)[0], "nothing was announced"
            watching.receive()


def test_a_watch_of_something_unknown_ends_the_connection(servers: FluvioServers) -> None:
    """No cluster has such objects."""
    with FluvioPeer(servers.sc) as peer:
        watch(peer, "Something")
        assert peer.closed()


def test_topics_outlive_the_server(tmp_path: Path) -> None:
    """What belongs together is seen again after a restart."""
    with fluvio_servers(tmp_path / "data") as servers, FluvioPeer(servers.sc) as sc:
        create(sc, "wide", spec(3))
    with fluvio_servers(tmp_path / "data") as servers, FluvioPeer(servers.sc) as sc:
        assert [each.name for each in listed(sc, "Partition")] == [
            "wide-0",
            "wide-1",
            "wide-2",
        ]
