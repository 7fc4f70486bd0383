"""Servers that tell outdated facts of large, repeated or deleted topics."""

from collections.abc import Callable
from typing import Any

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Refused, Replies, Topic
from lance_conformance.server.mutants.operators.common import cut
from lance_conformance.server.mutants.predicates import register
from lance_conformance.server.mutants.registry import golden

REFUSED_COMMITS = ("size/refused-commits", "any/mixed-*")
TOLD = ("size/record-count-of-*", "size/end-offset-of-*")
LISTED = ("each/listed-*", "any/mixed-*")
OUT_OF_RANGE = 0x51


def _ends(name: str, title: str, told: Callable[[Specified, Topic, int], Body]) -> None:
    def offset_to_commit(server: Specified, topic: Topic, offset: int, /) -> int:
        end = len(topic.log)
        if offset > end:
            raise Refused(OUT_OF_RANGE, "beyond the end", told(server, topic, end))
        return offset

    register(Specified.offset_to_commit, name, title, offset_to_commit, "specified",
             REFUSED_COMMITS)  # fmt: skip


def _first_end(server: Specified, topic: Topic, end: int) -> Body:
    return {"end_offset": server.memory.kept.setdefault(("refused", topic.id), end)}


_ends("refuses-commits-with-the-first-end",
      "A refused commit is told the end that was told first.", _first_end)  # fmt: skip
_ends("refuses-commits-with-16-bits", "A refused commit is told 16 bits of the end.",
      lambda _, __, end: {"end_offset": cut(end, 16)})  # fmt: skip
_ends("refuses-commits-without-a-large-end", "A refused commit is not told a large end.",
      lambda _, __, end: {"end_offset": end} if end < 65_536 else {})  # fmt: skip


def _told(field: str, bits: int) -> None:
    def log_body(server: Specified, topic: Topic, /) -> Body:
        body = golden(server).log_body(topic)
        return {**body, field: cut(body[field], bits)}

    register(Specified.log_body, f"cuts-{field.replace('_', '-')}-to-{bits}",
             f"Of {field} {bits} bits are told.", log_body, "specified", TOLD)  # fmt: skip


for _field, _some in (("record_count", (8, 10, 16)), ("end_offset", (8, 16, 20))):
    for _bits in _some:
        _told(_field, _bits)


def _announces(bits: int) -> None:
    def announced(server: Specified, data: bytes, /) -> int:
        return cut(golden(server).announced(data), bits)

    register(Specified.announced, f"announces-{bits}-bits",
             f"Of the number of bytes in an answer {bits} bits are announced.", announced,
             None, ("size/announced-of-*",))  # fmt: skip


for _bits in (16, 20):
    _announces(_bits)


def _lists(name: str, title: str, changed: Callable[[Body], Body]) -> None:
    def listed(server: Specified) -> list[Body]:
        return [changed(row) for row in golden(server).listed()]

    register(Specified.listed, name, title, listed, "specified", LISTED)


_lists("lists-the-first-epoch", "Every topic is listed as the first of its name.",
       lambda row: {**row, "topic_epoch": 1})  # fmt: skip
_lists("redates-topics-that-came-again", "A topic of a name that was there is listed as younger.",
       lambda row: {**row, "created_at": row["created_at"] + (row["topic_epoch"] > 1)})  # fmt: skip


def _counts_epochs_to(most: int) -> None:
    def epoch_of(server: Specified, name: str, /) -> int:
        return min(most, golden(server).epoch_of(name))

    register(Specified.epoch_of, f"has-{most}-epochs", f"A topic has at most the epoch {most}.",
             epoch_of, "specified", ("num/epochs-*",))  # fmt: skip


for _most in (2, 4):
    _counts_epochs_to(_most)


def _knows_names(most: int) -> None:
    def taken_by(server: Specified, name: str, /) -> Topic | None:
        found = golden(server).taken_by(name)
        recent = [*server.memory.topics.values()][-most:]
        return found if any(found is topic for topic in recent) else None

    register(Specified.taken_by, f"knows-{most}-names",
             f"The names of the last {most} topics are taken, others are not.", taken_by,
             None, ("num/topics-*",))  # fmt: skip


