"""Servers that are wrong about CommitOffset."""

import struct

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import (
    Refused,
    Topic,
)
from lance_conformance.server.mutants.predicates import register
from lance_conformance.server.mutants.registry import golden, mutant


def _pair(command: int, *numbers: int) -> Reply:
    return Reply(0x40, command, struct.pack(f"<{len(numbers)}Q", *numbers))


@mutant(Specified.commit_ack)
def swaps_committer_and_offset(_server: Specified, consumer: int, offset: int, /) -> Reply:
    """A CommitAck has the offset before the consumer."""
    return _pair(0x24, offset, consumer)


@mutant(Specified.commit_ack)
def acks_commits_without_an_offset(_server: Specified, consumer: int, _offset: int, /) -> Reply:
    """A CommitAck holds the consumer's id and nothing else."""
    return _pair(0x24, consumer)


@mutant(Specified.commit_ack)
def acks_commits_with_a_plain_ack(_server: Specified, consumer: int, _offset: int, /) -> Reply:
    """CommitOffset is answered with an Ack frame."""
    return Reply(0x08, consumer)


@mutant(Specified.commit_ack)
def acks_commits_at_0(_server: Specified, consumer: int, _offset: int, /) -> Reply:
    """A CommitAck always says 0."""
    return _pair(0x24, consumer, 0)


@mutant(Specified.commit_ack, only="deployed")
def rounds_committed_offsets(_server: Specified, consumer: int, offset: int, /) -> Reply:
    """Offsets pass through floating point."""
    return _pair(0x24, consumer, int(float(offset)) if offset > 2**53 else offset)


@mutant(Specified.commit_ack)
def names_the_topic_in_commit_acks(server: Specified, consumer: int, offset: int, /) -> Reply:
    """The header of a CommitAck has a topic."""
    return golden(server).commit_ack(consumer, offset)._replace(topic=1)


@mutant(Specified.commit_kept)
def forgets_commits(_server: Specified, _topic: int, _consumer: int, _offset: int, /) -> None:
    """A commit is acknowledged and not kept."""


@mutant(Specified.commit_kept)
def keeps_the_first_commit(server: Specified, topic_id: int, consumer: int, offset: int, /) -> None:
    """Later commits do not change the first one."""
    server.memory.commits.setdefault((topic_id, consumer), offset)


@mutant(Specified.commit_kept)
def keeps_the_highest_commit(
    server: Specified, topic_id: int, consumer: int, offset: int, /
) -> None:
    """A commit that goes back is acknowledged and not kept."""
    before = server.memory.commits.get((topic_id, consumer), 0)
    server.memory.commits[topic_id, consumer] = max(before, offset)


@mutant(Specified.commit_kept)
def takes_a_commit_of_0_for_none(
    server: Specified, topic_id: int, consumer: int, offset: int, /
) -> None:
    """Committing 0 changes nothing."""
    if offset:
        golden(server).commit_kept(topic_id, consumer, offset)


@mutant(Specified.commit_kept)
def refuses_to_commit_0(server: Specified, topic_id: int, consumer: int, offset: int, /) -> None:
    """Committing 0 is refused."""
    if not offset:
        raise Refused(0x50, "0 is not an offset")
    golden(server).commit_kept(topic_id, consumer, offset)


@mutant(Specified.commit_kept)
def shares_commits_between_consumers(
    server: Specified, topic_id: int, consumer: int, offset: int, /
) -> None:
    """A commit is one of all consumers of the topic that committed."""
    server.memory.commits[topic_id, consumer] = offset
    for topic, other in list(server.memory.commits):
        if topic == topic_id:
            server.memory.commits[topic, other] = offset


@mutant(Specified.commit_kept)
def shares_commits_between_topics(
    server: Specified, topic_id: int, consumer: int, offset: int, /
) -> None:
    """A commit is one in every topic in which the consumer committed."""
    server.memory.commits[topic_id, consumer] = offset
    for topic, other in list(server.memory.commits):
        if other == consumer:
            server.memory.commits[topic, other] = offset


@mutant(Specified.commit_kept)
def trims_behind_commits(server: Specified, topic_id: int, consumer: int, offset: int, /) -> None:
    """What lies before a commit is thrown away."""
    golden(server).commit_kept(topic_id, consumer, offset)
    if topic_id in server.memory.topics:
        topic = server.memory.topics[topic_id]
        topic.log = bytes(min(offset, len(topic.log))) + topic.log[offset:]


