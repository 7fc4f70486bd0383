"""Builds the server's settings from options."""

import os
import socket
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from lance_server.config.access import read_access, read_tokens
from lance_server.config.file import SettingsFile
from lance_server.config.settings import OtelConfig, ServerConfig
from lance_server.errors import ConfigError
from lance_server.runtime.circuit_breaker import BreakerPolicy
from lance_server.security.tls import TlsConfig
from lance_server.security.tokens import AuthConfig


def server_config(options: Mapping[str, Any], file: SettingsFile) -> ServerConfig:
    """Return the configuration that options and a file stand for.

    Raises:
        ConfigError: a value makes no sense, or a part of a whole is missing.
    """
    names = {each.name for each in fields(ServerConfig)}
    plain = {name: value for name, value in options.items() if name in names}
    node_id = options["node_id"]
    return ServerConfig(
        **{
            **plain,
            "node_id": default_node_id() if node_id is None else node_id,
            "tls": _tls(options, enabled=_enabled(file, "tls")),
            "auth": _auth(options, file, enabled=_enabled(file, "auth")),
            "access": read_access(file),
            "otel": _otel(options),
            "breaker": BreakerPolicy(
                failure_threshold=options["breaker_failures"],
                reset_timeout=options["breaker_reset"],
            ),
        }
    )


def default_node_id(environment: Mapping[str, str] = os.environ) -> int:
    """Return the number at the end of the host's name, or 0 (design section 10.7)."""
    return host_number(environment) or 0


def host_number(environment: Mapping[str, str] = os.environ) -> int | None:
    """Return the number at the end of the host's name, or None where there is none."""
    name = environment.get("HOSTNAME") or socket.gethostname()
    suffix = name.rpartition("-")[2]
    is_number = suffix != name and suffix.isdecimal() and int(suffix) < 2**16
    return int(suffix) if is_number else None


def _enabled(file: SettingsFile, table: str) -> bool | None:
    """Return whether a table switches itself on or off, or None when it does not say."""
    value = file.table(table).get("enabled")
    if value is not None and not isinstance(value, bool):
        raise ConfigError(f"{file.path}: {table}.enabled must be true or false, not {value!r}")
    return value


def _tls(options: Mapping[str, Any], *, enabled: bool | None) -> TlsConfig | None:
    cert, key = options["tls_cert_path"], options["tls_key_path"]
    if enabled is False:
        return None
    if cert is None and key is None:
        asked = enabled or options["tls_client_ca_path"] or options["tls_require_client_cert"]
        if asked:
            raise ConfigError("TLS needs a certificate: set tls.cert_path and tls.key_path")
        return None
    if cert is None or key is None:
        missing = "tls.cert_path" if cert is None else "tls.key_path"
        raise ConfigError(f"{missing} is missing: TLS needs a certificate and its key")
    return TlsConfig(
        cert_path=cert,
        key_path=key,
        client_ca_path=options["tls_client_ca_path"],
        require_client_cert=options["tls_require_client_cert"],
    )


def _otel(options: Mapping[str, Any]) -> OtelConfig | None:
    if options["otel_endpoint"] is None:
        return None
    return OtelConfig(
        endpoint=options["otel_endpoint"],
        interval=options["otel_interval"],
        sample_rate=options["otel_sample_rate"],
    )


def _auth(
    options: Mapping[str, Any], file: SettingsFile, *, enabled: bool | None
) -> AuthConfig | None:
    tokens, path = read_tokens(file), options["auth_token_file"]
    if enabled is False:
        return None
    if not tokens and path is None and not enabled and not options["auth_write_only"]:
        return None
    return AuthConfig(tokens=tokens, token_file=path, write_only=options["auth_write_only"])
