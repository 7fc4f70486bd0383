"""Second nodes that are wrong about who leads, and what followers may do."""

import json

from lance_conformance.server.golden.codec import Reply, Wire
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Refused, Replies, Topic
from lance_conformance.server.mutants.registry import golden, mutant

CONTROL = 0x40
CREATE, DELETE = 0x01, 0x02


@mutant(Specified.status_body)
def has_the_id_of_its_leader(server: Specified) -> Body:
    """All nodes have the id 0."""
    return {**golden(server).status_body(), "node_id": 0}


@mutant(Specified.status_body)
def leads_beside_the_leader(server: Specified) -> Body:
    """Every node says that it leads."""
    return {**golden(server).status_body(), "is_leader": True}


@mutant(Specified.status_body)
def follows_itself(server: Specified) -> Body:
    """A follower names itself as the leader."""
    body = golden(server).status_body()
    return {**body, "leader_id": body["node_id"]}


@mutant(Specified.elsewhere)
def acks_what_it_does_not_hand_on(server: Specified, frame: Wire, /) -> Replies:
    """A follower acknowledges batches and drops them."""
    return golden(server).elsewhere(frame) if frame.flags & CONTROL else server.acks(frame)


@mutant(Specified.elsewhere)
def creates_topics_for_itself(server: Specified, frame: Wire, /) -> Replies:
    """A follower answers CreateTopic with a topic that its leader does not know."""
    if not frame.flags & CONTROL or frame.batch_id != CREATE:
        return golden(server).elsewhere(frame)
    body = {"id": 4_000_000_000, "name": frame.payload.decode(), "created_at": 1}
    return _answered(body)


@mutant(Specified.elsewhere)
def deletes_for_itself(server: Specified, frame: Wire, /) -> Replies:
    """A follower answers DeleteTopic, and its leader keeps the topic."""
    if not frame.flags & CONTROL or frame.batch_id != DELETE:
        return golden(server).elsewhere(frame)
    return _answered(server.deleted_body(_topic_of(frame)))


def _topic_of(frame: Wire) -> int:
    return int.from_bytes(frame.payload[:4], "little")


def _answered(body: Body) -> Replies:
    return [Reply(CONTROL, 0x80, json.dumps(body).encode())]


@mutant(Specified.elsewhere, only="specified")
def stores_what_its_leader_has(server: Specified, frame: Wire, /) -> Replies:
    """A follower hands a batch on without a look at its id."""
    topic = server.memory.topics.get(frame.topic)
    if frame.flags & CONTROL or topic is None:
        return golden(server).elsewhere(frame)
    topic.log += frame.payload
    return server.acks(frame)


@mutant(Specified.committed, only="specified")
def keeps_commits_to_its_leader(server: Specified, topic_id: int, consumer: int, /) -> int:
    """A follower knows no commit that its leader has."""
    return 0 if server.leader else golden(server).committed(topic_id, consumer)


@mutant(Specified.elsewhere)
def calls_a_missing_leader_internal(_server: Specified, _frame: Wire, /) -> Replies:
    """A follower refuses writes as internal errors."""
    raise Refused(0x60, "cannot do that here")


@mutant(Specified.redirect, only="specified")
def redirects_to_nowhere(_server: Specified, _code: int, /) -> Body:
    """NotLeader does not say who leads."""
    return {}


@mutant(Specified.redirect, only="specified")
def redirects_without_a_port(_server: Specified, _code: int, /) -> Body:
    """NotLeader names a host and no port."""
    return {"leader_addr": "127.0.0.1"}


@mutant(Specified.elsewhere, only="deployed")
def says_not_leader_and_no_more(_server: Specified, _frame: Wire, /) -> Replies:
    """NotLeader does not say who leads."""
    raise Refused(0x20, "NOT_LEADER")


@mutant(Specified.readable)
def serves_other_bytes_as_a_follower(server: Specified, topic: Topic, /) -> bytes:
    """A follower has the batches of a topic in another order."""
    return topic.log[::-1] if server.leader else topic.log


@mutant(Specified.listed)
def knows_topics_under_other_names(server: Specified) -> list[Body]:
    """A follower has other names for the topics of its leader."""
    topics = golden(server).listed()
    return (
        [{**topic, "name": f"replica-{topic['id']}"} for topic in topics]
        if server.leader
        else topics
    )
