"""How a store-and-forward sender is set up, whatever protocol carries its frames."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from lance_sdk._api.arguments.unit_parsing import shorten
from lance_sdk._io.tls import Tls
from lance_sdk._io.tokens import TokenSource
from lance_sdk.errors import ConfigError
from lance_sdk.hooks import Hooks
from lance_sdk.journal._sending.error_queue import SMALLEST, ErrorHandler
from lance_sdk.journal._sending.outbox import OutboxLimits
from lance_sdk.journal.config import JournalConfig
from lance_sdk.journal.rejections import Category, Policy
from lance_sdk.journal.types import DrainerListener

InitialConnect: TypeAlias = Literal["off", "sync", "async"]

_INITIAL: Final = ("off", "sync", "async")
_DURATIONS: Final = ("backoff_base", "backoff_cap", "reconnect_budget", "close_timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardConfig:
    """Settings of one sender.

    Attributes:
        path: the slot's folder; None keeps frames in memory.
        journal: settings of the ring.
        limits: windows and policies towards the network.
        initial_connect: what opening does while no server can be used: ``off`` tries every host
            once and raises, ``sync`` goes on trying until ``reconnect_budget`` is over, ``async``
            does not wait for a connection at all.
        backoff_base: first delay between attempts, in seconds (AMB-42).
        backoff_cap: largest delay before jitter doubles it at most; a larger ``backoff_base`` is
            cut to it.
        reconnect_budget: seconds without a usable connection after which the sender halts; None
            means that it never does.
        close_timeout: seconds that closing waits for acknowledgements; 0 or less does not wait.
        error_handler: called with every `Rejection` on a thread of its own; None logs.
        error_inbox_capacity: rejections that may wait for the handler.
        dead_letter_dir: where dead letters go; None means the slot's folder.
        dead_letter_bytes: most bytes of dead letters; beyond them the sender halts.
        drain_orphans: drain slots beside this one that nobody holds.
        max_drainers: orphans that are drained at the same time.
        drainer_listener: is told what drainers do.
        tls: how to speak TLS; None means the system's trust store.
        token: returns a token for each connection, where the protocol has such.
        hooks: what is told of connections, see `lance_sdk.hooks`.

    Raises:
        ConfigError: a value is out of range.
    """

    path: Path | None = None
    journal: JournalConfig = field(default_factory=JournalConfig)
    limits: OutboxLimits = field(default_factory=OutboxLimits)
    initial_connect: InitialConnect = "async"
    backoff_base: float = 0.1
    backoff_cap: float = 5.0
    reconnect_budget: float | None = None
    close_timeout: float = 5.0
    error_handler: ErrorHandler | None = None
    error_inbox_capacity: int = 256
    dead_letter_dir: Path | None = None
    dead_letter_bytes: int = 1 << 30
    drain_orphans: bool = False
    max_drainers: int = 4
    drainer_listener: DrainerListener | None = None
    tls: Tls = None
    token: TokenSource | None = None
    hooks: Hooks | Sequence[Hooks] = ()

    def __post_init__(self) -> None:
        for name in _DURATIONS:
            value = getattr(self, name)
            if isinstance(value, timedelta):
                object.__setattr__(self, name, value.total_seconds())
        self._check_kinds()
        if self.initial_connect not in _INITIAL:
            raise ConfigError(
                f"initial_connect={self.initial_connect!r}: expected 'off', 'sync' or 'async'"
            )
        if self.error_inbox_capacity < SMALLEST:
            raise ConfigError(
                f"error_inbox_capacity={self.error_inbox_capacity}: expected at least {SMALLEST}"
            )
        for name in ("backoff_base", "backoff_cap"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name}={getattr(self, name)}: expected more than 0 seconds")
        if self.drain_orphans and self.path is None:
            raise ConfigError("drain_orphans needs a folder: frames in memory leave no orphans")
        if self.max_drainers < 1:
            raise ConfigError(f"max_drainers={self.max_drainers}: expected at least 1")
        _check_policies(self.limits)

    def _check_kinds(self) -> None:
        for name, kind in (("journal", JournalConfig), ("limits", OutboxLimits)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise ConfigError(f"{name}={shorten(value)}: expected a {kind.__name__}")
        for name in _DURATIONS:
            value = getattr(self, name)
            if not (_is_number(value) or (value is None and name == "reconnect_budget")):
                raise ConfigError(
                    f"{name}={shorten(value)}: expected seconds, such as 0.5, or a timedelta"
                )
        for name in ("error_handler", "drainer_listener"):
            value = getattr(self, name)
            if not (value is None or callable(value)):
                raise ConfigError(f"{name}={shorten(value)}: expected a function, or None")
        if self.reconnect_budget is not None and self.reconnect_budget < 0:
            raise ConfigError(f"reconnect_budget={self.reconnect_budget}: expected 0 or more")
        for name in ("max_drainers", "error_inbox_capacity", "dead_letter_bytes"):
            value = getattr(self, name)
            if not isinstance(value, int):
                raise ConfigError(f"{name}={shorten(value)}: expected a whole number")

    @property
    def driver_options(self) -> dict[str, Any]:
        """The keywords of a driver, of either client."""
        return {"tls": self.tls, "token": self.token, "hooks": self.hooks}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _check_policies(limits: OutboxLimits) -> None:
    for category, policy in limits.policies.items():
        if (type(category), type(policy)) != (Category, Policy):
            raise ConfigError(
                f"policies={{{shorten(category)}: {shorten(policy)}}}: expected "
                "{Category...: Policy...}"
            )
    for name, least in (("frames", 1), ("bytes", 1), ("strikes", 1), ("dwell", 0)):
        if not getattr(limits, name) >= least:
            raise ConfigError(f"{name}={getattr(limits, name)}: expected at least {least}")
    if not limits.ack_timeout > 0:
        raise ConfigError(f"ack_timeout={limits.ack_timeout}: expected more than 0 seconds")
    damaged = limits.policies.get(Category.DAMAGED, Policy.DROP)
    if damaged not in {Policy.DROP, Policy.HALT}:
        raise ConfigError(
            f"{Category.DAMAGED.option}={damaged.value}: expected 'drop' or 'terminal'; what is "
            "left of a damaged frame is kept with its segment"
        )
    if limits.policies.get(Category.UNSUPPORTED) in {Policy.RETRY, Policy.RETRY_OTHER}:
        raise ConfigError(
            f"{Category.UNSUPPORTED.option}: expected 'dead_letter', 'drop' or 'terminal'; nothing "
            "was sent that could be tried again"
        )
