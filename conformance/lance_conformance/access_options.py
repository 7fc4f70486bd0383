"""Options about getting in at a target: TLS, certificates, tokens, and what may be done there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lance_conformance.engine.access import Access, AccessError, read_token, tls_for
from lance_conformance.engine.run.capabilities import CAPABILITIES, OPTIONAL
from lance_conformance.server.features import FEATURES

Command = Callable[..., Any]
_FILE = click.Path(dir_okay=False, path_type=Path)


def getting_in(command: Command) -> Command:
    """Add the options."""
    options = (
        click.option("--tls", is_flag=True, help="Connect with TLS."),
        click.option("--ca", type=_FILE, metavar="FILE",
                     help="Authorities that may have signed the target's certificate; the "
                     "system's by default."),
        click.option("--cert", type=_FILE, metavar="FILE",
                     help="The kit's own certificate, for a target that demands one."),
        click.option("--key", type=_FILE, metavar="FILE",
                     help="The key of --cert, when it is not in the same file."),
        click.option("--sni", metavar="NAME",
                     help="The name on the target's certificate; the host's by default."),
        click.option("--token", envvar="LANCE_TOKEN", metavar="TOKEN",
                     help="Token for the target, or @FILE that has it; better given in the "
                          "environment, as LANCE_TOKEN, or in a file."),
        click.option("--token-file", type=_FILE, metavar="FILE",
                     help="A file whose first line is the token."),
        click.option("--token-mode", type=click.Choice(["all", "write-only"]), default="all",
                     show_default=True, help="Requests for which the target asks for a token."),
        click.option("--read-only", is_flag=True,
                     help="Send nothing that could change data; the cases that would are skipped."),
        click.option("--can", "capabilities", multiple=True,
                     type=click.Choice(sorted({*CAPABILITIES, *FEATURES})),
                     help="Run the cases about this, although the target was not found to be able "
                          "to do it."),
        click.option("--without", multiple=True,
                     type=click.Choice(sorted({*OPTIONAL, *FEATURES})),
                     help="Leave out what the target does not have on purpose."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def access_from(host: str, given: dict[str, Any]) -> Access:
    """Take what the options of `getting_in` say about the way in out of all that was given.

    Args:
        host: The target's, whose name its certificate must have unless told otherwise.
        given: The parameters of the command.

    Raises:
        click.UsageError: They do not fit together, or a file cannot be used.
    """
    files = {name: given.pop(name) for name in ("ca", "cert", "key")}
    tls, sni = given.pop("tls"), given.pop("sni")
    token, token_file = given.pop("token"), given.pop("token_file")
    mode = given.pop("token_mode")
    if not tls and (sni or any(files.values())):
        raise click.UsageError("--ca, --cert, --key and --sni need --tls")
    if token is not None and token_file is not None:
        raise click.UsageError("give --token or --token-file, not both")
    if token is not None and token.startswith("@"):  # as `lwp` takes it
        token_file, token = Path(token[1:]), None
    try:
        return Access(
            tls=tls_for(**files, server_name=sni or host) if tls else None,
            token=read_token(token_file) if token_file else _encoded(token),
            token_mode=mode,
        )
    except AccessError as problem:
        raise click.UsageError(str(problem)) from problem


def _encoded(token: str | None) -> bytes | None:
    return None if token is None else token.encode()
