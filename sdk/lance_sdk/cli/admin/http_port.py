"""Requests to a server's HTTP port, and what went wrong as one line."""

import json
import os
from http import HTTPStatus
from typing import Any, Final

from lance_sdk._errors.advice import words
from lance_sdk.cli._settings import current_settings
from lance_sdk.cli.console.exit_codes import ExitCode, Failure, printable

TIMEOUT: Final = 30.0
"""Seconds to wait for an answer."""


def chosen_token() -> str | None:
    """Return the token for the server: what the option says, else the environment."""
    return current_settings().token or os.environ.get("LANCE_TOKEN")


def ask(
    address: str,
    path: str,
    *,
    token: str | None,
    method: str = "GET",
    body: str | None = None,
    timeout: float = TIMEOUT,
    hint: str,
) -> Any:
    """Return the JSON that a server's HTTP port answers.

    Args:
        address: ``HOST:PORT`` of the server's ``--http`` option.
        path: what is asked for.
        token: to show to the server, as `chosen_token` has it, or None.
        method: of the request.
        body: JSON to send, or None.
        timeout: seconds for each step of the exchange.
        hint: how an address is named, for the message.

    Raises:
        Failure: when it does not answer, refuses, or answers something else than JSON.
    """
    from http.client import (  # noqa: PLC0415 - it loads TLS, which no help needs
        HTTPConnection,
        HTTPException,
    )

    headers = {"content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    try:
        connection = HTTPConnection(address, timeout=timeout)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
        finally:
            connection.close()
    except (OSError, HTTPException, UnicodeError) as error:  # the last: a host that no DNS knows
        raise Failure(
            f"{printable(address)} does not answer: {words(error)}; name the server's HTTP port, "
            f"{hint}",
            ExitCode.UNREACHABLE,
        ) from error
    if response.status != HTTPStatus.OK:
        raise Failure(f"{printable(address)} refused: {printable(text.strip())}")
    try:
        return json.loads(text)
    except ValueError as error:
        raise Failure(
            f"{printable(address)} answers something else than JSON at {path}; is it the HTTP "
            f"port of a LANCE server? Name it {hint}"
        ) from error
