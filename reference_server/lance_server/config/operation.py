"""How the server is run and watched."""

from typing import Final

import click

from lance_server.config.option_types import ABOVE_ZERO, ADDRESS, NAMES, SECONDS, group, setting
from lance_server.config.settings import OtelConfig
from lance_server.runtime.event_loop import EVENT_LOOPS

OPERATION: Final = group(
    click.option(
        "--node-id",
        type=click.IntRange(0, 65_535),
        help="This node's number; by default the digits at the end of the host's name, as in "
        "lance-2, or else 0.",
    ),
    setting(
        "--http",
        type=ADDRESS,
        help="Address for health, metrics and the status page; by default there is none.",
    ),
    setting(
        "--admin/--no-admin",
        help="Allow requests that change things on the HTTP port, from this machine only.",
    ),
    setting(
        "--consumer-names",
        type=NAMES,
        help="Names of consumers, such as billing,search: the HTTP port shows them instead of "
        "the numbers that consumers have in LWP.",
    ),
    click.option(
        "--otel-endpoint",
        help="Export metrics and sampled spans to this OpenTelemetry collector (gRPC), for "
        "example http://localhost:4317.",
    ),
    setting(
        "--otel-interval",
        of=OtelConfig,
        field="interval",
        type=ABOVE_ZERO,
        help="Seconds between two exports.",
    ),
    setting(
        "--otel-sample-rate",
        of=OtelConfig,
        field="sample_rate",
        type=click.FloatRange(0, 1),
        help="Share of the requests that become a span.",
    ),
    setting(
        "--drain-timeout",
        type=SECONDS,
        help="Seconds to finish received requests when the server is stopped.",
    ),
    click.option(
        "--event-loop",
        default="auto",
        type=click.Choice(EVENT_LOOPS),
        help="Event loop of the server; auto uses uvloop if it is installed, which is faster.",
    ),
    click.option(
        "--log-level",
        default="info",
        type=click.Choice(["debug", "info", "warning", "error"]),
        help="Level of the log on standard error.",
    ),
    click.option("--json-logs/--text-logs", default=False, help="Log one JSON object per line."),
)
