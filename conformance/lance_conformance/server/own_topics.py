"""The topics that one case has created, and their removal.

The kit may run against a server with other people's data, so it deletes a topic only after the
target itself has said, under that id, that the name is one of this run. A partitioned topic is
deleted by its name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lance_conformance.engine.expectations import NoAnswer
from lance_conformance.server.peer import Peer
from lance_conformance.wire.control import delete_topic, get_topic, read_json
from lance_conformance.wire.frame import Command, Frame
from lance_conformance.wire.partitions import delete_partitioned

AT_ONCE = 256
"""Topics that are asked about, and deleted, in one write."""


class OwnTopics:
    """Ids of topics whose names begin as those of this run do.

    Args:
        beginning: How the name of every topic of this run begins.
    """

    def __init__(self, beginning: str) -> None:
        self._beginning = beginning
        self._ids: set[int] = set()
        self._wholes: set[str] = set()

    def __repr__(self) -> str:
        return f"<OwnTopics {self._beginning}* {sorted(self._ids)} {sorted(self._wholes)}>"

    def __bool__(self) -> bool:
        return bool(self._ids or self._wholes)

    def adopt(self, frame: Frame) -> None:
        """Remember the topic that a TopicResponse speaks of, if it is one of this run.

        This finds those, too, that the target should have refused to create.
        """
        body = self._own(frame)
        topic_id = _id_in(body)
        if topic_id is not None:
            self._ids.add(topic_id)
        if "topics" in body:
            self._wholes.add(body["name"])

    def _own(self, frame: Frame) -> Mapping[str, Any]:
        """What a TopicResponse says of a topic, or a partitioned one, of this run."""
        if frame.batch_id != Command.TOPIC_RESPONSE:
            return {}
        body = read_json(frame.payload) or {}
        name = body.get("name")
        return body if isinstance(name, str) and name.startswith(self._beginning) else {}

    async def confirmed(self, peer: Peer, topic_id: int) -> bool:
        """Whether the target says that this id is a topic of this run.

        Raises:
            Failure: It says nothing.
        """
        peer.send(get_topic(topic_id))
        event = await peer.receive_any()
        if isinstance(event, NoAnswer):
            raise peer.failure("timeout", str(event))
        return isinstance(event, Frame) and _id_in(self._own(event)) == topic_id

    async def delete(self, peer: Peer) -> None:
        """Delete them all, as far as the target confirms that they are ours."""
        for name in sorted(self._wholes):
            peer.send(delete_partitioned(name))
            await peer.receive_any()
        ids = sorted(self._ids)
        for start in range(0, len(ids), AT_ONCE):
            some = ids[start : start + AT_ONCE]
            told = await _answers(peer, [get_topic(topic_id) for topic_id in some])
            ours = {_id_in(self._own(frame)) for frame in told}
            await _answers(peer, [delete_topic(each) for each in some if each in ours])


async def _answers(peer: Peer, requests: Sequence[Frame]) -> list[Frame]:
    """Send requests in one write; what is answered, as far as answers come."""
    peer.send(*requests)
    answers: list[Frame] = []
    while len(answers) < len(requests):
        event = await peer.receive_any()
        if not isinstance(event, Frame):
            break
        if not peer.ambient(event):
            answers.append(event)
    return answers


def _id_in(body: Mapping[str, Any]) -> int | None:
    topic_id = body.get("id")
    return topic_id if isinstance(topic_id, int) and 0 < topic_id < 2**32 else None
