"""The names of consumers that a server knows by numbers: told to the command, or by the server."""

from collections.abc import Mapping
from typing import Any, Final

import click

from lance_sdk.offsets.consumer_ids import consumer_id

_KEY: Final = "lance_sdk.cli.admin.consumer_names"


def _remember(ctx: click.Context, _: click.Parameter, value: str) -> None:
    names = [name.strip() for name in value.split(",")]
    ctx.meta[_KEY] = {consumer_id(name): name for name in names if name}


consumer_names_option: Final = click.option(
    "--consumer-names",
    envvar="LANCE_CONSUMER_NAMES",
    default="",
    expose_value=False,
    callback=_remember,
    metavar="NAMES",
    help="Names of consumers, such as billing,search, which are shown instead of their "
    "numbers; only needed if the server was not told the names  [env: "
    "LANCE_CONSUMER_NAMES]",
)


def known_name(consumer: Mapping[str, Any]) -> str | None:
    """Return a consumer's name, as far as the server or the command was told it.

    Args:
        consumer: as the server's HTTP port describes it.
    """
    context = click.get_current_context(silent=True)
    names: Mapping[int, str] = context.meta.get(_KEY, {}) if context else {}
    return consumer.get("name") or names.get(consumer["consumer_id"])
