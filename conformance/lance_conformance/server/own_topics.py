"""The topics that one case has created, and their removal.

The kit may run against a server with other people's data, so it deletes a topic only after the
target itself has said, under that id, that the name is one of this run.
"""

from lance_conformance.engine.expectations import Silence
from lance_conformance.server.peer import Peer
from lance_conformance.wire.control import delete_topic, get_topic, read_json
from lance_conformance.wire.frame import Command, Frame


class OwnTopics:
    """Ids of topics whose names begin as those of this run do.

    Args:
        beginning: How the name of every topic of this run begins.
    """

    def __init__(self, beginning: str) -> None:
        self._beginning = beginning
        self._ids: set[int] = set()

    def __repr__(self) -> str:
        return f"<OwnTopics {self._beginning}* {sorted(self._ids)}>"

    def __bool__(self) -> bool:
        return bool(self._ids)

    def adopt(self, frame: Frame) -> None:
        """Remember the topic that a TopicResponse speaks of, if it is one of this run.

        This finds those, too, that the target should have refused to create.
        """
        topic_id = self._topic_of(frame)
        if topic_id is not None:
            self._ids.add(topic_id)

    def _topic_of(self, frame: Frame) -> int | None:
        if frame.batch_id != Command.TOPIC_RESPONSE:
            return None
        body = read_json(frame.payload) or {}
        topic_id, name = body.get("id"), body.get("name")
        if not isinstance(name, str) or not name.startswith(self._beginning):
            return None
        return topic_id if isinstance(topic_id, int) and 0 < topic_id < 2**32 else None

    async def confirmed(self, peer: Peer, topic_id: int) -> bool:
        """Whether the target says that this id is a topic of this run.

        Raises:
            Failure: It says nothing.
        """
        peer.send(get_topic(topic_id))
        event = await peer.receive_any()
        if isinstance(event, Silence):
            raise peer.failure("timeout", str(event))
        return isinstance(event, Frame) and self._topic_of(event) == topic_id

    async def delete(self, peer: Peer) -> None:
        """Delete them all, as far as the target confirms that they are ours."""
        for topic_id in sorted(self._ids):
            if await self.confirmed(peer, topic_id):
                peer.send(delete_topic(topic_id))
                await peer.receive_any()
