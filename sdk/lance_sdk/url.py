"""``lance://`` URLs: where a topic lives, and settings for whoever opens it.

::

    lance://[token@]host[:port][,host[:port]...][/topic][?key=value&...]

``lances://`` is the same over TLS. The path is always a topic's name, percent-encoded;
``?topic_id=7`` addresses a topic by number (AMB-24). IPv6 addresses stand in brackets. Query
keys are the fields of `lance_sdk.config`, with ``batch`` and ``buffer`` short for
``batch_bytes`` and ``buffer_bytes``: ``?linger=5ms&batch=64KiB``.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

from lance_sdk._api.arguments.unit_parsing import Duration, parse_duration, parse_size, shorten
from lance_sdk._protocol.hosts import Endpoint
from lance_sdk.config import ClientConfig, ConsumerConfig, ProducerConfig
from lance_sdk.errors import ConfigError
from lance_spec.errors import EncodeError
from lance_spec.names import check_topic_name

__all__ = ["URL", "Endpoint", "parse_url"]

_EXAMPLE: Final = "lance://localhost:1992/orders"
_SCHEMES: Final = {"lance": False, "lances": True}
_ALIASES: Final = {"batch": "batch_bytes", "buffer": "buffer_bytes"}
_NOT_IN_URLS: Final = {"token", "tls", "tls_key_password", "hooks", "retry", "journal_settings"}
"""Objects, and secrets that would be shown with the URL."""
_ELSEWHERE: Final = {
    "token": "it would be shown with the URL; write lance://TOKEN@HOST, or pass token=",
    "group_id": "consumer= with offsets= keeps the place of one consumer; a GroupConsumer shares "
    "topics among several",
    "group": "a GroupConsumer shares topics among several consumers",
    "bootstrap_servers": "the servers stand in the URL: lance://HOST1,HOST2/TOPIC",
    "servers": "the servers stand in the URL: lance://HOST1,HOST2/TOPIC",
    "topic": "the topic stands in the URL: lance://HOST/TOPIC",
    "client_id": "leave it out; consumer= names a consumer",
    "acks": "leave it out; every acknowledgement says that the record is durable",
    "enable_idempotence": "leave it out; what is sent again is stored once",
    "retries": "say retry=RetryPolicy(max_attempts=N); delivery_timeout= ends all attempts",
    "linger_ms": "say linger=, in seconds",
    "batch_size": "say batch_bytes=",
    "buffer_memory": "say buffer_bytes=",
    "max_block_ms": "say block_timeout=, in seconds",
    "request_timeout_ms": "say request_timeout=, in seconds",
    "delivery_timeout_ms": "say delivery_timeout=, in seconds",
    "compression_type": "say compression='lz4' or 'auto'",
    "key_serializer": "keys are text or bytes; values= says how values are written",
    "value_serializer": "say values='json', or another codec",
    "value_deserializer": "say values='json', or another codec",
    "key_deserializer": "keys are bytes; values= says how values are read",
    "auto_offset_reset": "say start='beginning' or 'end'",
    "enable_auto_commit": "say auto_commit='processed' or 'off'",
    "auto_commit_interval_ms": "say commit_interval=, in seconds",
    "security_protocol": "write lances:// for TLS",
    "ssl_cafile": "say tls_ca=",
    "ssl_certfile": "say tls_cert=",
    "ssl_keyfile": "say tls_key=",
    "ssl": "write lances:// for TLS",
    "ca": "say tls_ca=",
    "partitioner": "that is an option of PartitionedProducer",
    "max_poll_records": "that is an option of GroupConsumer",
}
"""Options that other clients have, and what says the same here."""
_HOST: Final = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.%]+)\]|(?P<name>[^\[\]:@/\s\0]{1,255}))(?::(?P<port>.*))?"
)

ConfigT = TypeVar("ConfigT", bound=ClientConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class URL:
    """A parsed ``lance://`` URL; ``str()`` and ``repr()`` hide its token.

    Attributes:
        tls: whether the scheme is ``lances``.
        endpoints: the hosts, in the order in which they are tried.
        topic: the topic's name (Unicode NFC), or None.
        topic_id: the topic's number, or None.
        token: what stands before ``@``, or None.
        query: the other query keys, as written.
    """

    endpoints: tuple[Endpoint, ...]
    tls: bool = False
    topic: str | None = None
    topic_id: int | None = None
    token: str | None = field(default=None, repr=False)
    query: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        secret = "" if self.token is None else "***@"
        path = "" if self.topic is None else f"/{quote(self.topic, safe='')}"
        suffix = "" if self.topic_id is None else f"?topic_id={self.topic_id}"
        return f"{self.server_url(secret)}{path}{suffix}"

    def server_url(self, secret: str = "") -> str:
        """Return the URL without topic and query."""
        scheme = "lances" if self.tls else "lance"
        return f"{scheme}://{secret}{','.join(str(endpoint) for endpoint in self.endpoints)}"

    @property
    def label(self) -> str:
        """How records and messages name the topic: its name, ``#id``, or nothing."""
        if self.topic is not None:
            return self.topic
        return "" if self.topic_id is None else f"#{self.topic_id}"

    def require_topic(self) -> None:
        """Refuse a URL that names no topic.

        Raises:
            ConfigError: saying how to name one.
        """
        if self.topic is None and self.topic_id is None:
            raise ConfigError(f"{self} names no topic: append one, as in {self}/orders")

    def require_name(self) -> None:
        """Refuse a URL that does not name a topic by its name.

        Raises:
            ConfigError: saying how to name one.
        """
        self.require_topic()
        if self.topic is None:
            raise ConfigError(f"{self} names a topic by its number; partitions need its name")

    def configure(self, kind: type[ConfigT], options: Mapping[str, Any]) -> ConfigT:
        """Return the settings of this URL's query, overridden by ``options``.

        Args:
            kind: which settings to return; keys that only other kinds know are left out.
            options: keyword arguments of the client.

        Raises:
            ConfigError: for a value that is not allowed or an unknown option.
        """
        known = _fields(kind)
        values = {name: _parse(name, text) for name, text in self.query.items() if name in known}
        for name in options:
            if name not in known:
                raise ConfigError(
                    f"{kind.__name__.removesuffix('Config')} has no option {name!r}"
                    f"{_hint(name, known)}"
                )
        if self.token is not None:
            values["token"] = self.token
        return kind(**{**values, **options})


