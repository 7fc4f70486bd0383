"""Connect strings: ``ws::addr=localhost:9000;sf_dir=/var/lib/app;``, every key in one table.

::

    scheme::key=value;key=value;        a ';' in a value is written ';;'

Schemes are ``ws`` and ``wss`` (QWP over WebSocket) and ``lance`` and ``lances`` (LWP). All keys
take the same notations: sizes as ``4194304``, ``4M``, ``4mb`` or ``4MiB`` (always powers of
1024), durations as milliseconds or with a unit (``500``, ``500ms``, ``5s``), switches as
``on``/``off``, ``true``/``false``, ``yes``/``no`` or ``1``/``0`` (SF-26, SF-27).

A key that nobody knows is refused with a suggestion. A key that other published clients know and
this one has no use for is accepted with a warning (SF-28).
"""

import difflib
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lance_sdk._api.arguments.unit_parsing import shorten
from lance_sdk.errors import ConfigError
from lance_sdk.journal._sending.config import ForwardConfig
from lance_sdk.journal._sending.outbox import OutboxLimits
from lance_sdk.journal.config import JournalConfig, SlotKind
from lance_sdk.journal.connect_keys import FOREIGN, KEYS, RENAMED, SECRETS, Key
from lance_sdk.journal.rejections import (
    DEFAULT_POLICIES,
    QWP_FORCED,
    QWP_POLICIES,
    Category,
    Policy,
)

__all__ = ["KEYS", "ConnectString", "Key", "parse_connect_string"]

SCHEMES: Final = {"ws": "ws", "wss": "ws", "lance": "lance", "lances": "lance"}
"""Each scheme, and what its keys are marked with."""
_FIELDS: Final = {
    "ack_timeout": "request_timeout",
    "append_timeout": "sf_append_deadline_millis",
    "backoff_base": "reconnect_initial_backoff_millis",
    "backoff_cap": "reconnect_max_backoff_millis",
    "close_timeout": "close_flush_timeout_millis",
    "dead_letter_bytes": "dead_letter_max_bytes",
    "dwell": "poison_min_escalation_window_millis",
    "frames": "max_in_flight",
    "max_buffer": "max_buf_size",
    "max_drainers": "max_background_drainers",
    "max_name": "max_name_len",
    "max_total_bytes": "sf_max_total_bytes",
    "reconnect_budget": "reconnect_max_duration_millis",
    "segment_bytes": "sf_max_segment_bytes",
    "strikes": "max_frame_rejections",
    "sync_interval": "sf_sync_interval_millis",
    "upgrade_timeout": "auth_timeout_ms",
}
"""Fields of settings, and the key that sets each where the two have different names."""
_IN_TEXT: Final = re.compile(r"\b(?:[a-z]+_[a-z_]+\b|(?:dwell|frames|strikes)(?==))")


