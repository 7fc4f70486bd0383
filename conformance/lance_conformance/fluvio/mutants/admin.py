"""Servers that are wrong about topics that are listed, created and deleted."""

from lance_conformance.fluvio.golden.codec import Entry
from lance_conformance.fluvio.golden.objects import Creation, code
from lance_conformance.fluvio.golden.server import Rules
from lance_conformance.fluvio.golden.state import Partition, Topic
from lance_conformance.fluvio.mutants.registry import golden, mutant


@mutant(Rules.listed)
def lists_everything(server: Rules, kind: str, _names: list[str], version: int, /) -> list[bytes]:
    """Names that are asked for do not matter."""
    return golden(server).listed(kind, [], version)


@mutant(Rules.listed)
def lists_the_first_name_only(
    server: Rules, kind: str, names: list[str], version: int, /
) -> list[bytes]:
    """Of several names that are asked for only the first matters."""
    return golden(server).listed(kind, names[:1], version)


@mutant(Rules.is_wanted)
def lists_only_its_own(_server: Rules, kind: str, item: bytes, _system: bool, /) -> bool:
    """A list has the cluster's own topics, whatever is asked for."""
    return kind == "SPU" or b"consumer-offset" in item[:20]


@mutant(Rules.is_wanted)
def lists_its_own_among_others(_server: Rules, _kind: str, _item: bytes, _system: bool, /) -> bool:
    """A list has the users' topics and the cluster's own."""
    return True


@mutant(Rules.listed)
def lists_no_partitions(server: Rules, kind: str, names: list[str], version: int, /) -> list[bytes]:
    """A list of partitions is empty."""
    return [] if kind == "Partition" else golden(server).listed(kind, names, version)


@mutant(Rules.listed)
def lists_no_spus(server: Rules, kind: str, names: list[str], version: int, /) -> list[bytes]:
    """A list of SPUs is empty."""
    return [] if kind == "SPU" else golden(server).listed(kind, names, version)


@mutant(Rules.listed)
def lists_no_topics(server: Rules, kind: str, names: list[str], version: int, /) -> list[bytes]:
    """A list of topics is empty."""
    return [] if kind == "Topic" else golden(server).listed(kind, names, version)


@mutant(Rules.list_objects)
def lists_spus_for_topics(server: Rules, body: bytes, version: int, /) -> bytes:
    """A list of topics claims to be one of SPUs."""
    found = golden(server).list_objects(body, version)
    return found.replace(b"\0\5Topic", b"\0\3SPU", 1)


@mutant(Rules.status)
def forgets_the_name(server: Rules, _name: str, outcome: bytes, message: str | None, /) -> bytes:
    """Create and Delete are answered without the name of the topic."""
    return golden(server).status("", outcome, message)


@mutant(Rules.status)
def says_no_word(server: Rules, name: str, outcome: bytes, _message: str | None, /) -> bytes:
    """Who is refused is not told why."""
    return golden(server).status(name, outcome, None)


@mutant(Rules.status)
def leaves_out_the_message(
    server: Rules, name: str, outcome: bytes, _message: str | None, /
) -> bytes:
    """The answer to Create and Delete ends after its error."""
    return golden(server).status(name, outcome, None)[:-1]


@mutant(Rules.status)
def sends_an_unknown_error(
    server: Rules, name: str, outcome: bytes, message: str | None, /
) -> bytes:
    """Refusals carry a code that published clients do not know."""
    return golden(server).status(name, code(9999) if outcome != code(0) else outcome, message)


@mutant(Rules.name_ok)
def takes_any_name(_server: Rules, _name: str, /) -> bool:
    """A topic may be called anything."""
    return True


@mutant(Rules.name_ok)
def takes_paths_for_names(_server: Rules, name: str, /) -> bool:
    """A topic may be called after a part of a path."""
    return bool(name)


@mutant(Rules.count_ok)
def creates_topics_without_partitions(_server: Rules, _partitions: int, /) -> bool:
    """A topic needs no partition."""
    return True


@mutant(Rules.exists)
def creates_topics_again(_server: Rules, _name: str, /) -> bool:
    """A topic that is there is created again, and empty."""
    return False


@mutant(Rules.exists_code)
def refuses_twins_without_a_reason(_server: Rules, /) -> bytes:
    """A creation is refused without saying that the topic is there."""
    return code(2000)


@mutant(Rules.missing_topic_code)
def refuses_to_delete_without_a_reason(_server: Rules, /) -> bytes:
    """A deletion is refused without saying that there is no such topic."""
    return code(2000)


@mutant(Rules.missing_topic_code)
def deletes_what_is_not_there(_server: Rules, /) -> bytes:
    """The deletion of a topic that is not there succeeds."""
    return code(0)


@mutant(Rules.made)
def begins_topics_with_a_record(server: Rules, creation: Creation, /) -> Topic:
    """A new topic holds a record."""
    topic = golden(server).made(creation)
    for part in topic.partitions:
        part.batches.append((0, [Entry(None, b"welcome", 0)]))
    return topic


@mutant(Rules.made)
def makes_one_partition(_server: Rules, creation: Creation, /) -> Topic:
    """Every topic has one partition, whatever was asked for."""
    return Topic(creation.name, [Partition()])


@mutant(Rules.is_dry)
def takes_dry_runs_seriously(_server: Rules, _creation: Creation, /) -> bool:
    """A dry run creates the topic."""
    return False


@mutant(Rules.is_dry)
def takes_everything_for_a_dry_run(_server: Rules, _creation: Creation, /) -> bool:
    """No topic is ever created."""
    return True


@mutant(Rules.create)
def answers_without_creating(server: Rules, creation: Creation, /) -> None:
    """Topics with several partitions are acknowledged, and not created."""
    if creation.partitions == 1:
        golden(server).create(creation)


@mutant(Rules.deletable)
def lets_nothing_go(_server: Rules, _name: str, /) -> bool:
    """No topic can be deleted."""
    return False


@mutant(Rules.removed)
def only_says_that_it_deletes(_server: Rules, _name: str, /) -> None:
    """A deletion is acknowledged, and not done."""


@mutant(Rules.removed)
def deletes_everything(server: Rules, name: str, /) -> None:
    """With a topic all others that begin alike go, too."""
    for other in [topic for topic in server.memory.topics if topic[:17] == name[:17]]:
        del server.memory.topics[other]


@mutant(Rules.delete)
def empties_instead_of_deleting(server: Rules, name: str, /) -> None:
    """A topic that is deleted stays, without its records."""
    if name not in server.memory.topics:
        golden(server).delete(name)
    for part in server.memory.topics[name].partitions:
        part.batches.clear()
