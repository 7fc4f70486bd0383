"""Which shards the nodes of the simulation host, and how that changes.

At most one node hosts fewer than all shards, so that two others can always have what it leaves.
"""

from typing import TYPE_CHECKING

from tests.simulation.cluster.hosts import Host

from lance_server.cluster.refusals import maybe_applied
from lance_server.runtime.completion import Completion

if TYPE_CHECKING:
    from tests.simulation.cluster.world import World


def rehost(world: "World") -> None:
    """Stop a node; it comes back with one shard fewer, or with all of them."""
    if len(world.shards) == 1 or any(host.is_behind() for host in world.hosts):
        return
    partial = [host for host in world.hosts if len(host.hosted) < len(world.shards)]
    host = partial[0] if partial else world.random.choice(world.hosts)
    if host.alive:
        host.crash()
    if partial:
        host.hosted = frozenset(world.shards)
        return
    left = world.random.choice(world.shards[1:])
    host.hosted = frozenset(world.shards) - {left}
    host.ever_left.add(left)


def forward(world: "World", host: Host, topic_id: int) -> Host | None:
    """Return the node to which a node forwards a request for a topic, if that can take it."""
    address = host.manager.host_of(topic_id)
    if address is None:
        return None
    found = next(each for each in world.hosts if str(address) == each.address)
    return found if found.alive and found.manager.find(topic_id) is not None else None


def relay(world: "World", attempt: Completion[None]) -> Completion[None]:
    """Return what a client learns of a batch that was forwarded: the answer may be cut off."""
    told: Completion[None] = Completion()
    if world.random.random() < 0.1 and not world.is_calm:
        told.fail(maybe_applied("the node went away"))
        return told

    def note() -> None:
        if attempt.error is not None:
            told.fail(attempt.error)
        else:
            told.settle(None)

    attempt.wake(note)
    return told
