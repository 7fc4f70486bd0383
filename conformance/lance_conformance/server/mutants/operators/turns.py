"""Servers that never forget what is over, end connections late, or lose things in a restart."""

from collections.abc import Callable
from typing import Any, NamedTuple

from lance_conformance.server.golden.codec import Wire
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Connection, Refused
from lance_conformance.server.mutants import predicates
from lance_conformance.server.mutants.operators.common import ASKED, Hook, golden_rule, register
from lance_conformance.server.mutants.registry import golden

SOON = 0.02
"""Seconds after which a connection ends that seemed to be served; the self-test waits longer."""
FULL = 0x04


def _counted(key: str, most: int, *, own: bool = False) -> Callable[[Specified], bool]:
    """Counts on the server, or on the speaker's connection, and says whether there is room."""

    def has_room(server: Specified) -> bool:
        counts: Any = (server.memory.speaker if own else server.memory).counts
        counts[key] += 1
        few: bool = counts[key] <= most
        return few

    return has_room


ENOUGH = {8: 9, 16: 17, 40: 65}
"""How often a case does something in turn, by what it exceeds."""
ENOUGH_CONNECTIONS = {16: 9, 24: 17, 40: 65}
"""The same of connections: the preflight makes some before the case."""


class CountedMutant(NamedTuple):
    """Something that is counted.

    Attributes:
        hook: Where it is counted.
        key: What is counted; "own" in it: on a connection, otherwise on the server.
        name: The mutant's id, with a place for the number.
        title: How it is wrong, likewise.
        turns: What the one case does in turn that it is put to; empty for those of its place.
    """

    hook: Hook
    key: str
    name: str
    title: str
    turns: str = ""


def _register(row: CountedMutant, most: int, times: int, replacement: Hook) -> None:
    """Register a mutant; one that counts over its whole life is put to one case.

    What it says to a second one would depend on the first.
    """
    only = "specified" if row.turns in {"hung-up", "committed"} else None
    asked = (f"num/{row.turns}-in-turn-{times}",) if row.turns else ASKED[row.hook.__name__]
    name, title = row.name.format(most), row.title.format(most)
    predicates.register(row.hook, name, title, replacement, only, asked)


def _so_many(row: CountedMutant, most: int, times: int) -> None:
    """A server that refuses what comes after the first so many, also of those that are over."""
    room = _counted(row.key, most, own="own" in row.key)

    def replacement(server: Specified, *arguments: Any) -> Any:
        if not room(server):
            raise Refused(FULL, f"there were {most} already")
        return golden_rule(server, row.hook)(*arguments)

    _register(row, most, times, replacement)


def _no_more(row: CountedMutant, most: int, times: int) -> None:
    """A server that says no, or does nothing, after the first so many."""
    room = _counted(row.key, most, own="own" in row.key)

    def replacement(server: Specified, *arguments: Any) -> Any:
        return room(server) and golden_rule(server, row.hook)(*arguments)

    _register(row, most, times, replacement)


REFUSING = (
    CountedMutant(Specified.consumer_topic, "all-subscriptions", "ever-has-{}-subscriptions",
        "There are {} subscriptions ever, ended ones too.", "hung-up"),
    CountedMutant(Specified.consumer_topic, "own-subscriptions", "ever-has-{}-own-subscriptions",
        "A connection has {} subscriptions ever, ended ones too."),
    CountedMutant(Specified.next_id, "all-topics", "ever-has-{}-topics",
        "There are {} topics ever, deleted ones too.", "created"),
)  # fmt: skip
STOPPING = (
    CountedMutant(Specified.commit_kept, "all-commits", "takes-{}-commits",
        "After {} commits none counts.", "committed"),
    CountedMutant(Specified.limits_kept, "all-limits", "takes-{}-limits",
        "Limits are set {} times.", "limited"),
    CountedMutant(Specified.stays_after, "own-refusals", "hangs-up-after-{}-refusals",
        "After {} refusals the next one ends the connection."),
)  # fmt: skip
CONNECTED = CountedMutant(Specified.has_room, "all-connections", "ever-has-{}-connections",
                "There are {} connections ever, ended ones too.", "connected")  # fmt: skip
for _most, _times in ENOUGH.items():
    for _row in REFUSING:
        _so_many(_row, _most, _times)
    for _row in STOPPING:
        _no_more(_row, _most, _times)
