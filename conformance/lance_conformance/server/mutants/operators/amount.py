"""Servers that mix up the segments of large logs."""

from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Topic
from lance_conformance.server.mutants.operators.common import (
    register,
)
from lance_conformance.server.mutants.registry import golden


def _mixes_segments(size: int) -> None:
    def readable(server: Specified, topic: Topic, /) -> bytes:
        log = golden(server).readable(topic)
        if len(log) < 4 * size:
            return log
        return log[:size] + log[2 * size : 3 * size] + log[size : 2 * size] + log[3 * size :]

    def start(server: Specified, offset: int, /) -> int:
        asked = golden(server).start_of(offset)
        return asked % size if 4 * size < asked < 2**63 else asked

    register(Specified.readable, f"mixes-up-segments-of-{size}",
             f"The second and third segment of {size} bytes change places.",
             readable)  # fmt: skip
    register(Specified.start_of, f"reads-the-first-segment-of-{size}",
             f"Beyond four segments of {size} bytes it reads from the first one.",
             start)  # fmt: skip


for _size in (1 << 16, 1 << 17, 1 << 18):
    _mixes_segments(_size)


def _cuts_at_segments(size: int) -> None:
    def at(server: Specified, log: bytes, start: int, limit: int, /) -> bytes:
        data = golden(server).cut(log, start, limit)
        boundary = (start // size + 1) * size
        return data[: boundary - start] if start + len(data) > boundary else data

    register(Specified.cut, f"cuts-answers-at-segments-of-{size}",
             f"An answer ends where a segment of {size} bytes does, whole record or not.",
             at, "specified")  # fmt: skip


for _size in (1 << 16, 1 << 18, 1 << 20):
    _cuts_at_segments(_size)
