"""How a store-and-forward sender over LWP is set up, by arguments or by connect string."""

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from lance_sdk._api.arguments.unit_parsing import seconds
from lance_sdk._io.tls import TlsSettings
from lance_sdk._protocol.produce.compression import Compression
from lance_sdk.config import ClientConfig
from lance_sdk.errors import ConfigError
from lance_sdk.journal._sending.config import ForwardConfig
from lance_sdk.journal._sending.tls import context_of
from lance_sdk.journal.config import JournalConfig, SlotKind
from lance_sdk.journal.connect_string import ConnectString, parse_connect_string
from lance_sdk.journal.lwp.topic_ids import ON_MISSING, OnMissing
from lance_sdk.url import URL, parse_url
from lance_spec.dialect import DIALECTS
from lance_spec.limits import RECORD_HEADER_SIZE
from lance_spec.messages.store_forward import StoredBatch

LARGEST_BATCH: Final = min(each.max_payload for each in DIALECTS.values())
"""Most bytes of records in one frame: what every dialect takes (SF-32)."""
_ENDLESS: Final = 1e9
_NOT_FORWARD: Final = {"path", "journal", "tls", "token", "hooks", "backoff_base", "backoff_cap"}
FORWARD_OPTIONS: Final = {each.name for each in fields(ForwardConfig)} - _NOT_FORWARD
"""Fields of `ForwardConfig` that are options of a sender; the other options are the client's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LwpSettings:
    """Everything a sender over LWP needs.

    Attributes:
        url: the servers, and the topic of records that name none.
        forward: slot, policies and reconnecting.
        client: settings of the connections.
        on_missing_topic: what becomes of frames whose topic does not exist.
        allow_unsafe_types: send record types to servers that cannot keep them (AMB-13).
        compression: ``lz4`` compresses frames on the way to servers that understand it, ``auto``
            those that get smaller (AMB-20); in the slot they are never compressed.
    """

    url: URL
    forward: ForwardConfig
    client: ClientConfig
    on_missing_topic: OnMissing = "hold"
    allow_unsafe_types: bool = False
    compression: Compression = "none"

    def __post_init__(self) -> None:
        if self.forward.journal.kind is not SlotKind.LWP:
            raise ConfigError("journal: a sender over LWP needs kind=SlotKind.LWP (SF-31)")
        if self.on_missing_topic not in ON_MISSING:
            raise ConfigError(
                f"on_missing_topic={self.on_missing_topic!r}: expected one of "
                f"{', '.join(ON_MISSING)}"
            )

        if self.compression not in {"none", "lz4", "auto"}:
            raise ConfigError(f"compression={self.compression!r}: expected 'none', 'lz4' or 'auto'")
        if self.batch_limit <= RECORD_HEADER_SIZE:
            raise ConfigError(
                f"segment_bytes={self.forward.journal.segment_bytes}: no record fits in a frame; "
                "raise it (SF-33)"
            )

    @property
    def batch_limit(self) -> int:
        """Most bytes of TLV records that fit in one frame (SF-32, SF-33)."""
        return min(LARGEST_BATCH, self.forward.journal.frame_limit - StoredBatch.MIN_SIZE)


def from_arguments(
    url: str | URL,
    path: str | os.PathLike[str] | None,
    journal: JournalConfig | None,
    options: Mapping[str, Any],
    **more: Any,
) -> LwpSettings:
    """Return the settings of keyword arguments.

    Args:
        url: the servers, and the topic of records that name none.
        path: the slot's folder, or None.
        journal: settings of the ring, or None.
        options: fields of `ForwardConfig`, and of `lance_sdk.config.ClientConfig`.
        **more: the other fields of `LwpSettings`.

    Raises:
        ConfigError: naming the option at fault.
    """
    parsed = parse_url(url)
    _refuse_unknown(options)
    mine = {name: value for name, value in options.items() if name in FORWARD_OPTIONS}
    theirs = {name: value for name, value in options.items() if name not in mine}
    config = parsed.configure(ClientConfig, theirs)
    forward = ForwardConfig(
        path=None if path is None else Path(path),
        journal=journal or JournalConfig(),
        **driver_settings(config),
        backoff_base=seconds("backoff_base", config.backoff_base),
        backoff_cap=seconds("backoff_cap", config.backoff_cap),
        **mine,
    )
    return LwpSettings(
        url=parsed,
        forward=forward,
        client=_patient(config, forward),
        **more,
    )


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    known = FORWARD_OPTIONS | {each.name for each in fields(ClientConfig)}
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = (
                f": did you mean {near[0]!r}?" if near else f"; it has {', '.join(sorted(known))}"
            )
            raise ConfigError(f"a store-and-forward sender has no option {name!r}{hint}")


def from_connect_string(text: str, **overrides: Any) -> LwpSettings:
    """Return the settings of a connect string such as ``lance::addr=localhost;topic=a;``.

    Args:
        text: the connect string.
        **overrides: fields of `ForwardConfig` that a string cannot express.

    Raises:
        ConfigError: naming the key at fault.
    """
    parsed = parse_connect_string(text, ("lance", "lances"))
    with parsed.named(request_timeout="auth_timeout_ms"):
        return _parsed(parsed, overrides)


def _parsed(parsed: ConnectString, overrides: Mapping[str, Any]) -> LwpSettings:
    context = context_of(parsed)
    forward = parsed.forward_config(**{"tls": context, **overrides})
    return LwpSettings(
        url=_url(parsed),
        forward=forward,
        client=_patient(
            ClientConfig(
                connect_timeout=parsed.get("connect_timeout", 10.0),
                request_timeout=parsed.get("auth_timeout_ms", 15.0),
                backoff_base=min(forward.backoff_base, forward.backoff_cap),
                backoff_cap=forward.backoff_cap,
                token=parsed.get("token"),
                tls=context,
            ),
            forward,
        ),
        on_missing_topic=parsed.get("on_missing_topic", "hold"),
        compression=parsed.get("compression", "none"),
    )


def _url(parsed: ConnectString) -> URL:
    url = parse_url(f"{parsed.scheme}://{','.join(parsed.addresses)}")
    topic = parsed.get("topic")
    return url if topic is None else replace(url, topic=topic)


def driver_settings(config: ClientConfig) -> dict[str, Any]:
    """Return the fields of `ForwardConfig` that say how its driver connects."""
    return {
        "tls": TlsSettings(
            context=config.tls,
            ca=config.tls_ca,
            cert=config.tls_cert,
            key=config.tls_key,
            password=config.tls_key_password,
            server_name=config.tls_server_name,
        ),
        "token": config.token if callable(config.token) else None,
        "hooks": config.hooks,
    }


def _patient(config: ClientConfig, forward: ForwardConfig) -> ClientConfig:
    """Return settings whose first connection is tried for as long as `ForwardConfig` says."""
    if forward.initial_connect == "off":
        return config
    endless = forward.initial_connect == "async" or forward.reconnect_budget is None
    return config.replace(open_timeout=_ENDLESS if endless else forward.reconnect_budget)
