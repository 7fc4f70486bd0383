"""What a member of a group shows of itself, and when it has to look up: the same for both faces."""

from typing import TYPE_CHECKING, Any, Final

from lance_sdk._checks import check_start
from lance_sdk.errors import UsageError
from lance_sdk.offsets.contract import TopicIdentity

if TYPE_CHECKING:
    from lance_sdk.groups._core.member import Member
    from lance_sdk.groups._core.membership import CommitCall
    from lance_sdk.groups._reading import Reading
    from lance_sdk.groups._settings import GroupSettings

LONGEST_WAIT: Final = 3600.0
"""Seconds; every wait ends, and is begun again."""


class Membership:
    """Base of `GroupConsumer` and `AsyncGroupConsumer`, beside their face."""

    _settings: "GroupSettings"
    _member: "Member"
    _reading: "Reading"
    _feeds: dict[int, Any]
    _ended: set[int]
    _pending: "CommitCall | None"
    _state: Any

    def __repr__(self) -> str:
        names = ",".join(topic.label for topic in self.assignment)
        who = f"{type(self).__name__} {self._settings.group}"
        return f"<{who} {self._state} {self._member!r} [{names}]>"

    @property
    def assignment(self) -> tuple[TopicIdentity, ...]:
        """The topics that this member reads now, by name."""
        return self._reading.topics

    @property
    def member(self) -> str:
        """The member's name in the group."""
        return self._member.name

    @property
    def generation(self) -> int:
        """The group's generation, as far as this member knows."""
        return self._member.generation

    @property
    def _at_end(self) -> bool:
        """Whether every topic of this member is at its end (``stop_at_end``)."""
        return bool(self._feeds) and self._ended >= self._feeds.keys()

    def _attention_at(self, now: float) -> float:
        """Return when to look up although nothing was delivered."""
        if self._pending is None and self._reading.automatic_due:
            return max(self._reading.commit_at, now)
        return now + LONGEST_WAIT

    def _move(self, topic: TopicIdentity, where: int | str) -> None:
        """Take note that the application wants to go on elsewhere."""
        if topic.id not in self._reading.progress:
            raise UsageError(f"topic {topic.label!r} is not assigned to this member now")
        check_start(where)
        self._reading.moved(topic.id, where if isinstance(where, int) else None)
