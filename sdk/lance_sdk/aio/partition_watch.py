"""Partitions that a topic gets while it is written to (AMB-59), for tasks."""

import math
from collections import deque
from collections.abc import Mapping
from time import monotonic
from typing import Any, Final

from lance_sdk._api.admin_steps import topics_call
from lance_sdk._protocol.request_tracker import PendingRequest
from lance_sdk.aio.client import AsyncClient
from lance_sdk.errors import LanceError
from lance_sdk.url import URL
from lance_spec.bodies import TopicInfo

_BETWEEN: Final = 0.02
"""Seconds between two looks at whether the answer has come."""


class AsyncPartitionWatch(AsyncClient):
    """Asks for the server's topics from time to time; whoever sends never waits for the answer.

    Args:
        server: where the topics are.
        options: fields of `lance_sdk.config.ClientConfig`.
        interval: seconds between two questions.

    Attributes:
        at: when to `look` next.
    """

    def __init__(self, server: URL, options: Mapping[str, Any], interval: float) -> None:
        super().__init__(server, **options)
        self._interval = interval
        self._turn = deque[PendingRequest | None]()  # who takes what is in it looks, alone
        self.at = math.inf

    def rest(self) -> None:
        """Ask next when the interval is over."""
        self.at = monotonic() + self._interval
        self._turn.append(None)

    def look(self) -> list[TopicInfo] | None:
        """Ask, or return the answer: then nobody looks again before `rest`."""
        try:
            call = self._turn.pop()
        except IndexError:
            return None
        if call is not None and call.done:
            if call.error is None:
                found: list[TopicInfo] = call.value
                return found
            self.rest()
            return None
        self.at = monotonic() + _BETWEEN
        try:
            if call is None:
                call = topics_call()
                self._submit(call)
        except LanceError:
            self.rest()
        else:
            self._turn.append(call)
        return None
