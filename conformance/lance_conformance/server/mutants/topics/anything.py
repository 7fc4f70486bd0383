"""Servers that are wrong only after other things have happened."""

from typing import Literal

from lance_conformance.server.golden.codec import Reply, Wire
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Connection, Replies, Topic
from lance_conformance.server.mutants.registry import golden, mutant

WALKS = ("any/*",)
SMALL = 1 << 40


@mutant(Specified.counted, only="specified", asked=WALKS)
def counts_one_more_after_a_deletion(
    server: Specified, log: bytes, start: int, data: bytes, /
) -> int:
    """Once a topic was deleted, each Fetch announces a record too many."""
    return golden(server).counted(log, start, data) + bool(server.memory.deleted)


@mutant(Specified.seen_elsewhere, only="specified", asked=WALKS)
def knows_batches_of_other_topics(
    server: Specified, key: tuple[int, int], content: tuple[int, bytes], /
) -> bool:
    """A batch of another topic, also of a deleted one, is taken for a repetition."""
    return any(
        batch_id == key[1] >= SMALL and known == content
        for (_, batch_id), known in server.memory.batches.items()
    )


@mutant(Specified.details, only="specified", asked=WALKS)
def takes_the_ids_of_refused_batches(server: Specified, frame: Wire, /) -> Body:
    """The id of a refused batch is taken: the batch without its fault is another one."""
    server.memory.speaker.batches.setdefault((frame.topic, frame.batch_id), (0, b""))
    return golden(server).details(frame)


@mutant(Specified.subscribed_at, only="specified", asked=WALKS)
def resumes_at_the_commit_whatever_is_asked(
    server: Specified, topic: Topic, consumer: int, asked: int, /
) -> int:
    """A consumer that committed goes on there, also where it asks for another offset."""
    return server.memory.commits.get((topic.id, consumer)) or asked


@mutant(Specified.set_body, only="specified", asked=WALKS)
def swaps_limits_that_were_set_before(server: Specified, topic: Topic, /) -> Body:
    """The second time that limits of a topic are set, they change places."""
    server.memory.counts["limits", topic.id] += 1
    body = golden(server).set_body(topic)
    if server.memory.counts["limits", topic.id] == 1:
        return body
    return {**body, "max_bytes": body["max_age_secs"], "max_age_secs": body["max_bytes"]}


@mutant(Specified.seen, only="specified", asked=WALKS)
def mixes_up_producers(
    server: Specified, connection: Connection, frame: Wire, /
) -> Literal["new", "again", "other"]:
    """An id that another connection used for other content is refused here."""
    known = server.memory.batches.get((frame.topic, frame.batch_id))
    if known is not None and known != (frame.timestamp, frame.payload):
        return "other"
    return golden(server).seen(connection, frame)


@mutant(Specified.acks, only="specified", asked=WALKS)
def acknowledges_another_batch_after_a_deletion(server: Specified, frame: Wire, /) -> Replies:
    """Once a topic was deleted, every Ack is one of batch 1."""
    replies = golden(server).acks(frame)
    return [Reply(0x08, 1)] if server.memory.deleted and frame.batch_id != 1 else replies


@mutant(Specified.restarted, only="specified", asked=WALKS)
def loses_the_last_byte_of_logs(server: Specified) -> None:
    """After a restart the last byte of each topic is gone."""
    for topic in server.memory.topics.values():
        topic.log = topic.log[:-1]


@mutant(Specified.restarted, only="specified", asked=WALKS)
def loses_the_latest_commits(server: Specified) -> None:
    """After a restart each commit is 5 bytes before what was committed last."""
    for key, offset in server.memory.commits.items():
        server.memory.commits[key] = max(0, offset - 5)
