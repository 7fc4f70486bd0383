"""Topics: which there are, who leads their partitions, what these hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lance_sdk._api.other_systems import Address
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
    PartitionResolution,
    ReplicaForm,
    TopicCompression,
    TopicCreation,
    TopicDeletion,
    TopicSpec,
)


@dataclass(frozen=True, slots=True)
class Leader:
    """The SPU that leads a partition.

    Attributes:
        at: where clients reach it; None when the cluster does not say.
        online: whether the cluster can reach it.
    """

    at: Address | None = None
    online: bool = False


class Leaders:
    """Who leads each partition of a topic, as far as is known.

    Args:
        topic: name of the topic.
        found: the leaders, by number of the partition.

    Attributes:
        available: numbers of the partitions that can be written now; all, when none can.
    """

    def __init__(self, topic: str, found: Sequence[Leader]) -> None:
        self.topic = topic
        self.available: Sequence[int] = ()
        self._found: Sequence[Leader] = ()
        self.learn(found)

    def __repr__(self) -> str:
        return f"<Leaders of {self.topic!r}: {len(self.available)} of {len(self)} available>"

    def __len__(self) -> int:
        return len(self._found)

    def learn(self, found: Sequence[Leader]) -> None:
        """Take in who leads them now."""
        self._found = found
        online = [index for index, each in enumerate(found) if each.online]
        self.available = online or range(len(found))

    def at(self, partition: int) -> Address:
        """Return where the leader of a partition is.

        Raises:
            FluvioRefused: nobody leads it, or there is no such partition any more.
        """
        what = f"partition {partition} of {self.topic!r}"
        code = ErrorCode.NOT_LEADER_FOR_PARTITION
        if partition not in range(len(self)):
            there = f"the topic has {len(self)}"
            raise FluvioRefused(what, code, there, retryable=False)
        found = self._found[partition].at
        if found is None:
            raise FluvioRefused(what, code, "it has no leader now")
        return found


def listed(kind: str, *, system: bool = False, names: Sequence[str] = ()) -> Steps[list[Any]]:
    """Return objects; the published SC lists either its own topics and partitions or the users'."""
    listing = Listing(names=list(names), summary=False, system=system)
    asked = ListRequest(object_type=kind, listing=listing)
    response = yield Ask(1003, asked, f"list {kind} objects", kind=kind)
    found: list[Any] = response.objects
    return found


def topics() -> Steps[list[FluvioTopic]]:
    """Return the topics there are, by name: the users' and the cluster's own."""
    found: dict[str, FluvioTopic] = {}
    for system in (False, True):
        for each in (yield from listed("Topic", system=system)):
            found[each.name] = FluvioTopic(each.name, _count(each), each.spec.system)
    return [found[name] for name in sorted(found)]


def _count(topic: Any) -> int:
    """Return how many partitions a topic has, also while the cluster still places them."""
    replicas = topic.spec.replicas
    if isinstance(replicas, ComputedReplicas):
        return replicas.partitions
    return len(replicas.partitions)


def create_topic(name: str, partitions: int, retention_secs: int, replication: int) -> Steps[None]:
    """Create a topic."""
    spec = TopicSpec(
        form=ReplicaForm.COMPUTED,
        replicas=ComputedReplicas(partitions=partitions, replication=replication, ignore_rack=True),
        cleanup_policy=CleanupPolicy(seconds=retention_secs) if retention_secs else None,
        storage=None,
        compression=TopicCompression.ANY,
        deduplication=None,
        system=False,
    )
    creation = TopicCreation(name=name, dry_run=False, timeout=None, spec=spec)
    what = f"create topic {name!r}"
    asked = CreateTopicRequest(creation=creation)
    status = yield Ask(1001, asked, what, kind="Topic", changes=True)
    check(what, status.outcome, status.message)


def delete_topic(name: str) -> Steps[None]:
    """Delete a topic."""
    deletion = TopicDeletion(name=name, force=False)
    what = f"delete topic {name!r}"
    asked = DeleteTopicRequest(deletion=deletion)
    status = yield Ask(1002, asked, what, kind="Topic", changes=True)
    check(what, status.outcome, status.message)


def leaders(topic: str) -> Steps[list[Leader]]:
    """Find the SPU that leads each partition of a topic.

    Raises:
        FluvioRefused: there is no such topic; it passes while an SC that was started has not
            read what topics there are.
    """
    has_read = False
    for system in (False, True, False):  # an SC may read its topics between two answers
        found = yield from listed("Topic", system=system, names=[] if system else [topic])
        for each in found:
            if each.name == topic:
                return (yield from _leaders(topic, _count(each), system=system))
        has_read = has_read or (system and bool(found))
    text = "" if has_read else "the SC knows of no topic yet, not even its own"
    raise FluvioRefused(f"topic {topic!r}", ErrorCode.TOPIC_NOT_FOUND, text, retryable=not has_read)


def _leaders(topic: str, count: int, *, system: bool) -> Steps[list[Leader]]:
    spus = {each.id: _address(each) for each in (yield from listed("SPU"))}
    found: dict[int, Leader] = {}
    for each in (yield from listed("Partition", system=system)):
        name, _, index = each.name.rpartition("-")
        if name == topic and index.isdecimal():
            online = each.resolution is PartitionResolution.ONLINE
            found[int(index)] = Leader(spus.get(each.leader), online)
    return [found.get(index, Leader()) for index in range(count)]


def leader(topic: str, partition: int) -> Steps[Address]:
    """Find the SPU that leads a partition.

    Raises:
        FluvioRefused: there is no such partition, or nobody leads it.
    """
    found = yield from leaders(topic)
    return Leaders(topic, found).at(partition)


def _address(spu: Any) -> Address | None:
    for each in spu.public_endpoint.ingress:
        if host := each.hostname or each.ip:
            return host, spu.public_endpoint.port
    return None


def offsets(topic: str, partition: int) -> Steps[Offsets]:
    """Return what a partition holds."""
    asked = FetchOffsetsRequest(topics=[OffsetsTopic(topic=topic, partitions=[partition])])
    at = yield from leader(topic, partition)
    what = f"offsets of {topic!r} partition {partition}"
    response = yield Ask(1002, asked, what, at)
    try:
        found = response.topics[0].partitions[0]
    except IndexError:
        raise RemoteProtocolError(f"{what}: the SPU's answer is empty") from None
    check(what, found.outcome)
    return Offsets(found.start_offset, found.last_stable_offset)