def parse_url(text: str | URL) -> URL:
    """Read a ``lance://`` or ``lances://`` URL.

    Args:
        text: the URL; one that is parsed already is returned as it is.

    Raises:
        ConfigError: naming the part at fault; the token is never shown.
    """
    if isinstance(text, URL):
        return text
    if not isinstance(text, str):
        raise ConfigError(f"a URL must be text, not {type(text).__name__}; write {_EXAMPLE!r}")
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in _SCHEMES:
        given = "a URL" if "@" in rest or "@" in scheme else f"{shorten(text)}: a URL"
        raise ConfigError(f"{given} must begin with lance:// or lances://, as in {_EXAMPLE}")
    if "#" in rest:
        raise ConfigError("a lance:// URL has no '#' part; write %23 for a '#' in a topic name")
    before, _, query = rest.partition("?")
    authority, _, path = before.partition("/")
    token, at, hosts = authority.rpartition("@")
    keys = _parse_query(query)
    topic_id = _parse_topic_id(keys.pop("topic_id", None))
    topic = _parse_topic(path)
    if topic is not None and topic_id is not None:
        raise ConfigError(f"a URL takes a topic name or topic_id={topic_id}, not both")
    return URL(
        tls=_SCHEMES[scheme],
        endpoints=tuple(_parse_host(host) for host in hosts.split(",")),
        topic=topic,
        topic_id=topic_id,
        token=unquote(token) if at else None,
        query=keys,
    )


