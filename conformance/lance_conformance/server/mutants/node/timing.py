"""Servers that tell wrong times of batches (AMB-61)."""

from collections.abc import Callable

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Refused, Topic
from lance_conformance.server.mutants.predicates import register
from lance_conformance.server.mutants.registry import golden

ASKED = ("time/batches-*",)
Times = list[tuple[int, int]]


def _times(name: str, title: str, wrong: Callable[[Topic, int, int, Times], Times]) -> None:
    def times_between(server: Specified, topic: Topic, start: int, end: int, /) -> Times:
        found = golden(server).times_between(topic, start, end)
        return wrong(topic, start, end, found)

    register(Specified.times_between, name, title, times_between, "specified", ASKED)


_times("tells-batches-that-begin-in-a-range",
       "Of a batch that began before a range the time is not told.",
       lambda _, start, __, found: [each for each in found if each[1] >= start])  # fmt: skip
_times("tells-batches-that-end-in-a-range", "The batch at the end of a range is left out.",
       lambda topic, _, end, found: found[:-1] if end < len(topic.log) else found)  # fmt: skip
_times("tells-times-backwards", "The times of batches are told by falling offset.",
       lambda _, __, ___, found: found[::-1])  # fmt: skip
_times("tells-all-times", "The times of all batches are told, whatever the range.",
       lambda topic, _, __, ___: list(topic.arrivals))  # fmt: skip
_times("rounds-times", "Times of batches are told as days.",
       lambda _, __, ___, found: [(time // (86_400 * 10**9) * 86_400 * 10**9, start)
                                  for time, start in found])  # fmt: skip
for _most in (60, 255):
    _times(f"tells-{_most}-times", f"Of a topic {_most} batches have a time.",
           lambda topic, _, __, found, most=_most: [  # type: ignore[misc]
               each for each in found if each in topic.arrivals[:most]
           ])  # fmt: skip


def _ends_anywhere(_server: Specified, _topic: Topic, end: int, /) -> int:
    return end


def _never_goes_on(server: Specified, next_offset: int, times: Times, /) -> Reply:
    return golden(server).times_answer(times[-1][1] if times else next_offset, times)


def _counts_pairs(server: Specified, next_offset: int, times: Times, /) -> Reply:
    reply = golden(server).times_answer(next_offset, times)
    count = len(times).to_bytes(4, "little")
    return reply._replace(payload=reply.payload[:8] + count + reply.payload[12:])


def _finds_nobody(server: Specified, topic_id: int, /) -> Topic:
    try:
        return golden(server).timed_topic(topic_id)
    except Refused:
        return Topic(topic_id, "nobody's")


def _any_size(server: Specified, command: int, size: int, /) -> bool:
    return (command == 0x75 and size >= 19) or golden(server).size_ok(command, size)


for _hook, _name, _title, _replacement in (
    (Specified.end_of_times, "tells-times-to-any-end",
     "The next offset of times is the end of the range, also beyond the log.", _ends_anywhere),
    (Specified.times_answer, "tells-the-last-offset",
     "The next offset of times is where the last batch begins.", _never_goes_on),
    (Specified.times_answer, "counts-batches-for-bytes",
     "The times of batches are announced by their number.", _counts_pairs),
    (Specified.timed_topic, "times-any-topic", "A topic that is not there has no batches.",
     _finds_nobody),
    (Specified.size_ok, "takes-other-ranges", "A BatchTimes may have a byte too many or too few.",
     _any_size),
):  # fmt: skip
    register(_hook, _name, _title, _replacement, "specified", ASKED)


def _redated(server: Specified) -> None:
    golden(server).restarted()
    for topic in server.memory.topics.values():
        topic.arrivals[:] = [(time + 1, start) for time, start in topic.arrivals]


register(Specified.restarted, "redates-batches-in-a-restart",
         "After a restart batches have other times.", _redated, "specified",
         ("log/restart-keeps-batch-times",))  # fmt: skip


def _no_times_at_once(_server: Specified) -> int:
    return 0


register(Specified.most_times, "tells-no-times", "An answer has room for the times of no batch.",
         _no_times_at_once, "specified", ASKED)  # fmt: skip
