"""How much clients may ask of the server."""

from typing import Final

from lance_server.config.option_types import ABOVE_ZERO, COUNT, SECONDS, SIZE, group, setting
from lance_server.runtime.circuit_breaker import BreakerPolicy

LIMITS: Final = group(
    setting(
        "--max-memory",
        type=SIZE,
        help="What all clients together may make the server hold: unfinished frames, answers "
        "that are not taken, batches that are not durable. At 80 % reads wait and producers are "
        "told to slow down, at 95 % whatever needs more is refused.",
    ),
    setting(
        "--shed-after",
        type=ABOVE_ZERO,
        help="When memory is short, close connections that hold some and have moved nothing "
        "for so many seconds.",
    ),
    setting(
        "--consumer-rate",
        type=SIZE,
        help="Bytes per second that one connection may read; 0 is any number.",
    ),
    setting("--max-topics", type=COUNT, help="Topics that may exist."),
    setting(
        "--max-queue",
        type=COUNT,
        help="Batches that may wait for the disk before producers are told to slow down.",
    ),
    setting(
        "--max-disk-latency",
        type=ABOVE_ZERO,
        help="Seconds that 99 of the last 100 syncs may take before producers are told so.",
    ),
    setting(
        "--breaker-failures",
        of=BreakerPolicy,
        field="failure_threshold",
        type=COUNT,
        help="After so many failures of the disk in a row, refuse batches without trying.",
    ),
    setting(
        "--breaker-reset",
        of=BreakerPolicy,
        field="reset_timeout",
        type=SECONDS,
        help="Seconds until the disk is tried again.",
    ),
)