@dataclass(frozen=True, slots=True)
class ConnectString:
    """A parsed connect string; ``repr`` hides its secrets.

    Attributes:
        scheme: ``ws``, ``wss``, ``lance`` or ``lances``.
        addresses: ``host[:port]`` as written, in order.
        values: the other keys under their current names, with parsed values.
        written: the names under which these keys were written.
    """

    scheme: str
    addresses: tuple[str, ...]
    values: Mapping[str, Any] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = {k: "***" if k in SECRETS else v for k, v in self.values.items()}
        return f"ConnectString({self.scheme}::addr={','.join(self.addresses)}, {shown})"

    @property
    def tls(self) -> bool:
        """Whether the scheme asks for TLS."""
        return self.scheme in {"wss", "lances"}

    def get(self, key: str, default: Any = None) -> Any:
        """Return a key's value, or ``default`` where it was not given.

        Raises:
            KeyError: no such key exists.
        """
        if key not in KEYS:
            raise KeyError(key)
        return self.values.get(key, default)

    @contextmanager
    def named(self, **more: str) -> Iterator[None]:
        """Let errors about settings name the keys that were written.

        Args:
            **more: further fields of settings, and their keys.
        """

        def key(found: re.Match[str]) -> str:
            current = {**_FIELDS, **more}.get(found[0], found[0])
            return self.written.get(current, current)

        try:
            yield
        except ConfigError as error:
            raise ConfigError(_IN_TEXT.sub(key, str(error))) from None

    def forward_config(self, **overrides: Any) -> ForwardConfig:
        """Return the settings of a sender.

        Args:
            **overrides: fields of `ForwardConfig` that the string cannot express, such as
                ``error_handler``.

        Raises:
            ConfigError: values that do not fit together.
        """
        with self.named():
            return self._forward_config(overrides)

    def _forward_config(self, overrides: Mapping[str, Any]) -> ForwardConfig:
        kind = SlotKind.QWP if self.scheme in {"ws", "wss"} else SlotKind.LWP
        get = self.values.get
        letters = get("dead_letter_dir")
        fields: dict[str, Any] = {
            "path": self._slot(),
            "journal": self._journal(kind),
            "limits": self._limits(),
            "initial_connect": get("initial_connect_retry", "off"),
            "backoff_base": get("reconnect_initial_backoff_millis", 0.1),
            "backoff_cap": get("reconnect_max_backoff_millis", 5.0),
            "reconnect_budget": get("reconnect_max_duration_millis"),
            "close_timeout": get("close_flush_timeout_millis", 5.0),
            "error_inbox_capacity": get("error_inbox_capacity", 256),
            "dead_letter_dir": None if letters is None else Path(letters),
            "dead_letter_bytes": get("dead_letter_max_bytes", 1 << 30),
            "drain_orphans": get("drain_orphans", False),
            "max_drainers": get("max_background_drainers", 4),
        }
        return ForwardConfig(**{**fields, **overrides})

    def _slot(self) -> Path | None:
        folder = self.values.get("sf_dir")
        return None if folder is None else Path(folder) / self.values.get("sender_id", "default")

    def _journal(self, kind: SlotKind) -> JournalConfig:
        get = self.values.get
        said: dict[str, Any] = {}
        if "sf_durability" in self.values:
            said["durability"] = get("sf_durability")
        return JournalConfig(
            kind=kind,
            **said,
            segment_bytes=get("sf_max_segment_bytes", 4 << 20),
            max_total_bytes=get("sf_max_total_bytes"),
            sync_interval=get("sf_sync_interval_millis", 5.0 if kind is SlotKind.QWP else 1.0),
            append_timeout=get("sf_append_deadline_millis", 30.0),
        )

    def _limits(self) -> OutboxLimits:
        everywhere = self.values.get("on_server_error")
        qwp = self.scheme in {"ws", "wss"}
        policies: dict[Category, Policy] = {}
        for each in Category:
            own = self.values.get(each.option)
            if qwp and each in QWP_FORCED:
                _check_forced(each, own)
                own = None
            # One key for all means what a server says; what was never sent has its own policy.
            general = each not in _LOCAL and not (qwp and each in QWP_FORCED)
            said = everywhere if own is None and general else own
            if said is not None:
                policies[each] = said
        return OutboxLimits(
            frames=self.values.get("max_in_flight", _QWP_WINDOW if qwp else 64),
            bytes=_QWP_BYTES if qwp else OutboxLimits().bytes,
            policies=policies,
            defaults=self._qwp_policies() if qwp else DEFAULT_POLICIES,
            strikes=self.values.get("max_frame_rejections", 4),
            dwell=self.values.get("poison_min_escalation_window_millis", 5.0),
        )

    def _qwp_policies(self) -> Mapping[Category, Policy]:
        """Return section 14's table; in memory there is no place for dead letters."""
        if "sf_dir" in self.values or "dead_letter_dir" in self.values:
            return QWP_POLICIES
        return {
            each: Policy.DROP if policy is Policy.DEAD_LETTER else policy
            for each, policy in QWP_POLICIES.items()
        }


def _check_forced(category: Category, policy: Policy | None) -> None:
    if policy is not None and policy is not Policy.HALT:
        raise ConfigError(
            f"{category.option}={policy.value}: this always halts the sender "
            "(SF client section 14); leave the key out, or say terminal"
        )


