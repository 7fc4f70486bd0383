"""A node without a network: records go in, results and files come out."""

from collections.abc import Sequence
from typing import Any

from tests.simulation.cluster.logs import DATA_DIR, NOW, SETTINGS, a_batch

from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.applying.results import Result
from lance_server.cluster.applying.settings import Settings
from lance_server.cluster.applying.topic import ReplicatedTopic
from lance_server.cluster.records import encode
from lance_server.cluster.replicated_log import Entry
from lance_server.testing import MemoryStorage


class Node:
    """One node, whose log is written by the test.

    Attributes:
        disk: its disk.
        entries: the log.
        replica: its data.
        now_ns: what the log's clock shows.
    """

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.disk = MemoryStorage()
        self.entries: list[Entry] = []
        self.now_ns = NOW
        self.replica = self._open()
        self.apply(settings.to_genesis())

    def _open(self, identity: str = "log-1", earliest: int = 0) -> Replica:
        return Replica.open(self.disk, DATA_DIR, identity, 1, lambda _: earliest)

    def apply(self, body: Any) -> Result:
        """Append a record, apply it, and return what came of it."""
        record = encode(body, 7, len(self.entries))
        self.entries.append(Entry(len(self.entries), 0, self.now_ns, record))
        (applied,) = self.replica.apply(0, self.entries[-1:])
        return applied.result

    def append(
        self, number: int, values: Sequence[bytes] = (b"value",), topic_id: int = 0
    ) -> Result:
        """Append a batch with a number of its producer's."""
        return self.apply(a_batch(topic_id, number, self.now_ns, values))

    def restart(self, identity: str = "log-1", earliest: int = 0) -> None:
        """Open the directory again and apply what follows its mark."""
        self.replica.release()
        self.replica = self._open(identity, earliest)
        position = self.replica.shards[0].state.position
        self.replica.apply(0, self.entries[position:])

    def topic(self, topic_id: int = 0) -> ReplicatedTopic:
        """Return a topic."""
        return self.replica.shards[0].topics[topic_id]

    def names(self, topic_id: int = 0) -> list[str]:
        """Return the files of a topic."""
        return self.disk.list_dir(DATA_DIR / "segments" / str(topic_id))
