"""A topic that is being served."""

from dataclasses import dataclass

from lance_server.log.metadata.consumer_offsets import ConsumerOffsets
from lance_server.log.metadata.topic_file import TopicFile
from lance_server.log.partition import Partition
from lance_spec.bodies import PartitionInfo, TopicInfo


@dataclass(slots=True, eq=False)
class Topic:
    """A topic that is being served.

    Attributes:
        file: its metadata.
        partition: its log.
        consumers: how far consumers are.
        part: which partition of which topic it is; None for a topic of its own (AMB-59).
    """

    file: TopicFile
    partition: Partition
    consumers: ConsumerOffsets
    part: PartitionInfo | None = None

    @property
    def id(self) -> int:
        """Its number."""
        return self.file.identity.id

    @property
    def access_name(self) -> str:
        """The name by which access rules are judged: that of the whole (AMB-59)."""
        return self.file.identity.name if self.part is None else self.part.topic

    def info(self) -> TopicInfo:
        """Return all that is told of it (LWP section 5.5, AMB-29, AMB-30)."""
        identity, retention = self.file.identity, self.file.retention
        return TopicInfo(
            id=identity.id,
            name=identity.name,
            created_at=identity.created_at,
            topic_epoch=identity.epoch,
            start_offset=self.partition.start_offset,
            end_offset=self.partition.end_offset,
            record_count=self.partition.end_record - self.partition.log_start.record,
            max_age_secs=retention.max_age_secs,
            max_bytes=retention.max_bytes,
            partition=self.part,
        )
