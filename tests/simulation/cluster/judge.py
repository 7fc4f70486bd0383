"""What must hold once all faults have ended, by the files of every node."""

from typing import TYPE_CHECKING

from tests.simulation.cluster.hosts import Host, WrongError, find_batches, find_dropped
from tests.simulation.cluster.logs import DATA_DIR, contents

from lance_server.cluster.applying.mark import FOLDER

if TYPE_CHECKING:
    from tests.simulation.cluster.world import World


def judge(world: "World") -> None:
    """Compare what clients were told with what every node has.

    Raises:
        WrongError: an invariant does not hold.
    """
    _judge_files(world)
    for host in world.hosts:
        _judge_batches(world, host)
        _judge_elsewhere(world, host)
        _judge_names(host)
        _judge_topics(world, host)
    first = world.hosts[0]
    _judge_commits(world, first)
    _judge_times(first)


def _judge_files(world: "World") -> None:
    """Compare the files of each shard on the nodes that host it."""
    catalog = world.hosts[0].manager.node.replica.shards[0].state.catalog.topics
    for shard in world.shards:
        topics = {str(topic_id) for topic_id, each in catalog.items() if each.shard == shard}
        first, *others = (host for host in world.hosts if shard in host.hosted)
        files = _files_of(first, shard, topics)
        for host in others:
            theirs = _files_of(host, shard, topics)
            if files != theirs:
                names = sorted(
                    name for name in files.keys() | theirs if files.get(name) != theirs.get(name)
                )
                raise WrongError(f"nodes {first.number} and {host.number} differ in {names}")
    for host in world.hosts:
        left = host.manager.node.replica.left
        known = {str(key) for key, each in catalog.items() if each.shard in host.hosted}
        known |= {str(key) for mark in left.values() for key in mark.topics}
        paths = host.disk.files()
        found = {_topic_of(str(path.relative_to(DATA_DIR))) for path in paths}
        unknown = sorted(each for each in found if each is not None and each not in known)
        if unknown:
            raise WrongError(f"node {host.number} has the topics {unknown}")


def _files_of(host: Host, shard: int, topics: set[str]) -> dict[str, bytes]:
    marks = f"{FOLDER}/shard-{shard}."
    return {
        name: content
        for name, content in contents(host.disk, host.hosted).items()
        if _topic_of(name) in topics or name.startswith(marks)
    }


def _topic_of(name: str) -> str | None:
    """Return the topic that a file belongs to."""
    folder, *rest = name.split("/")
    return rest[0] if folder == "segments" else None


def _judge_batches(world: "World", host: Host) -> None:
    dropped = find_dropped(host)
    for client in world.clients:
        if host.manager.remote_name(client.topic_id) is not None:
            continue
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
        if topic_id in world.maybe_deleted or host.manager.remote_name(topic_id) is not None:
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
    there |= {topic.id for topic in host.manager.remote_topics()}
    for name, topic_id in world.created.items():
        if topic_id not in there and topic_id not in world.maybe_deleted:
            raise WrongError(f"topic {name} was created and is gone")
    shards = host.manager.node.replica.shards
    places = {key: number for number, shard in shards.items() for key in shard.topics}
    topics = shards[0].state.catalog.topics.items()
    catalog = {key: each.shard for key, each in topics if each.shard in shards}
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
