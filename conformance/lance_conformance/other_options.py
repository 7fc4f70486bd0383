"""Options about what the kit may do beside asking: restart the target, and ask others."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from lance_conformance.engine.conditions import Target
from lance_conformance.engine.suites import PROTOCOLS
from lance_conformance.options import TARGET

Command = Callable[..., Any]
GROUPS = 19920
"""Where coordinators of consumer groups listen."""


def beside_the_target(command: Command) -> Command:
    """Add the options."""
    options = (
        click.option("--restart-cmd", metavar="COMMAND",
                     help="Command that ends the target and starts it again on the same data and "
                          "port; the cases about restarts run last and alone."),
        click.option("--failover-cmd", metavar="COMMAND",
                     help="The same, while the second target goes on: these cases read there what "
                          "the target has acknowledged. The nodes must answer linear reads."),
        click.option("--second-target", type=TARGET,
                     help="Another node of the target's cluster: HOST:PORT; for the cases about "
                          "several nodes."),
        click.option("--third-target", type=TARGET,
                     help="One more node: HOST:PORT; these cases then use both others."),
        click.option("--coordinator", type=TARGET,
                     help="A coordinator of consumer groups: HOST:PORT; for the cases about "
                          "groups."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def judge_failover(protocol: str, chosen: Mapping[str, Any], second: Target | None) -> None:
    """Refuse a failover of another protocol or to nowhere, and two ways to restart.

    Raises:
        click.UsageError: It is one of these.
    """
    if chosen["failover_cmd"] is None:
        return
    if protocol != PROTOCOLS[0]:
        raise click.UsageError(f"--failover-cmd is for --protocol {PROTOCOLS[0]}")
    if second is None:
        raise click.UsageError("--failover-cmd needs --second-target: the node that goes on")
    if chosen["restart_cmd"] is not None:
        raise click.UsageError("give --restart-cmd or --failover-cmd: each says how to restart")
