"""The argument that names a topic, and what a shell proposes for it."""

from typing import Final

import click

from lance_sdk.cli._settings import Settings
from lance_sdk.cli._target import client_options
from lance_sdk.errors import LanceError

_TIMEOUT: Final = 1.0
"""Seconds for each step; somebody sits there and waits for the Tab key."""


def topic_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the topics of the server that the line or the environment names.

    Args:
        ctx: the command's context.
        incomplete: what stands on the line so far.

    Returns:
        Names that begin so; none where no server answers soon.
    """
    if "://" in incomplete:
        return []
    try:
        return [name for name in _names(ctx.ensure_object(Settings)) if name.startswith(incomplete)]
    except (LanceError, click.UsageError):
        return []  # the command itself will say what is wrong


def _names(settings: Settings) -> list[str]:
    from lance_sdk import Client  # noqa: PLC0415 - the network is loaded when it is needed

    url = settings.require_url()
    timeouts = {"connect_timeout": _TIMEOUT, "request_timeout": _TIMEOUT}
    with Client(url, **{**client_options(settings, url), **timeouts}) as client:
        return [topic.name for topic in client.list_topics()]


topic_argument: Final = click.argument(
    "target",
    required=False,
    metavar="[lance://HOST:PORT/]TOPIC",
    shell_complete=topic_names,
)
"""The topic that a command is about; see `lance_sdk.cli._target.topic_url`."""