@mutant(Specified.committed)
def compares_63_bits_of_consumers(server: Specified, topic_id: int, consumer: int, /) -> int:
    """Consumers whose ids differ in the highest bit are one."""
    same = (
        offset
        for (topic, other), offset in server.memory.commits.items()
        if topic == topic_id and other % 2**63 == consumer % 2**63
    )
    return next(same, 0)


@mutant(Specified.committed)
def keeps_commits_by_name(server: Specified, topic_id: int, consumer: int, /) -> int:
    """A commit counts for every topic whose consumer never committed there."""
    own = server.memory.commits.get((topic_id, consumer))
    gone = (
        offset
        for (topic, other), offset in server.memory.commits.items()
        if other == consumer and topic in server.memory.deleted
    )
    return next(gone, 0) if own is None else own


@mutant(Specified.topic_to_commit, only="specified")
def commits_for_topics_that_are_not_there(_server: Specified, topic_id: int, /) -> Topic:
    """CommitOffset succeeds for topics that never existed."""
    return Topic(topic_id, "")


@mutant(Specified.topic_to_commit, only="specified")
def commits_for_deleted_topics(server: Specified, topic_id: int, /) -> Topic:
    """CommitOffset succeeds for topics that were deleted."""
    if topic_id in server.memory.deleted:
        return Topic(topic_id, "")
    return golden(server).topic_to_commit(topic_id)


@mutant(Specified.topic_to_commit, only="specified")
def refuses_commits_of_subscribers(server: Specified, topic_id: int, /) -> Topic:
    """A consumer cannot commit on the connection on which it is subscribed."""
    if server.memory.speaker.subscriptions:
        raise Refused(0x04, "unsubscribe before you commit")
    return golden(server).topic_to_commit(topic_id)


@mutant(Specified.topic_to_commit, only="deployed")
def fails_at_commits_for_unknown_topics(server: Specified, topic_id: int, /) -> Topic:
    """A commit for a topic that is not there is an internal error."""
    if topic_id not in server.memory.topics:
        raise Refused(0x60, "oops")
    return golden(server).topic_to_commit(topic_id)


@mutant(Specified.unsubscribe_ack)
def undoes_commits_at_unsubscribe(server: Specified, consumer: int, /) -> Reply:
    """With a subscription the consumer's commits go, too."""
    for topic, other in list(server.memory.commits):
        if other == consumer:
            del server.memory.commits[topic, other]
    return golden(server).unsubscribe_ack(consumer)


def _measures(bits: int) -> None:
    def offset(server: Specified, topic: Topic, asked: int, /) -> int:
        golden(server).offset_to_commit(topic, asked & ((1 << bits) - 1))
        return asked

    register(Specified.offset_to_commit, f"compares-{bits}-bits-of-commits-with-the-end",
             f"Of an offset to commit {bits} bits are held against the end.",
             offset, "specified", ("com/*",))  # fmt: skip


for _bits in (16, 31, 32, 53, 63):
    _measures(_bits)


@mutant(Specified.offset_to_commit, only="specified", asked=("com/*",))
def commits_up_to_five_bytes_beyond(_server: Specified, topic: Topic, asked: int, /) -> int:
    """An offset a little beyond the end is taken."""
    if asked > len(topic.log) + 5:
        raise Refused(0x51, "beyond the end", {"end_offset": len(topic.log)})
    return asked


@mutant(Specified.offset_to_commit, only="specified", asked=("com/*",))
def refuses_commits_without_the_end(server: Specified, topic: Topic, asked: int, /) -> int:
    """The error for an offset beyond the end does not say where the end is."""
    try:
        return golden(server).offset_to_commit(topic, asked)
    except Refused as no:
        raise Refused(no.refusal.code, no.refusal.words) from None


@mutant(Specified.offset_to_commit, only="specified", asked=("com/*",))
def keeps_refused_commits(server: Specified, topic: Topic, asked: int, /) -> int:
    """A commit beyond the end is refused, and counts as one at the end."""
    if asked > len(topic.log):
        for committed, consumer in list(server.memory.commits):
            if committed == topic.id:
                server.memory.commits[topic.id, consumer] = len(topic.log)
    return golden(server).offset_to_commit(topic, asked)