_QWP_WINDOW: Final = 1 << 16
"""Frames on the way to a QWP host; it may acknowledge many at once, and late."""
_QWP_BYTES: Final = 1 << 30
_LOCAL: Final = {Category.UNSUPPORTED, Category.DAMAGED}


def parse_connect_string(text: str, schemes: Collection[str] = SCHEMES) -> ConnectString:
    """Read a connect string.

    Args:
        text: the string.
        schemes: the schemes that the caller can use.

    Raises:
        ConfigError: naming the key at fault; secrets are never shown.
    """
    scheme, separator, rest = text.partition("::")
    if "\0" in text:
        raise ConfigError("a connect string must not contain NUL")
    if not separator or scheme not in schemes:
        shown = ", ".join(f"{each}::" for each in schemes)
        raise ConfigError(f"a connect string must begin with one of {shown}")
    addresses: list[str] = []
    values: dict[str, Any] = {}
    written: dict[str, str] = {}
    for name, value in _pairs(rest):
        if name == "addr":
            addresses += _addresses(value, addresses)
        elif name in FOREIGN and not _applies(name, scheme):
            warnings.warn(
                f"connect string key {name!r} means nothing to this client and is ignored",
                UserWarning,
                stacklevel=2,
            )
        else:
            _take(name, value, scheme, values)
            written[RENAMED.get(name, name)] = name
    if not addresses:
        raise ConfigError(f"a connect string must name a server: {scheme}::addr=host:port;")
    result = ConnectString(scheme, tuple(addresses), values, written)
    _check_together(result)
    return result


def _pairs(text: str) -> list[tuple[str, str]]:
    """Split ``key=value;key=value;``, where ``;;`` stands for a semicolon in a value."""
    pairs = []
    for part in _parts(text):
        if not part.strip():
            continue
        name, equals, value = part.partition("=")
        name = name.strip()
        if not equals:
            raise ConfigError(f"connect string: expected key=value, got {shorten(name)}")
        pairs.append((name, value))
    return pairs


def _parts(text: str) -> list[str]:
    return [part.replace("\0", ";") for part in text.replace(";;", "\0").split(";")]


def _addresses(value: str, known: list[str]) -> list[str]:
    found = [each.strip() for each in value.split(",")]
    for each in found:
        if not each or known.count(each) + found.count(each) > 1:
            raise ConfigError(
                f"addr={shorten(value)}: expected different hosts, none of them empty"
            )
    return found


def _take(name: str, value: str, scheme: str, values: dict[str, Any]) -> None:
    current = RENAMED.get(name, name)
    key = KEYS.get(current)
    if key is None:
        raise ConfigError(f"unknown connect string key {name!r}{_hint(name)}")
    if not _applies(current, scheme):
        raise ConfigError(f"{name} does not apply to {scheme}::")
    if current in values:
        raise ConfigError(f"connect string key {name!r} is given twice")
    values[current] = key.parse(name, value)


def _applies(name: str, scheme: str) -> bool:
    key = KEYS.get(name)
    return key is not None and SCHEMES[scheme] in key.schemes


def _hint(name: str) -> str:
    near = difflib.get_close_matches(name, [*KEYS, *RENAMED], n=1)
    return f": did you mean {near[0]!r}?" if near else ""


def _check_together(parsed: ConnectString) -> None:
    values = parsed.values
    if "token" in values and "username" in values:
        raise ConfigError("token and username exclude each other")
    if ("username" in values) != ("password" in values):
        raise ConfigError("username and password belong together")
    if "tls_roots_password" in values and "tls_roots" not in values:
        raise ConfigError("tls_roots_password belongs to tls_roots")
    if not parsed.tls and {"tls_roots", "tls_verify"} & values.keys():
        raise ConfigError(f"tls_* keys need {parsed.scheme}s::")
    if "sf_dir" not in values and values.get("drain_orphans"):
        raise ConfigError("drain_orphans needs sf_dir")
