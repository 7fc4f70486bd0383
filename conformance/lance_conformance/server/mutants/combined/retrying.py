"""Servers that know some batches again, and take others for them."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from lance_conformance.server.golden.codec import Wire, walk
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Connection, Topic
from lance_conformance.server.mutants.operators.common import INGEST
from lance_conformance.server.mutants.predicates import register
from lance_conformance.server.mutants.registry import golden

RETRIED = ("rep/retried-*",)
REUSED = ("rep/reused-id-*", "rep/same-batch-in-topics")
COMPRESSED = 0x01
NONCE = 40
"""Bits of a batch id below the number of its producer."""
Content = tuple[int, bytes]


def _forgets(name: str, words: str, forgotten: Callable[[Wire], bool]) -> None:
    def seen(server: Specified, connection: Connection, frame: Wire, /) -> str:
        found = golden(server).seen(connection, frame)
        return "new" if found == "again" and forgotten(frame) else found

    register(Specified.seen, f"forgets-batches-{name}",
             f"Batches {words} are not known again.", seen, "specified", RETRIED)  # fmt: skip


for _size in (65_536, 1_000_000):
    _forgets(f"above-{_size}", f"of more than {_size} bytes",
             lambda frame, size=_size: len(frame.payload) > size)  # type: ignore[misc]  # fmt: skip
_forgets("of-100-records", "of more than 100 records",
         lambda frame: len(walk(frame.payload)[0]) > 101)  # fmt: skip
_forgets("of-nothing", "whose values are all empty",
         lambda frame: len(frame.payload) == 5 * (len(walk(frame.payload)[0]) - 1))  # fmt: skip
_forgets("that-are-compressed", "that are compressed",
         lambda frame: bool(frame.flags & COMPRESSED))  # fmt: skip


def _drop(server: Specified, topic_id: int) -> None:
    for key in [key for key in server.memory.batches if key[0] == topic_id]:
        del server.memory.batches[key]


def _after_a_conflict(server: Specified, connection: Connection, frame: Wire, /) -> str:
    found = golden(server).seen(connection, frame)
    if found == "other":
        connection.batches.pop((frame.topic, frame.batch_id))
        _drop(server, frame.topic)
    return found


def _after_limits(server: Specified, topic: Topic, limits: tuple[int, int], /) -> None:
    golden(server).limits_kept(topic, limits)
    _drop(server, topic.id)


def _after_a_commit(server: Specified, topic_id: int, consumer: int, offset: int, /) -> None:
    golden(server).commit_kept(topic_id, consumer, offset)
    _drop(server, topic_id)


def _after_a_deletion(server: Specified, topic: Topic, /) -> None:
    golden(server).forget(topic)
    server.memory.batches.clear()


def _after_a_large_one(server: Specified, topic: Topic, payload: bytes, /) -> bytes:
    if len(payload) > 65_536:
        _drop(server, topic.id)
    return golden(server).stored(topic, payload)


def _without_a_time_in_one_read(server: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
    found: list[Wire] = []
    for frame in golden(server).served(frames):
        again = frame.flags == INGEST and any(
            each.batch_id == frame.batch_id and each.payload == frame.payload for each in found
        )
        found.append(frame._replace(timestamp=0) if again else frame)
    return found


register(Specified.seen, "forgets-a-topic-after-a-conflict",
         "After another batch under a known id those of its topic are not known again.",
         _after_a_conflict, "specified", RETRIED)  # fmt: skip
register(Specified.limits_kept, "forgets-a-topic-with-new-limits",
         "After a SetRetention the batches of the topic are not known on other connections.",
         _after_limits, "specified", RETRIED)  # fmt: skip
register(Specified.commit_kept, "forgets-a-topic-after-a-commit",
         "After a commit the batches of the topic are not known on other connections.",
         _after_a_commit, "specified", RETRIED)  # fmt: skip
register(Specified.forget, "forgets-batches-after-a-deletion",
         "After a deletion no batch is known on other connections.",
         _after_a_deletion, "specified", RETRIED)  # fmt: skip
register(Specified.stored, "forgets-a-topic-after-a-large-batch",
         "After a large batch the others of its topic are not known on other connections.",
         _after_a_large_one, "specified", RETRIED)  # fmt: skip
register(Specified.served, "refuses-repetitions-in-one-read",
         "A batch that stands twice in one read is another one the second time.",
         _without_a_time_in_one_read, "specified", RETRIED)  # fmt: skip


def _knows_producers(most: int) -> None:
    def seen_elsewhere(server: Specified, key: tuple[int, int], content: Content, /) -> bool:
        mine = (batch for topic, batch in server.memory.batches if topic == key[0])
        known = dict.fromkeys(batch >> NONCE for batch in mine)
        recent = [*known][-most:]
        return key[1] >> NONCE in recent and golden(server).seen_elsewhere(key, content)

    register(Specified.seen_elsewhere, f"knows-{most}-producers",
             f"Of a topic the last {most} producers are known on other connections.",
             seen_elsewhere, "specified", ("num/producers-*",))  # fmt: skip


for _most in (8, 16, 64, 128, 256):
    _knows_producers(_most)


def _knows_batches(most: int) -> None:
    def seen_elsewhere(server: Specified, key: tuple[int, int], content: Content, /) -> bool:
        mine = server.memory.counts[key[0]]
        born = server.memory.kept.setdefault(("born", key), mine)
        server.memory.counts[key[0]] += born == mine
        return mine - born < most and golden(server).seen_elsewhere(key, content)

    register(Specified.seen_elsewhere, f"knows-the-last-{most}-batches",
             f"Of a topic the last {most} batches are known on other connections.",
             seen_elsewhere, "specified", ("num/remembered-4097",))  # fmt: skip


for _most in (1500, 2000, 4000):
    _knows_batches(_most)

# -- batches that are taken for others -------------------------------------------------------------

Same = Callable[[bytes, bytes], bool]


def _takes(name: str, title: str, same: Same) -> None:
    def seen(server: Specified, connection: Connection, frame: Wire, /) -> str:
        found = golden(server).seen(connection, frame)
        if found != "other":
            return found
        known = connection.batches[frame.topic, frame.batch_id][1]
        return "again" if same(known, frame.payload) else found

    register(Specified.seen, name, title, seen, "specified", REUSED)


def _without_types(payload: bytes) -> bytes:
    ends = walk(payload)[0]
    return b"".join(payload[a + 1 : b] for a, b in pairwise(ends))


_takes("compares-the-sizes-of-batches", "Two batches of one id and size are taken for one.",
       lambda known, new: len(known) == len(new))  # fmt: skip
for _size in (4096, 65_536):
    _takes(f"compares-{_size}-bytes-of-batches",
           f"Of two batches of one id and size the first {_size} bytes are compared.",
           lambda known, new, size=_size: (  # type: ignore[misc]
               len(new) > size and known[:size] == new[:size]
           ))  # fmt: skip
_takes("compares-all-but-the-last-byte", "Of two batches the last byte is not compared.",
       lambda known, new: known[:-1] == new[:-1])  # fmt: skip
_takes("compares-the-ends-of-batches", "Of two batches the last 8 bytes are compared.",
       lambda known, new: known[-8:] == new[-8:])  # fmt: skip
_takes("compares-no-types", "Of two batches the types of the records are not compared.",
       lambda known, new: _without_types(known) == _without_types(new))  # fmt: skip
_takes("compares-first-records", "A batch that begins as the known one is taken for it.",
       lambda known, new: new.startswith(known))  # fmt: skip


def _known_in_any_topic(server: Specified, connection: Connection, frame: Wire, /) -> str:
    content = (frame.timestamp, frame.payload)
    same = any(
        key[1] == frame.batch_id and known == content for key, known in connection.batches.items()
    )
    return "again" if same else golden(server).seen(connection, frame)


register(Specified.seen, "knows-own-batches-of-any-topic",
         "A batch that its connection sent to another topic is taken for a repetition.",
         _known_in_any_topic, None, REUSED)  # fmt: skip
