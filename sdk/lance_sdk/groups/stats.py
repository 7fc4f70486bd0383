"""Counters of a member of a group, as one consistent snapshot."""

from dataclasses import dataclass

from lance_sdk.stats import ClientStats

__all__ = ["GroupStats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStats:
    """What a member of a group counts.

    Attributes:
        member: its name in the group.
        generation: of the group, as far as it knows.
        topics: that it reads now.
        records: received of these topics.
        fetched_bytes: bytes of them.
        buffered_bytes: bytes waiting for the application.
        fetches: Fetch requests sent for them.
        pushes: answers that the server pushed.
        commits: recorded, counted by topic.
        failed_commits: not recorded.
        rebalances: changes of its topics.
        server: of the connections to servers: ``connects`` and bytes of all, the other fields of
            the one to a server of the URL.
        coordinator: of the connection to the coordinator.
    """

    member: str
    generation: int
    topics: int
    records: int
    fetched_bytes: int
    buffered_bytes: int
    fetches: int
    pushes: int
    commits: int
    failed_commits: int
    rebalances: int
    server: ClientStats
    coordinator: ClientStats