def _parse_host(text: str) -> Endpoint:
    found = _HOST.fullmatch(text)
    if found is None:
        raise ConfigError(f"host {shorten(text)}: expected name, name:port or [IPv6]:port")
    port = found["port"]
    if port is None:
        return Endpoint(found["six"] or found["name"])
    if not (_is_number(port) and 1 <= int(port) <= 65535):
        raise ConfigError(
            f"host {shorten(text)}: expected a port from 1 to 65535, got {shorten(port)}"
        )
    return Endpoint(found["six"] or found["name"], int(port))


def _parse_topic(path: str) -> str | None:
    if not path:
        return None
    try:
        return check_topic_name(unquote(path, errors="strict"))
    except UnicodeDecodeError:
        raise ConfigError(f"topic {shorten(path)}: its percent-encoding is not UTF-8") from None
    except EncodeError as error:
        name = shorten(path)
        raise ConfigError(f"topic {name}: expected {error.expected}, got {error.got}") from None


def _parse_topic_id(text: str | None) -> int | None:
    if text is None:
        return None
    if not (_is_number(text) and int(text) < 2**32):
        raise ConfigError(f"topic_id={shorten(text)}: expected a number from 0 to {2**32 - 1}")
    return int(text)


def _parse_query(query: str) -> dict[str, str]:
    keys: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        name, equals, value = part.partition("=")
        name = _ALIASES.get(name, name)
        if name != "topic_id" and name not in _URL_KEYS:
            raise ConfigError(f"a URL has no key {name!r}{_hint(name, _URL_KEYS)}")
        if not equals or name in keys:
            raise ConfigError(f"URL key {name!r} must be given once, as {name}=value")
        keys[name] = unquote(value)
    return keys


def _hint(name: str, known: Mapping[str, Any]) -> str:
    if name in _ELSEWHERE:
        return f": {_ELSEWHERE[name]}"
    import difflib  # noqa: PLC0415 - only for what is misspelt

    close = difflib.get_close_matches(name, [*known, *_ALIASES], n=1, cutoff=0.7)
    return f": did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(known))}"


def _parse(name: str, text: str) -> Any:
    return _URL_KEYS[name](name, text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(2**64))


def _parse_number(name: str, text: str) -> int:
    if not _is_number(text):
        raise ConfigError(f"{name}={shorten(text)}: expected a whole number")
    return int(text)


def _parse_flag(name: str, text: str) -> bool:
    if text not in {"true", "false", "1", "0"}:
        raise ConfigError(f"{name}={shorten(text)}: expected true or false")
    return text in {"true", "1"}


def _parse_start(name: str, text: str) -> str | int | datetime:
    if text in {"beginning", "end"}:
        return text
    if "-" not in text:
        return _parse_number(name, text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{name}={shorten(text)}: expected a time such as 2026-01-31T12:00:00Z"
        ) from None


def _parse_text(_name: str, text: str) -> str:
    return text


def _parser(setting: "dataclasses.Field[Any]") -> Callable[[str, str], Any]:
    if setting.name == "start":
        return _parse_start
    if setting.type is Duration:
        return parse_duration
    if setting.type is bool:
        return _parse_flag
    if setting.name == "fetch_header":
        return _parse_number
    if setting.type is int:
        return parse_size if setting.name.endswith("_bytes") else _parse_number
    return _parse_text


def _fields(kind: type[ClientConfig]) -> dict[str, "dataclasses.Field[Any]"]:
    return {setting.name: setting for setting in dataclasses.fields(kind)}


_URL_KEYS: Final = {
    setting.name: _parser(setting)
    for kind in (ProducerConfig, ConsumerConfig)
    for setting in dataclasses.fields(kind)
    if setting.name not in _NOT_IN_URLS
}
"""Every key a URL's query may have, and how its value is read."""
