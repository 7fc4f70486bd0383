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
                     help="How to end the target and start it again on the same data and port; "
                     "the cases about restarts are asked, last and alone."),
        click.option("--failover-cmd", metavar="COMMAND",
                     help="The same, where the second target goes on meanwhile: those cases ask it "
                     "what the target has acknowledged. Its nodes must answer linear reads."),
        click.option("--second-target", type=TARGET,
                     help="Another node of the target's cluster: HOST:PORT; the cases about "
                     "several nodes are asked."),
        click.option("--third-target", type=TARGET,
                     help="One more node: HOST:PORT; those cases ask both others."),
        click.option("--coordinator", type=TARGET,
                     help="A coordinator of consumer groups: HOST:PORT; the cases about groups "
                     "are asked there."),
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
