"""Clients that lose what waits in them: pushes that nobody has asked for, and parts of records."""

from collections.abc import Callable, Sequence

from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import CONTROL, Record
from lance_conformance.client.mutants.operators import ASKED, kept, register
from lance_conformance.client.mutants.registry import golden
from lance_conformance.server.golden.codec import Wire

ASKED_OF_PUSHES = ("many/unread-*", "large/follows-*", "many/pushes-*")
ASKED.update({"has_room": ASKED_OF_PUSHES, "carried": ASKED_OF_PUSHES})
PUSHED, FETCHED = "specified", "deployed"
"""Where a client subscribes, and where it fetches instead."""
FETCH_RESPONSE = 0x11
Room = Callable[[Sequence[Wire]], bool]

# -- pushes ----------------------------------------------------------------------------------------


def _has_room(name: str, title: str, room: Room) -> None:
    """A client that drops a push for which it has no room, seen what waits already."""

    def has_room(client: Specified, unread: Sequence[Wire], frame: Wire, /) -> bool:
        pushed = frame.flags == CONTROL and frame.batch_id == FETCH_RESPONSE
        return not pushed or room(unread) or not golden(client).has_room(unread, frame)

    register(Specified.has_room, name, title, has_room, PUSHED)


def _fewer_than(most: int) -> Room:
    return lambda unread: len(unread) < most


def _less_than(most: int) -> Room:
    return lambda unread: sum(len(frame.payload) for frame in unread) < most


for _most in (16, 64, 128, 256, 1_024):
    _has_room(f"keeps-{_most}-unread-pushes", f"Of unread pushes {_most} are kept.",
              _fewer_than(_most))  # fmt: skip
for _most in (4_096, 65_536, 1 << 20, 4 << 20):
    _has_room(f"keeps-{_most}-unread-bytes",
              f"Of unread pushes those in the first {_most} bytes are kept.",
              _less_than(_most))  # fmt: skip

# -- parts of records ------------------------------------------------------------------------------


def _carries(name: str, title: str, change: Callable[[bytes], bytes]) -> None:
    def carried(client: Specified, part: bytes, /) -> bytes:
        return change(golden(client).carried(part))

    register(Specified.carried, name, title, carried, PUSHED)


def _no_more_than(most: int) -> Callable[[bytes], bytes]:
    return lambda part: part if len(part) <= most else b""


for _most in (65_000, 65_535, 65_536, 100_000, 1_000_000):
    _carries(f"carries-{_most}-bytes-of-a-record",
             f"A part of a record of more than {_most} bytes is dropped.",
             _no_more_than(_most))  # fmt: skip


def _goes_on(name: str, title: str, wrong: Callable[[int, int, int], int], above: int) -> None:
    """A client that goes on elsewhere after a large answer that was cut."""

    def position(client: Specified, offset: int, whole: int, following: int, /) -> int:
        cut = whole and following > offset + whole and following - offset >= above
        right = golden(client).position(offset, whole, following)
        return wrong(offset, whole, following) if cut else right

    register(Specified.position, name, title, position, FETCHED)


ASKED["position"] += ("large/follows-*",)
for _above in (60_000, 65_536, 1_000_000):
    _goes_on(f"passes-over-cut-records-of-{_above}-bytes",
             f"After an answer of {_above} bytes or more the record that it cuts is lost.",
             lambda _offset, _whole, following: following, _above)  # fmt: skip


def _repeats_above(most: int) -> None:
    """A client that reads the record before a cut a second time."""

    def records(client: Specified, data: bytes, /) -> tuple[list[Record], int]:
        found, whole = golden(client).records(data)
        before = kept(client, "before-the-cut", [])
        if whole < len(data) and len(data) >= most and found:
            before[:] = found[-1:]
        elif before and found:
            found, before[:] = before[:] + found, []
        return found, whole

    register(Specified.records, f"repeats-the-record-before-a-cut-of-{most}",
             f"What stands before the cut of an answer of {most} bytes is read again.",
             records, FETCHED)  # fmt: skip


for _most in (60_000, 65_536, 1_000_000):
    _repeats_above(_most)
