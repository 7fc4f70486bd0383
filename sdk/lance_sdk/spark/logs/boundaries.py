"""Boundaries in a topic at a server, without reading its records.

A server tells where the batch at an offset begins (AMB-61). One that does not finds in its sidecars
where the first batch of a time begins (AMB-37): then a search by time brings offsets at which
records begin, wherever in the topic they are wanted.
"""

import time
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from typing import Final

from lance_sdk import Client
from lance_sdk.errors import Unsupported
from lance_sdk.spark.logs.contract import TopicView
from lance_sdk.types import BatchTimes

_LAST_TIME: Final = 2**64 - 1
_MOST_PROBES: Final = 64
"""Bits of a time: after so many halvings two times are the same."""
_NS: Final = 10**9
_NEAR_NS: Final = 10**6
_SHARE_OF_AGE: Final = 64
_SHARE: Final = 16
"""A boundary is near enough at this part of a split from where it is wanted."""


def stored_since(client: Client, view: TopicView, offset: int) -> int:
    """Return about when what begins at an offset was stored, in nanoseconds since the Unix epoch.

    It is earlier than the truth by a sixty-fourth of its age, or by a millisecond, at most.

    Args:
        client: of the server.
        view: the topic.
        offset: before its end.

    Raises:
        Unsupported: the server knows no times.
    """
    number, now = view.identity.id, time.time_ns()
    created = (view.identity.created_at or 0) * _NS

    def is_before(moment: int) -> bool:
        return client.offset_for_time(number, moment) <= offset

    early, late, back = now - _NS, now, _NS
    while early > created and not is_before(early):
        back *= 2
        early, late = now - back, early
    early = max(early, created)
    while late - early > max(_NEAR_NS, (now - early) // _SHARE_OF_AGE):
        middle = (early + late) // 2
        if is_before(middle):
            early = middle
        else:
            late = middle
    return early


class Boundaries:
    """Known boundaries of a topic, and the times that led to them.

    Args:
        ask: returns the offset of the first batch of a time, in nanoseconds.
        start: offset at which the topic begins.
        end: offset at which it ends.
        created_ns: time before which it has no batch.
        now_ns: time after which it has few.
        look: returns the batches of a range; None where the server cannot tell.
    """

    def __init__(
        self,
        ask: Callable[[int], int],
        start: int,
        end: int,
        created_ns: int,
        now_ns: int,
        *,
        look: Callable[[int, int], BatchTimes] | None = None,
    ) -> None:
        self._ask = ask
        self._look = look
        self._begins: set[int] = set()
        self._known = [(created_ns, start), (_LAST_TIME, end)]
        self._first_guess: int | None = now_ns

    @classmethod
    def at(cls, client: Client, view: TopicView) -> "Boundaries":
        """Return those of a topic at a server.

        Args:
            client: of the server.
            view: the topic.

        Raises:
            Unsupported: the server knows no times; not before one is asked for.
        """
        number = view.identity.id
        created = (view.identity.created_at or 0) * _NS

        def ask(time_ns: int) -> int:
            return client.offset_for_time(number, time_ns)

        def look(first: int, end: int) -> BatchTimes:
            return client.batch_times(number, first, end)

        return cls(ask, view.start, view.end, created, time.time_ns(), look=look)

    def __repr__(self) -> str:
        return f"<Boundaries {len(self._known)} known>"

    def has(self, place: int) -> bool:
        """Whether an offset is known to be a boundary."""
        return place in self._begins or any(offset == place for _, offset in self._known)

    def before(self, place: int, nearness: int) -> int:
        """Return the last known boundary at or before a place; at worst the topic's beginning.

        Args:
            place: an offset after the topic's beginning.
            nearness: how far before it is near enough, in bytes; nearer ones are not looked for.
        """
        if place - self._around(place)[0][1] > nearness:
            begin = self._begin_of_batch(place)
            if begin is not None:
                return begin
        for _ in range(_MOST_PROBES):
            (early, low), (late, _) = self._around(place)
            if place - low <= nearness or late - early <= 1:
                break
            self._probe(early, late)
        found = self._around(place)[0][1]
        return found if found <= place else self._known[0][1]

    def _begin_of_batch(self, place: int) -> int | None:
        """Return where the batch at a place begins; None where the server does not tell."""
        first = self._known[0][1]
        if self._look is None or place < first:
            return None
        try:
            found = self._look(place, place + 1).offsets
        except Unsupported:
            self._look = None
            return None
        if not found or not first <= found[0] <= place:
            return None
        self._begins.add(found[0])
        return found[0]

    def cut(self, start: int, end: int, size: int) -> list[int]:
        """Return boundaries that cut a range into pieces of about a size.

        Args:
            start: offset at which the range begins.
            end: offset at which it ends.
            size: bytes.
        """
        count = -(-(end - start) // size)
        wanted = (start + (end - start) * number // count for number in range(1, count))
        found = {self.before(place, size // _SHARE) for place in wanted}
        return sorted(place for place in found if start < place < end)

    def _around(self, place: int) -> Sequence[tuple[int, int]]:
        """Return the times and offsets known last before a place and first after it."""
        offsets = [offset for _, offset in self._known]
        index = min(max(1, bisect_left(offsets, place + 1)), len(offsets) - 1)
        return self._known[index - 1], self._known[index]

    def _probe(self, early: int, late: int) -> None:
        guess, self._first_guess = self._first_guess, None
        moment = guess if guess is not None and early < guess < late else (early + late) // 2
        offset = self._ask(moment)
        first, last = self._known[0][1], self._known[-1][1]
        insort(self._known, (moment, min(max(offset, first), last)))
