"""The settings that influence what comes of records: one set a cluster, which Genesis holds."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from lance_server.cluster.applying.window import WindowSize
from lance_spec.bodies import take_int, take_str
from lance_spec.messages.replication import Genesis

APPLY_VERSION: Final = 1
"""The newest version of the rules that this release knows."""
DIGEST_MARK: Final = "@"
"""What stands in a cluster's name before the digest of the files that it began with."""
_BODY: Final = "mark"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that influence what comes of records.

    Attributes:
        cluster_id: name of the cluster.
        created_ns: when it was made, in nanoseconds since the Unix epoch.
        segment_size: bytes after which a segment is closed.
        window_entries: batches in the duplicate window of a topic.
        window_age_secs: seconds for which they are remembered.
        max_topics: most topics.
        max_consumers: most consumers that may commit to a topic.
    """

    cluster_id: str
    created_ns: int
    segment_size: int = 1024 * 1024 * 1024
    window_entries: int = 1_000_000
    window_age_secs: int = 7 * 24 * 3600
    max_topics: int = 10_000
    max_consumers: int = 10_000

    @property
    def first_state(self) -> str:
        """The digest of the files that the cluster began with; ``""`` where it began empty."""
        return self.cluster_id.partition(DIGEST_MARK)[2]

    @property
    def window(self) -> WindowSize:
        """How far back duplicates are recognised."""
        return WindowSize(self.window_entries, self.window_age_secs)

    @classmethod
    def of(cls, genesis: Genesis) -> Self:
        """Return the settings that a Genesis holds."""
        return cls(**{each.name: getattr(genesis, each.name) for each in dataclasses.fields(cls)})

    def to_genesis(self) -> Genesis:
        """Return the Genesis of a new cluster with these settings."""
        return Genesis(apply_version=APPLY_VERSION, **self.to_body())

    def to_body(self) -> dict[str, Any]:
        """Return what `from_body` takes."""
        return dataclasses.asdict(self)

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        """Return the settings that a mark holds.

        Raises:
            DecodeError: one is missing or has another type.
        """
        names = [each.name for each in dataclasses.fields(cls) if each.name != "cluster_id"]
        numbers = {name: take_int(body, name, _BODY) for name in names}
        return cls(take_str(body, "cluster_id", _BODY), **numbers)
