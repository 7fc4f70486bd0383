"""Which server and which topic a command is about, and the settings of the connection."""

import dataclasses
import os
from typing import Any, Final

import click

from lance_sdk.cli import _types
from lance_sdk.cli._settings import Settings
from lance_sdk.url import URL, parse_url
from lance_spec.errors import EncodeError
from lance_spec.names import check_topic_name


def topic_url(target: str | None, settings: Settings) -> URL:
    """Return the URL of a topic.

    Args:
        target: ``lance://host:port/topic``, or a topic's name at the server of ``--url``, or
            None when ``--url`` itself names the topic.
        settings: the shared options.

    Raises:
        ConfigError: when a URL is not allowed or names no topic.
        click.UsageError: when no server is named, or no topic can have the name.
    """
    if target is not None and "://" in target:
        url = parse_url(target)
    else:
        url = parse_url(settings.require_url())
        if target is not None:
            url = dataclasses.replace(url, topic=topic_name(target), topic_id=None)
    url.require_topic()
    return url


def topic_name(text: str) -> str:
    """Return a topic's name in the form in which names are compared (AMB-24).

    Raises:
        click.UsageError: when no topic can have it.
    """
    try:
        return check_topic_name(text)
    except EncodeError as error:
        raise click.UsageError(
            f"{text!r} cannot be a topic's name: expected {error.expected}, got {error.got}"
        ) from None


def client_options(settings: Settings, url: URL | str, **more: Any) -> dict[str, Any]:
    """Return the keyword arguments for a client that the options on the command line ask for.

    What was not said is left out, so that the URL's own settings and the defaults hold.

    Args:
        settings: the shared options.
        url: where the client will connect.
        **more: further settings; those that are None are left out.

    Raises:
        ConfigError: when the URL is not valid.
        click.UsageError: when options about TLS meet a URL without it.
    """
    timeout = settings.timeout
    connect = None if timeout is None else min(timeout, _CONNECT_TIMEOUT)
    chosen = {
        "dialect": settings.dialect,
        "connect_timeout": connect,
        "request_timeout": timeout,
        "close_timeout": timeout,
        **_secrets(settings, parse_url(url)),
        **more,
    }
    return {name: value for name, value in chosen.items() if value is not None}


def _secrets(settings: Settings, url: URL) -> dict[str, str | None]:
    """Return token and TLS files: what an option says, else the URL, else the environment."""
    token = settings.token
    if token is None and url.token is None and (found := os.environ.get("LANCE_TOKEN")):
        token = _types.token(found)
    files = {name: getattr(settings, name) for name in _TLS}
    if url.tls:
        unsaid = [name for name in _TLS if files[name] is None and name not in url.query]
        files |= {name: os.environ.get(f"LANCE_{name.upper()}") for name in unsaid}
    elif said := [name for name in _TLS if files[name] is not None]:
        option = f"--{said[0]}".replace("_", "-")
        raise click.UsageError(f"{option} is for lances:// URLs; {url.server_url()} has no TLS")
    return {"token": token, **files}


_TLS: Final = ("tls_ca", "tls_cert", "tls_key", "tls_server_name")

_CONNECT_TIMEOUT = 10.0
"""Seconds; a longer --timeout is meant for answers, not for a host that is not there."""
