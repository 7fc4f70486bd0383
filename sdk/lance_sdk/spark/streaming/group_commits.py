"""What a streaming query has done, committed as a consumer group's progress, for people to see.

Spark's checkpoint alone says where the query goes on. The group shows it: ``lwp group status``
lists the query as the group's member, with the offsets it has committed.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, Final

from lance_sdk.errors import LanceError
from lance_sdk.groups import GroupConsumer
from lance_sdk.spark.options import Options
from lance_sdk.spark.streaming.checkpoint import TopicCheckpoint

_log = logging.getLogger(__name__)
_ASSIGNMENT_TIMEOUT: Final = 10.0
"""Seconds in which the coordinator gives a member its topics."""
_LOOK: Final = 0.05
_FETCH: Final = 64 << 10
"""Bytes that the member may fetch of a topic before it is paused: it reads nothing itself."""


class GroupCommits:
    """A query as the only member of a group; its topics are paused, so that it fetches nothing.

    Args:
        options: of the query, with ``commitGroup`` and ``commitCoordinator``.

    Raises:
        ConfigError: there is no server.
    """

    def __init__(self, options: Options) -> None:
        self._url = options.url()
        self._options = options
        self._member: GroupConsumer | None = None
        self._topics: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<GroupCommits {self._options.commit_group!r} {self._member!r}>"

    def commit(self, done: Mapping[str, TopicCheckpoint]) -> None:
        """Commit how far the query is; a failure is a warning, and the next commit tries anew.

        Args:
            done: where the micro-batch ends that is done, by topic.
        """
        try:
            self._commit(done)
        except LanceError as error:
            _log.warning("commitGroup=%s: %s", self._options.commit_group, error)
            self.close()

    def close(self) -> None:
        """Leave the group."""
        member, self._member = self._member, None
        if member is not None:
            with suppress(LanceError):
                member.close()

    def _commit(self, done: Mapping[str, TopicCheckpoint]) -> None:
        if not done:
            return
        member = self._joined(tuple(sorted(done)))
        ours = {topic.label: topic for topic in member.assignment}
        for name, checkpoint in done.items():
            if name not in ours:
                _log.warning(
                    "commitGroup=%s: topic %r belongs to another member; a query has to be alone "
                    "in its group",
                    self._options.commit_group,
                    name,
                )
            elif checkpoint.topic.difference(ours[name]) is None:
                member.seek(ours[name], checkpoint.offset)
        member.commit()

    def _joined(self, topics: tuple[str, ...]) -> GroupConsumer:
        """Return the member, after it has taken note of what came meanwhile."""
        if topics != self._topics:
            self.close()
            self._topics = topics
        until = monotonic() + _ASSIGNMENT_TIMEOUT
        if self._member is None:
            self._member = self._open(topics)
        else:
            until = monotonic()  # who has joined knows
        while True:
            self._member.poll(0.0 if self._member.assignment else _LOOK)
            self._member.pause(*self._member.assignment)
            if self._member.assignment or monotonic() >= until:
                return self._member

    def _open(self, topics: tuple[str, ...]) -> GroupConsumer:
        options: dict[str, Any] = self._options.client_options()
        member = GroupConsumer(
            self._url,
            group=self._options.commit_group or "",
            topics=topics,
            coordinator=self._options.commit_coordinator or "",
            auto_commit="off",
            max_fetch_bytes=_FETCH,
            prefetch_bytes=_FETCH,
            **options,
        )
        member.open()
        return member
