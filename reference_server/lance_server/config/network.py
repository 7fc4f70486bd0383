"""Options about addresses and dialects."""

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
        help="Address for LWP clients; port 0 lets the system choose.",
    ),
    setting(
        "--dialect",
        type=click.Choice([*DIALECTS, "auto"]),
        help="Dialect of clients; auto: the first header of a connection decides.",
    ),
    setting("--max-payload", type=SIZE, help="Largest payload; by default the dialect's limit."),
    setting(
        "--strict-topic-names/--any-topic-names",
        help="Allow only letters, digits and '-' in names; by default the dialect's rule.",
    ),
    setting(
        "--validate-records/--trust-records",
        help="Check the records of every batch before it is stored; or trust producers, which "
        "saves some nanoseconds per record, but consumers may get batches that are not "
        "records.",
    ),
    setting("--max-connections", type=COUNT, help="Largest number of connections."),
    setting(
        "--idle-timeout",
        type=ABOVE_ZERO,
        help="Close a connection after this number of seconds without a frame.",
    ),
    setting(
        "--slow-peer-timeout",
        type=ABOVE_ZERO,
        help="Close a connection whose client has read none of its answers for this number of "
        "seconds.",
    ),
    click.option(
        "--port-file", type=FILE, help="File to which the port is written once it is bound."
    ),
)
