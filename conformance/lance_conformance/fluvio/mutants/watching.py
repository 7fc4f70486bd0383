"""Servers that are wrong about objects and watches."""

from lance_conformance.fluvio.golden.server import Rules
from lance_conformance.fluvio.golden.state import Connection, Topic, Watch
from lance_conformance.fluvio.mutants.registry import golden, mutant

OFFSETS = "consumer-offset"


@mutant(Rules.spu_state)
def tells_the_spu_is_offline(_server: Rules, /) -> int:
    """The SPU is told to be offline."""
    return 1


@mutant(Rules.spu_state)
def invents_a_state_of_spus(_server: Rules, /) -> int:
    """The SPU is in a state that nobody knows."""
    return 9


@mutant(Rules.spu_port)
def tells_the_wrong_port(_server: Rules, /) -> int:
    """The SPU is told to be at a port where nobody listens."""
    return 1


@mutant(Rules.spu_host)
def tells_no_host(_server: Rules, /) -> str:
    """The SPU is told to be nowhere."""
    return ""


@mutant(Rules.spus)
def has_no_spu(_server: Rules, /) -> list[bytes]:
    """There is no SPU."""
    return []


@mutant(Rules.told_count)
def tells_one_partition_more(_server: Rules, topic: Topic, /) -> int:
    """A topic is told to have a partition more than it has."""
    return len(topic.partitions) + 1


@mutant(Rules.topic_state)
def never_provisions(_server: Rules, /) -> int:
    """Topics stay in their first state."""
    return 0


@mutant(Rules.replica_map)
def has_no_replica_map(_server: Rules, _topic: Topic, /) -> bytes:
    """The map of replicas is empty."""
    return b"\0\0"


@mutant(Rules.replica_map)
def counts_replicas_in_four_bytes(server: Rules, topic: Topic, /) -> bytes:
    """The map of replicas is counted like a list."""
    return b"\0\0" + golden(server).replica_map(topic)


@mutant(Rules.replica_map)
def maps_replicas_elsewhere(server: Rules, topic: Topic, /) -> bytes:
    """Partitions are told to be on an SPU that there is not."""
    return golden(server).replica_map(topic)[:-4] + (77).to_bytes(4, "big")


@mutant(Rules.topic_object)
def leaves_out_the_reason(server: Rules, topic: Topic, /) -> bytes:
    """Topics end before the reason of their state."""
    return golden(server).topic_object(topic)[:-2]


@mutant(Rules.kept_settings)
def knows_no_deduplication(server: Rules, name: str, /) -> bytes:
    """Topics and partitions are written without the field about deduplication."""
    found = golden(server).kept_settings(name)
    return found[:-2] + found[-1:]


@mutant(Rules.partition_name)
def names_partitions_with_dots(_server: Rules, topic: str, number: int, /) -> str:
    """A partition is called after its topic, a dot, and its number."""
    return f"{topic}.{number}"


@mutant(Rules.partition_name)
def counts_partitions_from_1(_server: Rules, topic: str, number: int, /) -> str:
    """The first partition is told to have the number 1."""
    return f"{topic}-{number + 1}"


@mutant(Rules.partition_state)
def tells_partitions_are_offline(_server: Rules, /) -> int:
    """Partitions are told to be offline."""
    return 0


@mutant(Rules.leader)
def lets_nobody_lead(_server: Rules, /) -> int:
    """Partitions are led by an SPU that there is not."""
    return -1


@mutant(Rules.told_base)
def tells_the_base_always(_server: Rules, _version: int, /) -> bytes:
    """The lowest offset is told at versions that have no place for it."""
    return bytes(8)


@mutant(Rules.told_base)
def tells_the_base_never(_server: Rules, _version: int, /) -> bytes:
    """The lowest offset is never told."""
    return b""


@mutant(Rules.partition_objects)
def tells_the_first_partition_only(server: Rules, topic: Topic, version: int, /) -> list[bytes]:
    """Of several partitions only the first is told."""
    return golden(server).partition_objects(topic, version)[:1]


@mutant(Rules.objects)
def knows_every_kind_of_object(
    server: Rules, kind: str, topics: list[Topic], version: int, /
) -> list[bytes]:
    """Whatever is asked for, there are such objects, and none of them now."""
    known = kind in ("SPU", "Topic", "Partition")
    return golden(server).objects(kind, topics, version) if known else []


@mutant(Rules.first_watched)
def begins_watches_empty(server: Rules, kind: str, version: int, /) -> list[bytes]:
    """The first piece about topics and partitions is empty."""
    return golden(server).first_watched(kind, version) if kind == "SPU" else []


@mutant(Rules.first_watched)
def hides_the_offsets_topic(server: Rules, kind: str, version: int, /) -> list[bytes]:
    """The topic of consumer offsets is not told."""
    shown = [topic for topic in server.memory.topics.values() if topic.name != OFFSETS]
    return server.objects(kind, shown, version)


@mutant(Rules.epoch)
def counts_epochs_down(server: Rules, /) -> int:
    """Epochs fall with every change."""
    return -server.memory.epoch


@mutant(Rules.change_of)
def takes_comers_for_goers(_server: Rules, *, gone: bool) -> int:
    """What came is told to be gone, and the other way round."""
    return int(not gone)


@mutant(Rules.change_of)
def never_says_gone(_server: Rules, *, gone: bool) -> int:
    """What is gone is told as if it were new."""
    del gone
    return 0


@mutant(Rules.pushed)
def pushes_no_changes(_server: Rules, _watch: Watch, /) -> bytes | None:
    """Watches tell nothing after their first piece."""
    return None


@mutant(Rules.pushed)
def pushes_topics_only(server: Rules, watch: Watch, /) -> bytes | None:
    """Only watches of topics tell of changes."""
    return golden(server).pushed(watch) if watch.kind == "Topic" else None


@mutant(Rules.pushed)
def pushes_what_comes_only(server: Rules, watch: Watch, /) -> bytes | None:
    """Watches do not tell of topics that are gone."""
    watch.known = {n: t for n, t in watch.known.items() if server.memory.topics.get(n) is t}
    return golden(server).pushed(watch)


@mutant(Rules.watched)
def pushes_everything_anew(
    server: Rules, kind: str, changes: list[tuple[int, bytes]], found: list[bytes], /
) -> bytes:
    """With every change a watch tells all objects, too."""
    everything = server.first_watched(kind, 19) if changes else found
    return golden(server).watched(kind, changes, everything)


@mutant(Rules.watched)
def names_no_kind(
    server: Rules, kind: str, changes: list[tuple[int, bytes]], found: list[bytes], /
) -> bytes:
    """Pieces about partitions say that they are about topics."""
    told = "Topic" if kind == "Partition" else kind
    return golden(server).watched(told, changes, found)


@mutant(Rules.watches)
def keeps_one_watch_of_a_kind(_server: Rules, connection: Connection, watch: Watch, /) -> None:
    """A watch ends an older one of the same kind on its connection."""
    connection.watches[:] = [w for w in connection.watches if w.kind != watch.kind]
    connection.watches.append(watch)


@mutant(Rules.watch_correlation)
def pushes_changes_under_id_0(_server: Rules, _watch: Watch, /) -> int:
    """What a watch tells after its first piece has the id 0."""
    return 0


@mutant(Rules.pushes_on)
def pushes_nothing_on_watches(_server: Rules, connection: Connection, /) -> bool:
    """Connections to the SC are never pushed to."""
    return connection.role != "sc"


@mutant(Rules.woken)
def wakes_nobody(_server: Rules, /) -> None:
    """Nobody is told of anything that happens."""
