"""Where the server listens and what is spoken there."""

from typing import Final

import click

from lance_server.config.option_types import ABOVE_ZERO, ADDRESS, COUNT, FILE, SIZE, group
from lance_spec.dialect import DIALECTS
from lance_spec.limits import DEFAULT_PORT, IDLE_TIMEOUT

NETWORK: Final = group(
    click.option(
        "--listen",
        default=f"127.0.0.1:{DEFAULT_PORT}",
        type=ADDRESS,
        help="Where to accept connections; port 0 lets the system choose.",
    ),
    click.option(
        "--dialect",
        default="auto",
        type=click.Choice([*DIALECTS, "auto"]),
        help="What clients speak; auto: each connection's first header decides.",
    ),
    click.option(
        "--max-payload", type=SIZE, help="Largest payload; by default the dialect's limit."
    ),
    click.option(
        "--strict-topic-names/--any-topic-names",
        default=None,
        help="Allow only letters, digits and '-' in names; by default the dialect's rule.",
    ),
    click.option(
        "--validate-records/--trust-records",
        default=True,
        help="Look at every record before a batch is stored, or trust producers: saves some "
        "nanoseconds a record, and consumers may meet batches that are not records.",
    ),
    click.option("--max-connections", default=4096, type=COUNT, help="Connections at once."),
    click.option(
        "--idle-timeout",
        default=IDLE_TIMEOUT,
        type=ABOVE_ZERO,
        help="Close a connection after so many seconds without a frame.",
    ),
    click.option(
        "--slow-peer-timeout",
        default=IDLE_TIMEOUT,
        type=ABOVE_ZERO,
        help="Close a connection that reads nothing of what it is owed for so many seconds.",
    ),
    click.option("--port-file", type=FILE, help="Write the port here once it is bound."),
)
