"""What must hold once all faults have ended, by the files of every node."""

from typing import TYPE_CHECKING

from tests.simulation.cluster.hosts import Host, WrongError, find_batches, find_dropped
from tests.simulation.cluster.logs import contents

if TYPE_CHECKING:
    from tests.simulation.cluster.world import World


def judge(world: "World") -> None:
    """Compare what clients were told with what every node has.

    Raises:
        WrongError: an invariant does not hold.
    """
    first, *others = world.hosts
    files = contents(first.disk)
    for host in others:
        theirs = contents(host.disk)
        if files != theirs:
            names = sorted(
                name for name in files.keys() | theirs if files.get(name) != theirs.get(name)
            )
            raise WrongError(f"nodes {first.number} and {host.number} differ in {names}")
    _judge_batches(world, first)
    _judge_elsewhere(world, first)
    for host in world.hosts:
        _judge_names(host)
    _judge_topics(world, first)
    _judge_commits(world, first)
    _judge_times(first)


def _judge_batches(world: "World", host: Host) -> None:
    dropped = find_dropped(host)
    for client in world.clients:
        found = find_batches(host, client.topic_id)
        start = host.manager.topic(client.topic_id).partition.start_offset
        places = []
        for sent in client.batches:
            copies = found.get(client.batch_id(sent.number), [])
            told = world.offsets.get((client.nonce, sent.number))
            if told is not None and told < start:
                continue
            if not copies and client.batch_id(sent.number) in dropped:
                continue  # retention took it before the world saw where it was
            if len(copies) != 1:
                raise WrongError(
                    f"batch {sent.number} of {client.nonce} is there {len(copies)} times"
                )
            offset, data = copies[0]
            if data != sent.data or (told is not None and told != offset):
                raise WrongError(f"batch {sent.number} of {client.nonce} moved to {offset}")
            places.append(offset)
        if not client.failed and places != sorted(places):
            raise WrongError(f"the order of {client.nonce} is lost")


def _judge_elsewhere(world: "World", host: Host) -> None:
    for batch_id, (topic_id, offset) in world.elsewhere.items():
        if topic_id in world.maybe_deleted:
            continue
        copies = find_batches(host, topic_id).get(batch_id, [])
        if [each[0] for each in copies] != [offset]:
            raise WrongError(f"batch {batch_id} of {topic_id} is at {copies}, was at {offset}")


def _judge_names(host: Host) -> None:
    named = {topic.file.identity.name: topic.id for topic in host.manager.topics() if topic.id}
    found = {name: host.manager.topic_named(name) for name in named}
    wrong = [name for name, topic in found.items() if topic is None or topic.id != named[name]]
    if wrong:
        raise WrongError(f"node {host.number} does not find topics by their names: {wrong}")


def _judge_topics(world: "World", host: Host) -> None:
    there = {topic.id for topic in host.manager.topics()}
    for name, topic_id in world.created.items():
        if topic_id not in there and topic_id not in world.maybe_deleted:
            raise WrongError(f"topic {name} was created and is gone")
    shards = host.manager.node.replica.shards
    places = {key: number for number, shard in shards.items() for key in shard.topics}
    catalog = {key: each.shard for key, each in shards[0].state.catalog.topics.items()}
    if places != catalog:
        raise WrongError(f"topics are in shards {places}, by the catalog in {catalog}")
    for topic_id in world.deleted & there:
        raise WrongError(f"topic {topic_id} was deleted and is there")


def _judge_commits(world: "World", host: Host) -> None:
    for client in world.clients:
        kept = host.manager.topic(0).consumers.committed(client.nonce)
        if client.committed >= 0 and (kept is None or kept < client.committed):
            raise WrongError(f"consumer {client.nonce} is at {kept}, was at {client.committed}")


def _judge_times(host: Host) -> None:
    last = 0
    for extent in host.manager.node.replica.shards[0].topics[0].extents:
        raw = host.disk.peek(extent.segment.sidecar_path)
        for place in range(64, len(raw), 64):
            time_ns = int.from_bytes(raw[place + 32 : place + 40], "little")
            if time_ns < last:
                raise WrongError(f"a time falls in {extent.segment.name}")
            last = time_ns
