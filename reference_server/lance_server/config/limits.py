"""Options that limit what clients may use."""

from typing import Final

from lance_server.config.option_types import ABOVE_ZERO, COUNT, SECONDS, SIZE, group, setting
from lance_server.runtime.circuit_breaker import BreakerPolicy

LIMITS: Final = group(
    setting(
        "--max-memory",
        type=SIZE,
        help="Memory that all clients together may use: unfinished frames, answers that are "
        "not read, batches that are not durable. At 80 % reads wait and producers are "
        "told to slow down; at 95 % requests that need more are refused.",
    ),
    setting(
        "--shed-after",
        type=ABOVE_ZERO,
        help="When memory is short, close connections that use some of it and have moved "
        "nothing for this number of seconds.",
    ),
    setting(
        "--consumer-rate",
        type=SIZE,
        help="Bytes per second that one connection may read; 0: no limit.",
    ),
    setting("--max-topics", type=COUNT, help="Largest number of topics."),
    setting(
        "--max-queue",
        type=COUNT,
        help="Batches that may wait for the disk before producers are told to slow down.",
    ),
    setting(
        "--max-disk-latency",
        type=ABOVE_ZERO,
        help="Seconds that 99 of the last 100 syncs may take before producers are told to slow "
        "down.",
    ),
    setting(
        "--breaker-failures",
        of=BreakerPolicy,
        field="failure_threshold",
        type=COUNT,
        help="Failures of the disk in a row after which the server refuses batches without trying.",
    ),
    setting(
        "--breaker-reset",
        of=BreakerPolicy,
        field="reset_timeout",
        type=SECONDS,
        help="Seconds after which the server tries the disk again.",
    ),
)
