"""Servers that lose something when they are restarted."""

from lance_conformance.server.golden.codec import walk
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Topic
from lance_conformance.server.mutants.predicates import register
from lance_conformance.server.mutants.registry import mutant


@mutant(Specified.restarted)
def loses_the_last_batches(server: Specified) -> None:
    """The last batch of each topic was acknowledged and not written."""
    for topic in server.memory.topics.values():
        topic.log = topic.log[: topic.arrivals[-1][1]] if topic.arrivals else b""


@mutant(Specified.restarted)
def comes_back_empty(server: Specified) -> None:
    """Topics are not written at all."""
    server.memory.topics.clear()


@mutant(Specified.restarted, asked=("log/restart-*",))
def brings_old_limits_back(server: Specified) -> None:
    """Limits that were set to 0 are the first ones again, and remove what is there."""
    for topic in server.memory.topics.values():
        if topic.limits == (0, 0):
            topic.log = b""


@mutant(Specified.restarted)
def dates_topics_by_their_files(server: Specified) -> None:
    """The creation time of a topic is when it was last opened."""
    for topic in server.memory.topics.values():
        topic.created_at += 1


@mutant(Specified.restarted)
def shifts_offsets(server: Specified) -> None:
    """The first record of each topic is gone, and all offsets shift."""
    for topic in server.memory.topics.values():
        topic.log = topic.log[25:]


@mutant(Specified.restarted)
def begins_behind_half_a_record(server: Specified) -> None:
    """What was left of a page is kept, and stands in front of all new records."""
    for topic in server.memory.topics.values():
        topic.log += bytes(7)


@mutant(Specified.restarted)
def digs_deleted_topics_up(server: Specified) -> None:
    """Deleted topics come back under their ids."""
    for topic_id in server.memory.deleted:
        server.memory.topics[topic_id] = Topic(topic_id, f"was-{topic_id}")


@mutant(Specified.restarted, only="specified")
def keeps_commits_in_memory(server: Specified) -> None:
    """Commits are not written."""
    server.memory.commits.clear()


@mutant(Specified.restarted, only="specified")
def forgets_the_last_id(server: Specified) -> None:
    """The last id that was given away is not written."""
    server.memory.last_id -= 1


@mutant(Specified.restarted, only="specified")
def dates_all_batches_anew(server: Specified) -> None:
    """All batches count as if they had come at the moment of the restart."""
    for topic in server.memory.topics.values():
        topic.arrivals = [(server.memory.clock, start) for _, start in topic.arrivals]


@mutant(Specified.restarted, only="specified")
def counts_epochs_in_memory(server: Specified) -> None:
    """How often a name was created is not written."""
    server.memory.epochs.clear()


@mutant(Specified.restarted, only="specified")
def keeps_batch_ids_in_memory(server: Specified) -> None:
    """Batches that came before are not known."""
    server.memory.batches.clear()


@mutant(Specified.restarted, asked=("log/restart-keeps-*-batches",))
def reads_1024_batches_at_a_start(server: Specified) -> None:
    """Of a topic the first 1,024 batches are found again."""
    for topic in server.memory.topics.values():
        ends = [start for _, start in topic.arrivals[1024:1025]]
        topic.log = topic.log[: ends[0]] if ends else topic.log


def _cuts(record_type: int) -> None:
    def restarted(server: Specified) -> None:
        for topic in server.memory.topics.values():
            ends = walk(topic.log)[0]
            found = (at for at in ends[:-1] if topic.log[at] == record_type)
            topic.log = topic.log[: next(found, len(topic.log))]

    register(Specified.restarted, f"cuts-logs-at-type-{record_type:02x}",
             f"Recovery cuts a log at the first record of type {record_type:#04x}.",
             restarted, None, ("log/*",))  # fmt: skip


for _type in (0x00, 0x10, 0x80, 0xFF):
    _cuts(_type)
