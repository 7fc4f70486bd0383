"""Cases about large frames and the exact limit (LWP section 8.7; AMB-32)."""

from typing import Any

from generate.codec.wire import u32
from generate.server.form import Json, ack, case, exchange, ingest, parts, step, times

LIMIT = {"specified": 16 * 1024 * 1024 + 5, "deployed": 16 * 1024 * 1024}


def _one_record(size: int) -> list[Json]:
    """Return a payload of this size, all of it one record."""
    return parts(b"\x01" + u32(size - 5), times(b"\x5a", size - 5))


AT_THE_LIMIT = {name: _one_record(size) for name, size in LIMIT.items()}


def _kept(
    name: str, clause: str, payload: object, title: str, count: int = 1, **facts: Any
) -> Json:
    head = case(f"big/{name}", clause, title, **facts)
    return exchange(head, step([ingest(payload, count)], [ack()]), stored=payload)


CASES = [
    *(
        _kept(f"frame-of-{name}", "13.1/buffers", _one_record(size - 44),
              f"A frame of exactly {name.replace('-', ' ')}, the size of some buffers, is stored.")
        for name, size in (
            ("4-kib", 4096), ("16-kib", 16384), ("64-kib", 65536), ("256-kib", 262144),
            ("1-mib", 1_048_576),
        )
    ),
    _kept("frame-of-64-kib-and-1", "13.1/buffers", _one_record(65536 - 44 + 1),
          "A frame of one byte more than 64 KiB is stored.", quick=True),
    _kept("largest-record", "8.7/largest", AT_THE_LIMIT,
          "The largest record that the limit allows is stored and read back.",
          weight=5, details="Its value has 16 MiB; in the deployed dialect the whole payload has."),
]  # fmt: skip
