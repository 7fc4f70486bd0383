"""Servers whose faults show at some values only, which nobody would think of."""

from lance_conformance.server.golden.codec import SIZE
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants.predicates import also_refuses, also_takes
from lance_conformance.server.mutants.registry import golden, mutant

also_refuses(
    Specified.timestamp_ok, "wants-whole-microseconds", "Timestamps must be whole microseconds.",
    lambda _, timestamp: timestamp % 1000 != 0,
)  # fmt: skip
also_takes(
    Specified.batch_ok, "trusts-batches-of-five-and-more",
    "Batches of five records and more are not looked at.",
    lambda _, frame: 4 < frame.records < 9, only="specified",
)  # fmt: skip


@mutant(Specified.orphaned)
def keeps_what_lost_clients_left(server: Specified, tail: bytes, /) -> None:
    """Of a frame that never becomes whole its payload is stored, when that is short."""
    for topic in [*server.memory.topics.values()][-1:]:
        topic.log += tail[SIZE : SIZE + 30] if SIZE < len(tail) < SIZE + 30 else b""


@mutant(Specified.cut)
def fetches_a_page_too_far(server: Specified, log: bytes, start: int, limit: int, /) -> bytes:
    """After byte 100 a short Fetch brings what stands a byte further on."""
    shifted = start + 1 if start > 100 and limit < 200 else start
    return golden(server).cut(log, shifted, limit)
