"""Every key of a connect string: its current name, its old one, how its value is read."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lance_sdk._api.arguments.unit_parsing import shorten
from lance_sdk.errors import ConfigError
from lance_sdk.journal._sending.config import InitialConnect
from lance_sdk.journal.config import Durability
from lance_sdk.journal.rejections import Category, Policy

_SIZES: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SIZE: Final = re.compile(r"([0-9]{1,18})(?:([kmgt])i?)?b?", re.IGNORECASE)
_MILLIS: Final = {"": 1.0, "us": 1e-3, "ms": 1.0, "s": 1e3, "m": 60e3, "h": 3600e3, "d": 86400e3}
_DURATION: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([a-z]*)", re.IGNORECASE)
_BOOLS: Final = {
    **dict.fromkeys(("on", "true", "yes", "1"), True),
    **dict.fromkeys(("off", "false", "no", "0"), False),
}


def parse_size(key: str, text: str) -> int:
    """Return the bytes that ``text`` names; units are powers of 1024 (SF-27).

    Raises:
        ConfigError: it is not a size.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ConfigError(f"{key}={shorten(text)}: expected a size such as 4194304, 4M or 4MiB")
    return int(found[1]) << _SIZES[(found[2] or "").lower()]


def parse_millis(key: str, text: str) -> float:
    """Return the seconds that ``text`` names: milliseconds, or a number with a unit.

    Raises:
        ConfigError: it is not a duration.
    """
    found = _DURATION.fullmatch(text)
    unit = found and _MILLIS.get(found[2].lower())
    if found is None or unit is None:
        raise ConfigError(f"{key}={shorten(text)}: expected milliseconds, or 500ms, 5s, 2m")
    return float(found[1]) * unit / 1000


def parse_signed_millis(key: str, text: str) -> float:
    """Return seconds, negative ones where ``text`` begins with a minus sign.

    Raises:
        ConfigError: it is not a duration.
    """
    seconds = parse_millis(key, text.removeprefix("-"))
    return -seconds if text.startswith("-") else seconds


def parse_bool(key: str, text: str) -> bool:
    """Return whether ``text`` says yes (SF-26).

    Raises:
        ConfigError: it says neither.
    """
    if text.lower() not in _BOOLS:
        raise ConfigError(f"{key}={shorten(text)}: expected on or off")
    return _BOOLS[text.lower()]


def parse_number(key: str, text: str) -> int:
    """Return a whole number.

    Raises:
        ConfigError: the text is not a whole number.
    """
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise ConfigError(f"{key}={shorten(text)}: expected a whole number")
    return int(text)


def parse_text(key: str, text: str) -> str:
    """Return the text as it is; it must not be empty.

    Raises:
        ConfigError: it is.
    """
    if not text:
        raise ConfigError(f"{key}: expected a value after '='")
    return text


def or_off(parse: Callable[[str, str], Any], of: str) -> Callable[[str, str], Any]:
    """Return a parser that also takes ``off`` and ``0``, which read as None.

    Args:
        parse: reads everything else.
        of: what that is, for the error.
    """

    def parse_or_off(key: str, text: str) -> Any:
        try:
            return None if text.lower() == "off" else parse(key, text) or None
        except ConfigError:
            raise ConfigError(f"{key}={shorten(text)}: expected {of}, or off") from None

    return parse_or_off


_INITIAL: Final[dict[str, InitialConnect]] = {
    **dict.fromkeys(("off", "false", "no", "0"), "off"),
    **dict.fromkeys(("on", "true", "yes", "1", "sync"), "sync"),
    "async": "async",
}
_SENDER_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")


def _one_of(allowed: Mapping[str, Any]) -> Callable[[str, str], Any]:
    def parse(key: str, text: str) -> Any:
        if text.lower() not in allowed:
            raise ConfigError(f"{key}={shorten(text)}: expected one of {', '.join(allowed)}")
        return allowed[text.lower()]

    return parse


