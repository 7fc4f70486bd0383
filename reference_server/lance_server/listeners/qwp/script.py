"""Misbehaviour on request: what the endpoint does instead of what it should.

Tests of senders need servers that refuse, close, stall and lie. A script is a list of rules;
the first rule that fits a connection or a message decides about it, as often as it may.
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Self

from lance_server.errors import ConfigError
from lance_spec.messages.qwp import Status

_CONNECT: Final = frozenset({"status", "role", "version", "no_durable_ack", "stall", "headers"})
_MESSAGE: Final = frozenset(
    {"reject", "text", "close", "reason", "reset", "stall", "ack", "send", "delay", "store"}
    | {"hold_durable", "message", "table"}
)


@dataclass(slots=True, kw_only=True)
class Rule:
    """One thing to do, once or more often.

    What fits:

    Attributes:
        on: ``connect`` or ``message``.
        connection: only the connection with this number, counted from 0; None means any.
        message: only the message with this number on its connection, counted from 0.
        table: only messages with rows of this table.
        times: how often the rule applies; 0 means always.

    What is done to a connection:

    Attributes:
        status: the upgrade is answered with this HTTP status.
        role: the same answer names this role in ``X-QuestDB-Role``.
        version: the upgrade succeeds and names this version.
        no_durable_ack: the upgrade succeeds without granting durable acknowledgements.
        headers: the answer has these headers too.
        stall: the upgrade is never answered; a message and those after it neither.

    What is done to a message:

    Attributes:
        reject: an error frame with this status, as a number or by its name.
        text: the text of the error frame.
        close: the connection is closed with this code.
        reason: the reason that goes with it.
        reset: the connection is reset.
        ack: an OK frame for this number, whatever was received.
        send: these bytes, in hex, as one WebSocket message.
        delay: seconds to wait before it is answered as usual.
        hold_durable: it is answered, but without a durable acknowledgement.
        store: whether its rows are stored before this is done; otherwise they are dropped.
    """

    on: str = "message"
    connection: int | None = None
    message: int | None = None
    table: str | None = None
    times: int = 1
    status: int | None = None
    role: str | None = None
    version: str | None = None
    no_durable_ack: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    stall: bool = False
    reject: int | str | None = None
    text: str = "refused by the script"
    close: int | None = None
    reason: str = ""
    reset: bool = False
    ack: int | None = None
    send: str | None = None
    delay: float | int = 0
    hold_durable: bool = False
    store: bool = False
    applied: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.on not in ("connect", "message"):
            raise ConfigError(f"on = {self.on!r}: a rule is for 'connect' or 'message'")
        wrong = _set_fields(self) - (_CONNECT if self.on == "connect" else _MESSAGE)
        if wrong:
            raise ConfigError(f"{', '.join(sorted(wrong))}: not for a rule on '{self.on}'")
        if isinstance(self.reject, str):
            self.reject = _status(self.reject)
        if self.send is not None:
            self.raw  # noqa: B018 - checked before anything is served

    @property
    def raw(self) -> bytes:
        """The bytes of `send`."""
        try:
            return bytes.fromhex(self.send or "")
        except ValueError as error:
            raise ConfigError(f"send = {self.send!r}: expected hex digits: {error}") from None

    @property
    def ends(self) -> bool:
        """Whether nothing after the message is taken."""
        return bool(self.stall or self.reset or self.close is not None or self.reject is not None)

    @property
    def keeps_rows(self) -> bool:
        """Whether the rows of the message are stored before anything else is done."""
        return self.store or not (self.ends or self.ack is not None or self.send is not None)

    @property
    def spent(self) -> bool:
        """Whether it applied as often as it may."""
        return 0 < self.times <= self.applied


class Script:
    """Rules in the order in which they are tried; they may change at any time.

    Args:
        rules: the rules.
    """

    def __init__(self, *rules: Rule) -> None:
        self.rules = list(rules)

    def __repr__(self) -> str:
        return f"<Script {len(self.rules)} rules, {sum(r.spent for r in self.rules)} spent>"

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a TOML file with a table ``[[rule]]`` for each rule.

        Raises:
            ConfigError: it cannot be read, or says something that is not a rule.
        """
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"cannot read the script '{path}': {error}") from error
        rules = document.pop("rule", [])
        if document or not isinstance(rules, list):
            raise ConfigError(f"'{path}': a script is a list of [[rule]] tables and nothing else")
        return cls(*(_rule(path, number, each) for number, each in enumerate(rules, 1)))

    def add(self, rule: Rule) -> Rule:
        """Try one more rule, after the others; return it."""
        self.rules.append(rule)
        return rule

    def on_connect(self, connection: int) -> Rule | None:
        """Return what to do to a connection that is being opened, or None."""
        return self._first("connect", connection, None, ())

    def on_message(self, connection: int, message: int, tables: Collection[str]) -> Rule | None:
        """Return what to do to a message, or None."""
        return self._first("message", connection, message, tables)

    def _first(
        self, on: str, connection: int, message: int | None, tables: Collection[str]
    ) -> Rule | None:
        for each in self.rules:
            if (
                each.on == on
                and not each.spent
                and each.connection in (None, connection)
                and each.message in (None, message)
                and (each.table is None or each.table in tables)
            ):
                each.applied += 1
                return each
        return None


def _set_fields(rule: Rule) -> set[str]:
    plain = {"on", "connection", "times", "applied"}
    default = {each.name: each.default for each in fields(rule) if each.name not in plain}
    return {name for name, value in default.items() if getattr(rule, name) not in (value, {})}


def _status(name: str) -> int:
    try:
        return Status[name.upper()]
    except KeyError:
        known = ", ".join(each.name for each in Status)
        raise ConfigError(f"reject = {name!r}: expected a number or one of {known}") from None


def _rule(path: Path, number: int, table: Mapping[str, Any]) -> Rule:
    known: dict[str, Any] = {each.name: each.type for each in fields(Rule)}
    known["headers"] = dict
    for name, value in table.items():
        if name not in known or name == "applied":
            raise ConfigError(f"'{path}', rule {number}: there is no '{name}'")
        if not isinstance(value, known[name]):
            raise ConfigError(f"'{path}', rule {number}: {name} = {value!r} is of the wrong type")
    try:
        return Rule(**table)
    except ConfigError as error:
        raise ConfigError(f"'{path}', rule {number}: {error}") from error
