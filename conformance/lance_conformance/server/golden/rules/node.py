"""The golden rules of a node: its status, its clock, and what one connection does to others."""

import struct

from lance_conformance.server.golden.codec import Reply, Wire
from lance_conformance.server.golden.rules.consumers import Consumers
from lance_conformance.server.golden.state import Body, Topic

TICK = 3_600 * 10**9
"""Nanoseconds between two batches, so far apart that a search finds what lies between."""


class Node(Consumers):
    """Rules about the server as a whole. Every public method is a hook."""

    def status_body(self) -> Body:
        """A cluster of one, which leads itself (AMB-43), and how far it recognises retries."""
        return {
            "node_id": 0,
            "is_leader": True,
            "leader_id": 0,
            "current_term": 0,
            "node_count": 1,
            "healthy_nodes": 1,
            "quorum_available": True,
            "peer_states": {},
            "mode": "standalone",
            "dedup_window": {"entries": 1_000_000, "max_age_secs": 604_800},
        }

    def status_command(self) -> int:
        """GetClusterStatus is answered by ClusterStatusResponse."""
        return 0x81

    def status_alias_ok(self) -> bool:
        """0x30 is an alias of 0x07."""
        return True

    def arrived(self, topic: Topic, start: int, /) -> None:
        """Each batch is dated by the server's clock."""
        self.memory.clock += TICK
        topic.arrivals.append((self.memory.clock, start))

    def timed_topic(self, topic_id: int, /) -> Topic:
        """The topic that OffsetForTime asks about."""
        return self.consumer_topic(topic_id)

    def offset_at(self, topic: Topic, time_ns: int, /) -> int:
        """Where the first batch begins that arrived at a time or later, else the end."""
        later = (start for arrival, start in topic.arrivals if arrival >= time_ns)
        return next(later, len(topic.log))

    def time_answer(self, offset: int, /) -> Reply:
        """An offset."""
        return Reply(0x40, 0x71, struct.pack("<Q", offset))

    def times_between(self, topic: Topic, start: int, end: int, /) -> list[tuple[int, int]]:
        """When each batch arrived that has bytes in a range, and where it begins."""
        ends = [begin for _, begin in topic.arrivals[1:]] + [len(topic.log)]
        pairs = zip(topic.arrivals, ends, strict=True) if topic.arrivals else ()
        return [arrival for arrival, after in pairs if arrival[1] < end and after > start]

    def end_of_times(self, topic: Topic, end: int, /) -> int:
        """Nothing after the end of the log has a time."""
        return min(end, len(topic.log))

    def most_times(self) -> int:
        """So many batches are told in one answer."""
        return 50

    def times_answer(self, next_offset: int, times: list[tuple[int, int]], /) -> Reply:
        """Where to go on, and the offset and the time of each batch."""
        pairs = b"".join(struct.pack("<QQ", start, time) for time, start in times)
        return Reply(0x40, 0x76, struct.pack("<QI", next_offset, len(pairs)) + pairs)

    def idle_limit(self, _unfinished: bool, /) -> float | None:
        """Seconds that a connection may be silent, in the middle of a frame or not: no limit."""
        return None

    def ends_late(self, _kind: str, /) -> float | None:
        """Seconds after which a frame of a kind, or a refusal, ends its connection: never."""
        return None

    def stays_after(self, _code: int, _command: int, /) -> bool:
        """A refusal does not end the connection."""
        return True

    def spreads(self, _fault: str, _header: Wire | None, /) -> bool:
        """What one connection does wrong does not concern the others."""
        return False

    def orphaned(self, _tail: bytes, /) -> None:
        """The beginning of a frame whose connection ended is dropped."""

    def restarted(self) -> None:
        """A restart loses nothing but connections."""
