"""Subscriptions of the clients of a fake server."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from lance_sdk.testing._log import FakeTopics
from lance_spec.messages.lwp import FetchResponse, Subscribe


@dataclass(slots=True)
class Subscriber:
    """One subscription of one connection.

    Attributes:
        topic_id: the topic.
        cursor: offset of the next push.
        max_bytes: most data in one.
        push: sends a payload to the client, for a topic.
    """

    topic_id: int
    cursor: int
    max_bytes: int
    push: Callable[[int, bytes], object]


class FakeSubscriptions:
    """Pushes what is appended.

    Args:
        topics: the topics.

    Attributes:
        pushing: whether anything is pushed; without it subscriptions are only taken.
        commits: committed offsets by topic and consumer (LWP section 5.14).
    """

    def __init__(self, topics: FakeTopics) -> None:
        self._topics = topics
        self._lock = threading.RLock()
        self._subscribers: dict[tuple[object, int], Subscriber] = {}
        self.pushing = True
        self.commits: dict[tuple[int, int], int] = {}
        topics.on_append = self.feed

    def __len__(self) -> int:
        return len(self._subscribers)

    def __repr__(self) -> str:
        return f"<FakeSubscriptions {list(self._subscribers.values())}>"

    def start(self, request: Subscribe) -> int:
        """Return where a subscription begins: at 0 it resumes at the commit (AMB-36)."""
        key = request.topic_id, request.consumer_id
        return request.start_offset or self.commits.get(key, 0)

    def add(self, peer: object, subscriber: Subscriber) -> None:
        """Subscribe, and push what is there."""
        with self._lock:
            self._subscribers[peer, subscriber.topic_id] = subscriber
        self.feed()

    def remove(self, peer: object, topic_id: int, confirm: Callable[[], object]) -> None:
        """Unsubscribe and confirm; nothing is pushed after that."""
        with self._lock:
            self._subscribers.pop((peer, topic_id), None)
            confirm()

    def forget(self, peer: object) -> None:
        """Drop the subscriptions of a connection that ended."""
        with self._lock:
            for key in [key for key in self._subscribers if key[0] is peer]:
                del self._subscribers[key]

    def feed(self) -> None:
        """Push whatever is new."""
        with self._lock:
            for subscriber in self._subscribers.values() if self.pushing else ():
                while self._push_next(subscriber):
                    pass

    def _push_next(self, subscriber: Subscriber) -> bool:
        log = self._topics.log(subscriber.topic_id) or b""
        data, count = self._topics.read(log, subscriber.cursor, subscriber.max_bytes)
        if not data:
            return False
        subscriber.cursor += len(data)
        response = FetchResponse(subscriber.cursor, len(data), count, data)
        subscriber.push(subscriber.topic_id, response.encode())
        return True
