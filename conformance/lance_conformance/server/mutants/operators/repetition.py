"""Servers that are wrong the second time, or that tell what was true before."""

from typing import Any

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Topic
from lance_conformance.server.mutants.operators.common import (
    Hook,
    golden_rule,
    register,
)
from lance_conformance.server.mutants.registry import golden


def _again(  # noqa: PLR0917 - a row of the table below
    name: str, title: str, hook: Hook, key: Hook, spoil: Hook, times: int, only: str | None = None
) -> None:
    """An answer that is another one each time after it was given some times."""

    def replacement(server: Specified, *arguments: Any) -> Any:
        asked = (hook.__name__, key(*arguments))
        server.memory.counts[asked] += 1
        found = golden_rule(server, hook)(*arguments)
        late = server.memory.counts[asked] - times
        return spoil(found, late) if late > 0 else found

    register(hook, f"{name}-after-{times}", title.format(times), replacement, only)


def _stale(name: str, title: str, hook: Hook, key: Hook) -> None:
    """An answer that is given again although the facts have changed."""

    def replacement(server: Specified, *arguments: Any) -> Any:
        asked = (hook.__name__, key(*arguments))
        if asked not in server.memory.kept:
            server.memory.kept[asked] = golden_rule(server, hook)(*arguments)
        return server.memory.kept[asked]

    register(hook, name, title, replacement)


def _topic_key(topic: Topic) -> int:
    return topic.id


for _times in (1, 2, 3, 4):
    _again("forgets-the-time", "A topic has another creation time after {} answers.",
           Specified.found_body, _topic_key,
           lambda body, late: {**body, "created_at": body["created_at"] + late},
           _times)  # fmt: skip
    _again("redates-the-list", "The list has other creation times after {} answers.",
           Specified.listed, lambda: 0,
           lambda rows, late: [{**row, "created_at": row["created_at"] + late} for row in rows],
           _times)  # fmt: skip
    _again("brings-nothing", "The same Fetch brings nothing after {} answers.",
           Specified.cut, lambda log, start, limit: (log, start, limit), lambda *_: b"",
           _times)  # fmt: skip
    _again("resumes-once", "A commit is used up after {} answers.",
           Specified.committed, lambda topic_id, consumer: (topic_id, consumer), lambda *_: 0,
           _times)  # fmt: skip
    _again("dates-anew", "The same time has another offset after {} answers.",
           Specified.offset_at, lambda topic, time_ns: (topic.id, time_ns),
           lambda offset, late: offset + late, _times)  # fmt: skip
    _again("says-another-code", "The same missing topic has another code after {} answers.",
           Specified.missing_code, lambda topic_id: topic_id, lambda code, _: code ^ 0x03,
           _times, "specified")  # fmt: skip
    _again("changes-its-name", "The node has another id after {} answers.",
           Specified.status_body, lambda: 0,
           lambda body, late: {**body, "node_id": body["node_id"] + late}, _times)  # fmt: skip
    _again("takes-a-name-twice", "A name that is taken is given away after {} refusals.",
           Specified.taken_by, lambda name: name, lambda *_: None, _times)  # fmt: skip
    _again(
        "forgets-the-end",
        "Beyond the end the same Fetch is told another end after {} answers.",
        Specified.beyond_end,
        lambda log, start: (len(log), start),
        lambda reply, _: reply._replace(payload=bytes(8)),
        _times,
    )
    _again("forgets-a-batch", "A batch is known {} times when it comes again.",
           Specified.seen_elsewhere, lambda key, content: (key, content), lambda *_: False,
           _times, "specified")  # fmt: skip
_stale("keeps-the-log", "What was read of a topic once is read for ever.",
       Specified.readable, _topic_key)  # fmt: skip
_stale("keeps-the-list", "The list is that of the first time.", Specified.listed, lambda: 0)
_stale("keeps-the-commit", "A consumer resumes where it resumed first.",
       Specified.committed, lambda topic_id, consumer: (topic_id, consumer))  # fmt: skip


def _keeps_end(server: Specified, log: bytes, /) -> Reply:
    """The end that is told is that of the first time."""
    kept = server.memory.kept
    ends = kept.setdefault("ends", {})
    first = next((known for known in ends if log.startswith(known)), None)
    if first is None:
        ends[log] = first = log
    return golden(server).end_answer(first)


register(Specified.end_answer, "keeps-the-end", "The end that is told is that of the first time.",
         _keeps_end)  # fmt: skip