def _sender_id(key: str, text: str) -> str:
    if not _SENDER_ID.fullmatch(text):
        raise ConfigError(
            f"{key}={shorten(text)}: expected letters, digits, '_' and '-'; it names a folder"
        )
    return text


_POLICIES: Final = {
    "auto": None,
    **{each.value: each for each in Policy},
    "halt": Policy.HALT,
    "drop_and_continue": Policy.DROP,
    "retry": Policy.RETRY,
}


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a connect string.

    Attributes:
        parse: reads its value.
        doc: what it does, one sentence.
        default: what holds without it, as text for people.
        replaces: the name that this key had before, still accepted.
        schemes: what it applies to: ``ws`` (QWP), ``lance`` (LWP) or both.
    """

    parse: Callable[[str, str], Any]
    doc: str
    default: str = ""
    replaces: str = ""
    schemes: tuple[str, ...] = ("ws", "lance")


_QWP: Final = ("ws",)
_LWP: Final = ("lance",)

KEYS: Final[Mapping[str, Key]] = {
    # store and forward
    "sf_dir": Key(parse_text, "Folder that holds the slots; without it frames stay in memory."),
    "sender_id": Key(_sender_id, "Name of the slot below sf_dir.", "default"),
    "sf_max_segment_bytes": Key(parse_size, "Size of a segment file.", "4M", "sf_max_bytes"),
    "sf_max_total_bytes": Key(parse_size, "Most bytes of all segments.", "128M, on disk 10G"),
    "sf_durability": Key(
        _one_of({each.value: each for each in Durability}),
        "What a stored frame survives: memory, periodic, flush or append.",
        "memory, toward LWP periodic",
    ),
    "sf_frames": Key(
        _one_of({each: each for each in ("full", "delta")}),
        "What a frame holds: full, everything that a host needs, so that every client can drain "
        "the slot; delta, only symbols that no earlier frame had: only clients of this project "
        "drain it.",
        "full",
        "",
        ("ws",),
    ),
    "sf_sync_interval_millis": Key(
        parse_millis, "Between syncs in periodic durability.", "5000, toward LWP 1000"
    ),
    "sf_append_deadline_millis": Key(parse_millis, "How long storing waits for room.", "30000"),
    "drain_orphans": Key(parse_bool, "Drain slots next to this one that no process holds.", "off"),
    "max_background_drainers": Key(parse_number, "Slots drained at the same time.", "4"),
    "dead_letter_dir": Key(parse_text, "Folder of the dead-letter file.", "the slot"),
    "dead_letter_max_bytes": Key(parse_size, "Most bytes of dead letters.", "1G"),
    # reconnecting
    "reconnect_max_duration_millis": Key(
        parse_millis, "Longest outage before the sender halts.", "no limit"
    ),
    "reconnect_initial_backoff_millis": Key(parse_millis, "First delay of a reconnect.", "100"),
    "reconnect_max_backoff_millis": Key(parse_millis, "Largest delay before jitter.", "5000"),
    "initial_connect_retry": Key(
        _one_of(_INITIAL),
        "Without a server, opening raises after one round (off), goes on trying (sync), or does "
        "not wait (async).",
        "off",
    ),
    "connect_timeout": Key(parse_millis, "For dns, tcp and tls, each.", "10000"),
    "auth_timeout_ms": Key(parse_millis, "For the upgrade or the handshake.", "15000"),
    "close_flush_timeout_millis": Key(
        parse_signed_millis,
        "How long closing waits for acknowledgements; 0 or -1 does not.",
        "5000",
    ),
    # durable acknowledgements
    "request_durable_ack": Key(
        parse_bool, "Count a frame as acknowledged when it is durable.", "off", "", _QWP
    ),
    "durable_ack_keepalive_interval_millis": Key(
        parse_signed_millis, "Between pings while that is awaited; 0 sends none.", "200", "", _QWP
    ),
    # errors
    "error_inbox_capacity": Key(parse_number, "Errors that may wait for the handler.", "256"),
    "on_server_error": Key(
        _one_of(_POLICIES), "Policy of every category that has none of its own.", "auto"
    ),
    **{
        each.option: Key(_one_of(_POLICIES), f"Policy of {each.name}.", "auto") for each in Category
    },
    "max_frame_rejections": Key(
        parse_number, "So many rejections of one frame make a retry pointless,", "4"
    ),
    "poison_min_escalation_window_millis": Key(
        parse_millis, "if they took at least so long.", "5000"
    ),
    # the connection
    "addr": Key(parse_text, "host[:port], several with commas or by repeating the key."),
    "topic": Key(parse_text, "Topic that records go to.", "", "", _LWP),
    "on_missing_topic": Key(
        _one_of({each: each for each in ("create", "hold", "dead_letter")}),
        "What becomes of frames whose topic the server does not have.",
        "hold",
        "",
        _LWP,
    ),
    "compression": Key(
        _one_of({each: each for each in ("none", "lz4", "auto")}),
        "Of frames on the way, never in the slot: lz4 toward servers that understand it, auto "
        "where it makes a frame smaller.",
        "none",
        "",
        _LWP,
    ),
    "max_in_flight": Key(
        parse_number, "Frames sent that the server has not taken.", "65536, toward LWP 64"
    ),
    "request_timeout": Key(
        parse_millis,
        "Without any frame being taken for so long, another connection is tried.",
        "120000",
        "",
        ("ws",),
    ),
    "username": Key(parse_text, "For HTTP Basic authentication.", "", "", _QWP),
    "password": Key(parse_text, "With username.", "", "", _QWP),
    "token": Key(parse_text, "Bearer token, or LWP token."),
    "tls_verify": Key(
        _one_of({"on": True, "unsafe_off": False}), "Whether certificates are checked.", "on"
    ),
    "tls_roots": Key(parse_text, "File of trusted certificates.", "the system's"),
    "tls_roots_password": Key(parse_text, "Password of a PKCS #12 file in tls_roots."),
    # rows
    "auto_flush": Key(parse_bool, "Whether rows are flushed by themselves.", "on", "", _QWP),
    "auto_flush_rows": Key(
        or_off(parse_number, "a number of rows"), "Rows that fill a batch.", "1000", "", _QWP
    ),
    "auto_flush_bytes": Key(
        or_off(parse_size, "a size"), "Bytes that fill a batch.", "off", "", _QWP
    ),
    "auto_flush_interval": Key(
        or_off(parse_millis, "a duration"), "Longest age of a batch.", "100", "", _QWP
    ),
    "init_buf_size": Key(parse_size, "First size of the row buffer.", "64K", "", _QWP),
    "max_buf_size": Key(parse_size, "Largest size of the row buffer.", "100M", "", _QWP),
    "max_name_len": Key(parse_number, "Longest table and column name.", "127", "", _QWP),
    "max_schemas_per_connection": Key(parse_number, "Kept for old strings.", "65535", "", _QWP),
}
"""Every key, by its current name."""

RENAMED: Final = {key.replaces: name for name, key in KEYS.items() if key.replaces}
SECRETS: Final = {"password", "token", "tls_roots_password"}
FOREIGN: Final = frozenset(
    [
        "zone",
        "target",
        "compression",
        "compression_level",
        "client_id",
        "lazy_connect",
        "transaction",
        "connection_listener_inbox_capacity",
        "catch_up_cap_gap_escalation_window_millis",
        "pool_size",
        "pool_min_size",
        "pool_max_size",
        "pool_acquire_timeout_millis",
        "protocol_version",
        "retry_timeout",
        "request_min_throughput",
        "tls_ca",
        "bind_interface",
        "failover",
        "initial_credit",
        "max_batch_rows",
        "path",
    ]
)
"""Keys that other published clients know and that mean nothing to the schemes without them."""
