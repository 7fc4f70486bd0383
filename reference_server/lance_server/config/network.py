"""Where the server listens and what is spoken there."""

from typing import Final

import click

from lance_server.config.option_types import ABOVE_ZERO, ADDRESS, COUNT, FILE, SIZE, group, setting
from lance_spec.dialect import DIALECTS
from lance_spec.limits import DEFAULT_PORT

NETWORK: Final = group(
    click.option(  # a server inside a program takes any free port, so that several can run
        "--listen",
        default=f"127.0.0.1:{DEFAULT_PORT}",
        type=ADDRESS,
        help="Where to accept connections; port 0 lets the system choose.",
    ),
    setting(
        "--dialect",
        type=click.Choice([*DIALECTS, "auto"]),
        help="What clients speak; auto: each connection's first header decides.",
    ),
    setting("--max-payload", type=SIZE, help="Largest payload; by default the dialect's limit."),
    setting(
        "--strict-topic-names/--any-topic-names",
        help="Allow only letters, digits and '-' in names; by default the dialect's rule.",
    ),
    setting(
        "--validate-records/--trust-records",
        help="Look at every record before a batch is stored, or trust producers: saves some "
        "nanoseconds a record, and consumers may meet batches that are not records.",
    ),
    setting("--max-connections", type=COUNT, help="Connections at once."),
    setting(
        "--idle-timeout",
        type=ABOVE_ZERO,
        help="Close a connection after so many seconds without a frame.",
    ),
    setting(
        "--slow-peer-timeout",
        type=ABOVE_ZERO,
        help="Close a connection that reads nothing of what it is owed for so many seconds.",
    ),
    click.option("--port-file", type=FILE, help="Write the port here once it is bound."),
)
