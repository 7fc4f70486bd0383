"""Options about what the kit may do beside asking: restart the target, and ask others."""

from collections.abc import Callable
from typing import Any

import click

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
        click.option("--second-target", type=TARGET,
                     help="Another node of the target's cluster: HOST:PORT; the cases about two "
                     "nodes are asked."),
        click.option("--coordinator", type=TARGET,
                     help="A coordinator of consumer groups: HOST:PORT; the cases about groups "
                     "are asked there."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command
