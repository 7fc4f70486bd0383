"""The objects of the cluster as clients read them."""

import ipaddress
from typing import Final

from lance_server.config.settings import Address
from lance_server.listeners.fluvio.cluster import OFFSETS_TOPIC, FluvioTopic
from lance_spec.messages.fluvio import (
    CleanupPolicy,
    ComputedReplicas,
    Encryption,
    Endpoint,
    Ingress,
    PartitionObject,
    PartitionResolution,
    PublicEndpoint,
    ReplicaForm,
    ReplicaMapEntry,
    ReplicaStatus,
    SpuObject,
    SpuResolution,
    SpuType,
    StorageConfig,
    TopicCompression,
    TopicObject,
    TopicResolution,
    TopicSpec,
)

SPU_ID: Final = 5001


def spu_object(address: Address, *, encrypted: bool) -> SpuObject:
    """Return the only SPU, which listens at an address."""
    encryption = Encryption.SSL if encrypted else Encryption.PLAINTEXT
    return SpuObject(
        name=f"custom-spu-{SPU_ID}",
        id=SPU_ID,
        spu_type=SpuType.CUSTOM,
        public_endpoint=PublicEndpoint(
            port=address.port,
            ingress=[_ingress(address.host)],
            encryption=encryption,
        ),
        private_endpoint=Endpoint(port=address.port, host=address.host, encryption=encryption),
        rack=None,
        local_endpoint=None,
        resolution=SpuResolution.ONLINE,
    )


def _ingress(host: str) -> Ingress:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return Ingress(hostname=host, ip=None)
    return Ingress(hostname=None, ip=host)


def topic_object(topic: FluvioTopic) -> TopicObject:
    """Return a topic."""
    return TopicObject(
        name=topic.name,
        spec=TopicSpec(
            form=ReplicaForm.COMPUTED,
            replicas=ComputedReplicas(partitions=topic.count, replication=1, ignore_rack=False),
            cleanup_policy=_cleanup(topic),
            storage=_storage(topic),
            compression=TopicCompression.ANY,
            deduplication=None,
            system=topic.name == OFFSETS_TOPIC,
        ),
        resolution=TopicResolution.PROVISIONED,
        replica_map=[
            ReplicaMapEntry(partition=index, spus=[SPU_ID]) for index in range(topic.count)
        ],
        reason="",
    )


def partition_objects(topic: FluvioTopic) -> list[PartitionObject]:
    """Return the partitions of a topic."""
    return [_partition(topic, index) for index in range(topic.count)]


def _partition(topic: FluvioTopic, index: int) -> PartitionObject:
    log = topic.partitions[index].partition if topic.partitions else None
    end = log.end_record if log else 0
    return PartitionObject(
        name=f"{topic.name}-{index}",
        leader=SPU_ID,
        replicas=[SPU_ID],
        cleanup_policy=_cleanup(topic),
        storage=_storage(topic),
        compression=TopicCompression.ANY,
        deduplication=None,
        system=topic.name == OFFSETS_TOPIC,
        resolution=PartitionResolution.ONLINE,
        leader_status=ReplicaStatus(spu=SPU_ID, high_watermark=end, end_offset=end),
        in_sync=1,
        replica_statuses=[],
        size=log.end_offset - log.start_offset if log else 0,
        deleting=False,
        base_offset=log.log_start.record if log else 0,
    )


def _cleanup(topic: FluvioTopic) -> CleanupPolicy | None:
    seconds = topic.partitions[0].file.retention.max_age_secs if topic.partitions else 0
    return CleanupPolicy(seconds=min(seconds, 0xFFFFFFFF)) if seconds else None


def _storage(topic: FluvioTopic) -> StorageConfig | None:
    size = topic.partitions[0].file.retention.max_bytes if topic.partitions else 0
    return StorageConfig(segment_size=None, max_partition_size=size) if size else None
