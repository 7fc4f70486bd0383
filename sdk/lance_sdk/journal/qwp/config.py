"""Settings of a row sender, from connect strings and arguments."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from lance_sdk._protocol.hosts import Endpoint
from lance_sdk.errors import ConfigError
from lance_sdk.journal._sending.config import ForwardConfig
from lance_sdk.journal._sending.tls import context_of
from lance_sdk.journal._slot.symbol_file import NAME
from lance_sdk.journal.connect_string import ConnectString, parse_connect_string
from lance_sdk.journal.qwp._connection.upgrade import Credentials
from lance_sdk.journal.qwp.writer import RowOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class QwpSettings:
    """How a transport connects.

    Attributes:
        endpoints: the hosts, in order of preference.
        tls: whether to speak TLS.
        credentials: who the sender is.
        durable: ask for durable acknowledgements, and let only them settle frames.
        keepalive: seconds without traffic after which a ping asks for durable acknowledgements
            that are due; 0 or less sends none.
        connect_timeout: seconds for each of name resolution, TCP and TLS.
        upgrade_timeout: seconds for the answer to the upgrade.
        answer_timeout: seconds without any bytes, while frames are unanswered, after which a
            ping is sent, and again as many until the connection counts as dead.
        ack_timeout: seconds without any frame being taken, while one is on the way, after which
            another connection is tried, although the host answers pings (``request_timeout``).
        retry_initially: whether hosts are tried again while none could ever be used.

    Raises:
        ConfigError: a value is out of range.
    """

    endpoints: Sequence[Endpoint]
    tls: bool = False
    credentials: Credentials = field(default_factory=Credentials)
    durable: bool = False
    keepalive: float = 0.2
    connect_timeout: float = 15.0
    upgrade_timeout: float = 15.0
    answer_timeout: float = 30.0
    ack_timeout: float = 120.0
    retry_initially: bool = True

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise ConfigError("addr: at least one host is needed, for example addr=localhost:9000")
        if len(set(self.endpoints)) != len(self.endpoints):
            raise ConfigError("addr: a host is named twice")
        for name in ("connect_timeout", "upgrade_timeout", "answer_timeout", "ack_timeout"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name}={getattr(self, name)}: expected more than 0 seconds")


DEFAULT_PORT: Final = 9000
VARIABLE: Final = "QDB_CLIENT_CONF"
"""Environment variable that clients of QuestDB read their connect string from."""
_SCHEMES: Final = ("ws", "wss")


@dataclass(frozen=True, slots=True, kw_only=True)
class QwpConfig:
    """Everything a row sender needs.

    Attributes:
        target: where to, without secrets.
        forward: slot, policies and reconnecting.
        carrier: how to connect.
        rows: when rows are flushed, and limits.
    """

    target: str
    forward: ForwardConfig
    carrier: QwpSettings
    rows: RowOptions


def from_connect_string(text: str, overrides: Mapping[str, Any]) -> QwpConfig:
    """Return the settings that a connect string asks for.

    Args:
        text: ``ws::addr=host:port;...`` or ``wss::...``.
        overrides: fields of `ForwardConfig` that a string cannot express.

    Raises:
        ConfigError: naming the key at fault.
    """
    parsed = parse_connect_string(text, _SCHEMES)
    with parsed.named():
        return _config(parsed, overrides)


def _config(parsed: ConnectString, overrides: Mapping[str, Any]) -> QwpConfig:
    forward = parsed.forward_config(**{"tls": context_of(parsed), **overrides})
    journal = replace(forward.journal, synced_before_trim=(NAME,))
    scheme = "wss" if parsed.tls else "ws"
    return QwpConfig(
        target=f"{scheme}::addr={','.join(parsed.addresses)}",
        forward=replace(forward, journal=journal),
        carrier=_settings(parsed, forward),
        rows=_rows(parsed),
    )


def from_environment(overrides: Mapping[str, Any]) -> QwpConfig:
    """Return the settings of the connect string in ``QDB_CLIENT_CONF``.

    Raises:
        ConfigError: the variable is not set, or its string has a fault.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        raise ConfigError(
            f"the environment variable {VARIABLE} is not set; "
            f"set it to a connect string such as ws::addr=localhost:{DEFAULT_PORT};"
        )
    return from_connect_string(text, overrides)


def _settings(parsed: ConnectString, forward: ForwardConfig) -> QwpSettings:
    return QwpSettings(
        endpoints=[parse_endpoint(each) for each in parsed.addresses],
        tls=parsed.tls,
        credentials=Credentials(
            username=parsed.get("username"),
            password=parsed.get("password"),
            token=parsed.get("token"),
        ),
        durable=parsed.get("request_durable_ack", False),
        keepalive=parsed.get("durable_ack_keepalive_interval_millis", 0.2),
        connect_timeout=parsed.get("connect_timeout", 10.0),
        upgrade_timeout=parsed.get("auth_timeout_ms", 15.0),
        ack_timeout=parsed.get("request_timeout", 120.0),
        retry_initially=forward.initial_connect != "off",
    )


def _rows(parsed: ConnectString) -> RowOptions:
    return RowOptions(
        auto_flush=parsed.get("auto_flush", True),
        auto_flush_rows=parsed.get("auto_flush_rows", 1000),
        auto_flush_bytes=parsed.get("auto_flush_bytes"),
        auto_flush_interval=parsed.get("auto_flush_interval", 0.1),
        max_buffer=parsed.get("max_buf_size", 100 << 20),
        max_name=parsed.get("max_name_len", 127),
        delta_frames=parsed.get("sf_frames", "full") == "delta",
    )


def parse_endpoint(text: str) -> Endpoint:
    """Read ``host``, ``host:port``, ``[IPv6]`` or ``[IPv6]:port``.

    Raises:
        ConfigError: it is something else.
    """
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        port, valid = rest.removeprefix(":"), bool(bracket) and rest[:1] in {"", ":"}
    else:
        host, colon, port = text.partition(":")
        valid = ":" not in port and bool(port) is bool(colon)
    number = int(port) if port.isascii() and port.isdecimal() and len(port) < 6 else None
    if port == "" and valid:
        number = DEFAULT_PORT
    if not host or not valid or number is None or not 0 < number < 2**16:
        raise ConfigError(f"addr={text!r}: expected host, host:port or [IPv6]:port")
    return Endpoint(host, number)