for _most, _times in ENOUGH_CONNECTIONS.items():
    _no_more(CONNECTED, _most, _times)


def _ends_late(kind: str, words: str) -> None:
    def ends_late(_server: Specified, found: str, /) -> float | None:
        return SOON if found == kind else None

    register(Specified.ends_late, f"ends-soon-after-{kind}",
             f"A moment after {words} the connection is ended.", ends_late)  # fmt: skip


for _kind, _words in (
    ("ack", "an Ack"), ("backpressure", "a Backpressure"), ("ingest", "a batch"),
    ("refused", "a refusal"), ("keepalive", "a Keepalive"),
):  # fmt: skip
    _ends_late(_kind, _words)


def _loses_when_restarted(
    name: str, title: str, lose: Callable[[Specified], None], only: str | None = None
) -> None:
    register(Specified.restarted, name, title, lose, only)


def _topics_beyond(most: int) -> None:
    def lose(server: Specified) -> None:
        for topic_id in [*server.memory.topics][most:]:
            del server.memory.topics[topic_id]

    _loses_when_restarted(f"keeps-{most}-topics-in-a-restart",
                          f"After a restart there are {most} topics.", lose)  # fmt: skip


def _commits_beyond(most: int) -> None:
    def lose(server: Specified) -> None:
        for key in [*server.memory.commits][most:]:
            del server.memory.commits[key]

    _loses_when_restarted(f"keeps-{most}-commits-in-a-restart",
                          f"After a restart {most} commits count.", lose, "specified")  # fmt: skip


def _bytes_beyond(most: int) -> None:
    def lose(server: Specified) -> None:
        for topic in server.memory.topics.values():
            topic.log = topic.log[:most]

    _loses_when_restarted(f"keeps-{most}-bytes-in-a-restart",
                          f"After a restart a topic has {most} bytes.", lose)  # fmt: skip


def _batches_beyond(most: int) -> None:
    def lose(server: Specified) -> None:
        for key in [*server.memory.batches][:-most]:
            del server.memory.batches[key]

    _loses_when_restarted(f"knows-{most}-batches-after-a-restart",
                          f"After a restart {most} batches are known.", lose,
                          "specified")  # fmt: skip


for _most in (8, 64):
    _topics_beyond(_most)
    _commits_beyond(_most)
for _most in (1000, 4096, 1 << 20, 4 << 20):
    _bytes_beyond(_most)
for _most in (1, 64, 256):
    _batches_beyond(_most)


def _forget_deleted(server: Specified) -> None:
    server.memory.deleted.clear()


def _forget_default(server: Specified) -> None:
    server.memory.default.log = b""


def _forget_limited(server: Specified) -> None:
    for topic in [*server.memory.topics.values()]:
        if topic.limits is not None:
            del server.memory.topics[topic.id]


def _second_time(server: Specified) -> None:
    server.memory.counts["restarts"] += 1
    if server.memory.counts["restarts"] > 1:
        for topic in server.memory.topics.values():
            topic.log = b""


_loses_when_restarted("forgets-deleted-ids-in-a-restart",
                      "After a restart a deleted topic is one that never was.",
                      _forget_deleted, "specified")  # fmt: skip
_loses_when_restarted("empties-the-default-topic-in-a-restart",
                      "After a restart topic 0 is empty.", _forget_default,
                      "specified")  # fmt: skip
_loses_when_restarted("loses-limited-topics-in-a-restart",
                      "After a restart topics with limits are gone.", _forget_limited)  # fmt: skip
predicates.register(
    Specified.restarted, "is-empty-after-two-restarts",
    "After a second restart all topics are empty.", _second_time, None,
    ("log/restart-three-times",),
)  # fmt: skip


def _knows_own_batches_without_a_time(
    server: Specified, connection: Connection, frame: Wire, /
) -> str:
    key = (frame.topic, frame.batch_id)
    content = (frame.timestamp, frame.payload)
    if connection.batches.get(key) == content:
        return "again"
    return golden(server).seen(connection, frame)


register(Specified.seen, "knows-own-batches-without-a-time",
         "A batch of a connection whose timestamp is 0 is taken for a repetition.",
         _knows_own_batches_without_a_time, "specified")  # fmt: skip
