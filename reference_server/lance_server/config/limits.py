"""How much clients may ask of the server."""

from typing import Final

import click

from lance_server.config.option_types import ABOVE_ZERO, COUNT, SECONDS, SIZE, group

LIMITS: Final = group(
    click.option(
        "--max-memory",
        default="256MiB",
        type=SIZE,
        help="What all clients together may make the server hold: unfinished frames, answers "
        "that are not taken, batches that are not durable. At 80 % reads wait and producers are "
        "told to slow down, at 95 % whatever needs more is refused.",
    ),
    click.option(
        "--shed-after",
        default=5.0,
        type=ABOVE_ZERO,
        help="When memory is short, close connections that hold some and have moved nothing "
        "for so many seconds.",
    ),
    click.option(
        "--consumer-rate",
        default="0",
        type=SIZE,
        help="Bytes per second that one connection may read; 0 is any number.",
    ),
    click.option("--max-topics", default=10_000, type=COUNT, help="Topics that may exist."),
    click.option(
        "--max-queue",
        default=10_000,
        type=COUNT,
        help="Batches that may wait for the disk before producers are told to slow down.",
    ),
    click.option(
        "--max-disk-latency",
        default=1.0,
        type=ABOVE_ZERO,
        help="Seconds that 99 of the last 100 syncs may take before producers are told so.",
    ),
    click.option(
        "--breaker-failures",
        default=5,
        type=COUNT,
        help="After so many failures of the disk in a row, refuse batches without trying.",
    ),
    click.option(
        "--breaker-reset", default=30.0, type=SECONDS, help="Seconds until the disk is tried again."
    ),
)
