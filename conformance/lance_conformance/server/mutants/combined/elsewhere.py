"""Servers whose connections remember a topic that they used, although another one deleted it."""

from typing import Any

from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Topic
from lance_conformance.server.mutants.operators.common import Hook, golden_rule
from lance_conformance.server.mutants.predicates import register

HOOKS: tuple[tuple[Hook, str, str, str | None], ...] = (
    (Specified.ingest_topic, "ingest", "batch", None),
    (Specified.fetch_topic, "fetch", "Fetch", None),
    (Specified.topic_to_commit, "commit", "CommitOffset", "specified"),
    (Specified.find, "get", "GetTopic", None),
    (Specified.find_to_limit, "retention", "SetRetention", None),
    (Specified.timed_topic, "time", "OffsetForTime", "specified"),
    (Specified.consumer_topic, "subscribe", "Subscribe", None),
)


def _remembers(hook: Hook, name: str, words: str, only: str | None) -> None:
    mark = f"last {name} "

    def replacement(server: Specified, *arguments: Any) -> Topic:
        notes, topic_id = server.memory.speaker.notes, arguments[-1]
        if f"{mark}{topic_id}" in notes:
            remembered: Topic = server.memory.kept[mark, topic_id]
            return remembered
        topic: Topic = golden_rule(server, hook)(*arguments)
        notes.difference_update([note for note in notes if note.startswith(mark)])
        notes.add(f"{mark}{topic_id}")
        server.memory.kept[mark, topic_id] = topic
        return topic

    register(hook, f"remembers-the-topic-of-its-last-{name}",
             f"A connection finds the topic of its last {words} although it was deleted.",
             replacement, only, (f"mix/deleted-elsewhere-{name}",))  # fmt: skip


for _row in HOOKS:
    _remembers(*_row)
