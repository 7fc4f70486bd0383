"""Topics: which there are, who leads their partitions, what these hold."""

from typing import Any, Final

from lance_sdk._foreign import Address
from lance_sdk.errors import RemoteProtocolError
from lance_sdk.fluvio._asks import Ask, Steps
from lance_sdk.fluvio.errors import FluvioRefused, check
from lance_sdk.fluvio.types import FluvioTopic, Offsets
from lance_spec.messages.fluvio import (
    CleanupPolicy,
    ComputedReplicas,
    CreateTopicRequest,
    DeleteTopicRequest,
    ErrorCode,
    FetchOffsetsRequest,
    Listing,
    ListRequest,
    OffsetsTopic,
    ReplicaForm,
    TopicCompression,
    TopicCreation,
    TopicDeletion,
    TopicSpec,
)

_NOBODY: Final = -1  # no SPU's number


def _listed(kind: str) -> Steps[list[Any]]:
    asked = ListRequest(object_type=kind, listing=Listing(names=[], summary=False, system=False))
    response = yield Ask(1003, asked, kind=kind)
    found: list[Any] = response.objects
    return found


def topics() -> Steps[list[FluvioTopic]]:
    """Return the topics there are, by name."""
    found = yield from _listed("Topic")
    return sorted(
        (FluvioTopic(each.name, len(each.replica_map), each.spec.system) for each in found),
        key=lambda each: each.name,
    )


def create_topic(name: str, partitions: int, retention_secs: int) -> Steps[None]:
    """Create a topic."""
    spec = TopicSpec(
        form=ReplicaForm.COMPUTED,
        replicas=ComputedReplicas(partitions=partitions, replication=1, ignore_rack=True),
        cleanup_policy=CleanupPolicy(seconds=retention_secs) if retention_secs else None,
        storage=None,
        compression=TopicCompression.ANY,
        deduplication=None,
        system=False,
    )
    creation = TopicCreation(name=name, dry_run=False, timeout=None, spec=spec)
    status = yield Ask(1001, CreateTopicRequest(creation=creation), kind="Topic", changes=True)
    check(f"create topic {name!r}", status.outcome, status.message)


def delete_topic(name: str) -> Steps[None]:
    """Delete a topic."""
    deletion = TopicDeletion(name=name, force=False)
    status = yield Ask(1002, DeleteTopicRequest(deletion=deletion), kind="Topic", changes=True)
    check(f"delete topic {name!r}", status.outcome, status.message)


def leaders(topic: str) -> Steps[list[Address]]:
    """Find the SPU that leads each partition of a topic.

    Raises:
        FluvioRefused: there is no such topic, or a partition without a leader.
    """
    spus = {each.id: _address(each) for each in (yield from _listed("SPU"))}
    found: dict[int, int] = {}
    for each in (yield from _listed("Partition")):
        name, _, index = each.name.rpartition("-")
        if name == topic and index.isdecimal():
            found[int(index)] = each.leader
    if not found:
        raise FluvioRefused(f"topic {topic!r}", ErrorCode.TOPIC_NOT_FOUND)
    return [_led(topic, index, spus.get(found.get(index, _NOBODY))) for index in range(len(found))]


def _led(topic: str, partition: int, address: Address | None) -> Address:
    if address is None:
        what = f"partition {partition} of {topic!r}"
        raise FluvioRefused(what, ErrorCode.NOT_LEADER_FOR_PARTITION, "nobody leads it now")
    return address


def leader(topic: str, partition: int) -> Steps[Address]:
    """Find the SPU that leads a partition.

    Raises:
        FluvioRefused: there is no such partition, or nobody leads it.
    """
    found = yield from leaders(topic)
    if not 0 <= partition < len(found):
        what = f"partition {partition} of {topic!r}, which has {len(found)}"
        raise FluvioRefused(what, ErrorCode.NOT_LEADER_FOR_PARTITION)
    return found[partition]


def _address(spu: Any) -> Address | None:
    for each in spu.public_endpoint.ingress:
        if host := each.hostname or each.ip:
            return host, spu.public_endpoint.port
    return None


def offsets(topic: str, partition: int) -> Steps[Offsets]:
    """Return what a partition holds."""
    asked = FetchOffsetsRequest(topics=[OffsetsTopic(topic=topic, partitions=[partition])])
    at = yield from leader(topic, partition)
    response = yield Ask(1002, asked, at)
    try:
        found = response.topics[0].partitions[0]
    except IndexError:
        raise RemoteProtocolError("the Fluvio spu answers FetchOffsets with nothing") from None
    check(f"offsets of {topic!r} partition {partition}", found.outcome)
    return Offsets(found.start_offset, found.last_stable_offset)