def _knows_deleted(most: int) -> None:
    def missing_code(server: Specified, topic_id: int, /) -> int:
        recent = sorted(server.memory.deleted)[-most:]
        return golden(server).missing_code(topic_id) if topic_id in recent else 0x10

    register(Specified.missing_code, f"knows-{most}-deleted-topics",
             f"The last {most} deleted topics are told as such.", missing_code, "specified",
             ("num/deleted-*",))  # fmt: skip


def _knows_times(most: int) -> None:
    def last(server: Specified, topic: Topic, time_ns: int, /) -> int:
        later = (start for time, start in topic.arrivals[-most:] if time >= time_ns)
        return next(later, golden(server).offset_at(topic, time_ns))

    def first(_server: Specified, topic: Topic, time_ns: int, /) -> int:
        later = (start for time, start in topic.arrivals[:most] if time >= time_ns)
        return next(later, len(topic.log))

    for words, hook in (("last", last), ("first", first)):
        register(Specified.offset_at, f"finds-the-{words}-{most}-times",
                 f"OffsetForTime finds the {words} {most} batches of a topic.", hook,
                 "specified", ("num/times-*",))  # fmt: skip


for _most in (8, 16, 64, 256):
    _knows_names(_most)
    _knows_times(_most)
for _most in (8, 16):
    _knows_deleted(_most)

# -- commands --------------------------------------------------------------------------------------

UNKNOWN = ("each/unknown-command-*", "each/server-command-*")


def _silent_on(first: int, last: int) -> None:
    def unknown_command(server: Specified, command: int, /) -> Replies:
        return [] if first <= command <= last else golden(server).unknown_command(command)

    register(Specified.unknown_command, f"passes-over-{first:02x}-to-{last:02x}",
             f"Unknown commands from {first:#04x} to {last:#04x} are not answered.",
             unknown_command, "specified", UNKNOWN)  # fmt: skip


for _first, _last in ((0x00, 0x00), (0x0A, 0x0F), (0x31, 0x31), (0x40, 0x5F), (0xC5, 0xC5),
                      (0xFE, 0xFE)):  # fmt: skip
    _silent_on(_first, _last)


def _hangs_up_on_c5(server: Specified, code: int, command: int, /) -> bool:
    return command != 0xC5 and golden(server).stays_after(code, command)


def _obeys_server_commands(server: Specified, command: int, /) -> Replies:
    if command == 0x24:
        return [Reply(0x40, 0x24, bytes(16))]
    return golden(server).server_command(command)


register(Specified.stays_after, "hangs-up-on-c5", "The command 0xc5 ends its connection.",
         _hangs_up_on_c5, "specified", UNKNOWN)  # fmt: skip
register(Specified.server_command, "answers-commit-acks", "A CommitAck of a client is answered.",
         _obeys_server_commands, "specified", UNKNOWN)  # fmt: skip

# -- offsets of large logs -------------------------------------------------------------------------

FAR = ("vol/far-*",)


def _reads_to(most: int) -> None:
    def readable(server: Specified, topic: Topic, /) -> bytes:
        return golden(server).readable(topic)[: most << 20]

    register(Specified.readable, f"reads-{most}-mib", f"The first {most} MiB of a log can be read.",
             readable, None, FAR)  # fmt: skip


def _ends_in(bits: int) -> None:
    def next_offset(server: Specified, start: int, data: bytes, /) -> int:
        return cut(golden(server).next_offset(start, data), bits)

    register(Specified.next_offset, f"goes-on-in-{bits}-bits",
             f"Of the next offset {bits} bits are told.", next_offset, None, FAR)  # fmt: skip


def _as_float(server: Specified, start: int, data: bytes, /) -> int:
    right: Any = golden(server).next_offset(start, data)
    return int(right) if right < 1 << 24 else int(right) // 4 * 4


for _most in (17, 33):
    _reads_to(_most)
for _bits in (24, 25):
    _ends_in(_bits)
register(Specified.next_offset, "rounds-large-offsets",
         "An offset above 16 MiB is told as a multiple of 4.", _as_float, None, FAR)  # fmt: skip
