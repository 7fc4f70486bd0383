"""A check that is left out: after some frames, above a size, or below one."""

from collections.abc import Callable
from typing import Any

from lance_conformance.server.golden.codec import SIZE
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants.operators.common import (
    ABOVE,
    AFTER,
    BELOW,
    Hook,
    golden_rule,
    register,
)
from lance_conformance.server.mutants.registry import golden


def left_out_after(hook: Hook, what: str, count: int, only: str | None = None) -> None:
    """A check that a connection passes unseen after its first frames."""

    def replacement(server: Specified, *arguments: Any) -> bool:
        seen = server.memory.speaker.counts
        seen[hook.__name__] += 1
        return seen[hook.__name__] > count or bool(golden_rule(server, hook)(*arguments))

    register(
        hook, f"skips-{what}-after-{count}",
        f"After {count} frames of a connection, {what.replace('-', ' ')} is not looked at.",
        replacement, only,
    )  # fmt: skip


def left_out_above(
    hook: Hook, what: str, size: int, payload: Callable[..., int], only: str | None = None
) -> None:
    """A check that large payloads pass unseen."""

    def replacement(server: Specified, *arguments: Any) -> bool:
        return payload(*arguments) > size or bool(golden_rule(server, hook)(*arguments))

    register(
        hook, f"skips-{what}-above-{size}",
        f"Above {size} bytes of payload, {what.replace('-', ' ')} is not looked at.",
        replacement, only,
    )  # fmt: skip


for _count in AFTER:
    left_out_after(Specified.magic_ok, "magic", _count)
    left_out_after(Specified.version_ok, "version", _count)
    left_out_after(Specified.header_crc_ok, "header-crc", _count)
    left_out_after(Specified.reserved_ok, "reserved", _count, "specified")
    left_out_after(Specified.bit_7_ok, "flag-bit-7", _count, "specified")
    left_out_after(Specified.payload_crc_ok, "payload-crc", _count)
    left_out_after(Specified.announced_ok, "length", _count)
    left_out_after(Specified.chain_ok, "chain", _count, "specified")
    left_out_after(Specified.count_ok, "record-count", _count, "specified")
    left_out_after(Specified.batch_id_ok, "batch-id", _count, "specified")
for _size in ABOVE:
    left_out_above(Specified.payload_crc_ok, "payload-crc", _size, lambda _, payload: len(payload))
for _size in ABOVE[:-1]:
    left_out_above(Specified.chain_ok, "chain", _size, len, "specified")
    left_out_above(
        Specified.count_ok, "record-count", _size, lambda _, payload: len(payload), "specified"
    )


def left_out_below(
    hook: Hook, what: str, payload: Callable[..., int], only: str | None = None
) -> None:
    """A check that small payloads pass unseen."""

    def replacement(server: Specified, *arguments: Any) -> bool:
        return payload(*arguments) < BELOW or bool(golden_rule(server, hook)(*arguments))

    register(
        hook, f"skips-{what}-below-{BELOW}",
        f"Below {BELOW} bytes of payload, {what.replace('-', ' ')} is not looked at.",
        replacement, only,
    )  # fmt: skip


left_out_below(Specified.payload_crc_ok, "payload-crc", lambda _, payload: len(payload))
left_out_below(Specified.chain_ok, "chain", len, "specified")
left_out_below(Specified.count_ok, "record-count", lambda _, payload: len(payload), "specified")


def _serves_small_unfinished(server: Specified, there: int, needed: int, /) -> bool:
    late = needed < SIZE + BELOW and needed - there <= 1
    return late or golden(server).complete(there, needed)


register(Specified.complete, f"serves-frames-below-{BELOW}-early",
         f"A frame below {BELOW} bytes is served before its last byte is there.",
         _serves_small_unfinished)  # fmt: skip


def _serves_unfinished(size: int) -> None:
    def replacement(server: Specified, there: int, needed: int, /) -> bool:
        late = needed > size and needed - there <= 1
        return late or golden(server).complete(there, needed)

    register(
        Specified.complete, f"serves-frames-above-{size}-early",
        f"A frame above {size} bytes is served before its last byte is there.", replacement,
    )  # fmt: skip


for _size in ABOVE[:-1]:
    _serves_unfinished(_size)


def _ignores_limit(size: int) -> None:
    def limit(server: Specified, max_bytes: int, /) -> int:
        return 1 << 31 if max_bytes > size else golden(server).limit(max_bytes)

    def push_limit(server: Specified, max_bytes: int, /) -> int:
        return 1 << 24 if max_bytes > size else golden(server).push_limit(max_bytes)

    register(Specified.push_limit, f"ignores-max-batch-bytes-above-{size}",
             f"Above {size} bytes Max Batch Bytes is not looked at.", push_limit,
             "specified")  # fmt: skip
    register(Specified.limit, f"ignores-max-bytes-above-{size}",
             f"Above {size} bytes Max Bytes is not looked at.", limit)  # fmt: skip


def _compares_beginnings(size: int) -> None:
    def spelling(server: Specified, name: str, /) -> str:
        return golden(server).spelling(name)[:size]

    register(Specified.spelling, f"compares-{size}-bytes-of-names",
             f"Of a name {size} bytes are compared.", spelling)  # fmt: skip


for _size in (200, 4000, 65_000):
    _ignores_limit(_size)
for _size in (64, 128, 249):
    _compares_beginnings(_size)
