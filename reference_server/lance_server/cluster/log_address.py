"""Addresses of a replicated log: the value of ``--cluster``, and the file that completes it."""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from lance_server.cluster.kafka_log.settings import KafkaAddress
from lance_server.cluster.memory import named_log
from lance_server.cluster.replicated_log import ReplicatedLog
from lance_server.errors import ConfigError

_KAFKA_PORT: Final = 9092
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_EXAMPLE: Final = "kafka://broker1,broker2,broker3/lance"
OURS: Final = frozenset(
    {
        *("bootstrap.servers", "acks", "enable.idempotence", "enable.gapless.guarantee"),
        *("message.timeout.ms", "delivery.timeout.ms", "linger.ms", "queue.buffering.max.ms"),
        *("message.max.bytes", "max.in.flight", "max.in.flight.requests.per.connection"),
        *("auto.offset.reset", "enable.auto.commit", "isolation.level", "check.crcs"),
        *("transactional.id", "queue.buffering.max.kbytes", "queue.buffering.max.messages"),
    }
)
"""Settings of the client on which the promise of an acknowledgement rests."""


@dataclass(frozen=True, slots=True)
class MemoryAddress:
    """A log in the memory of this process.

    Attributes:
        name: nodes that name the same one share it.
    """

    name: str

    def __str__(self) -> str:
        return f"memory://{self.name}"


def parse_address(text: str, settings_file: Path | None = None) -> KafkaAddress | MemoryAddress:
    """Read ``kafka://HOST[:PORT],…/TOPIC[?SETTING=VALUE&…]``.

    Args:
        text: the address.
        settings_file: a file of lines ``setting=value``, for what must not stand in the address,
            such as passwords.

    Raises:
        ConfigError: it is something else, or sets what the server sets itself.
    """
    parts = urlsplit(text)
    if parts.scheme == "memory" and parts.netloc:
        return MemoryAddress(parts.netloc)
    topic = unquote(parts.path.removeprefix("/"))
    if parts.scheme != "kafka" or not parts.netloc or not topic:
        raise ConfigError(
            f"'{text}' is not the address of a cluster's log: write kafka://HOST,HOST/TOPIC, for "
            f"example {_EXAMPLE}"
        )
    if "@" in parts.netloc:
        raise ConfigError(
            "a user and a password do not belong into the address of the log: write "
            "sasl.username and sasl.password into the file that --cluster-config names"
        )
    if _TOPIC.fullmatch(topic) is None or topic in {".", ".."}:
        raise ConfigError(
            f"'{topic}' is not a name of a Kafka topic: use up to 249 letters, digits, '.', '_' "
            "and '-'"
        )
    settings = dict(parse_qsl(parts.query, keep_blank_values=True))
    if settings_file is not None:
        settings |= _read_settings(settings_file)
    for name in settings:
        if name in OURS:
            raise ConfigError(f"'{name}' of the log's client is set by the server; leave it out")
    brokers = ",".join(_with_port(each) for each in parts.netloc.split(","))
    return KafkaAddress(brokers, topic, settings)


def _with_port(host: str) -> str:
    if not host:
        raise ConfigError(f"the address of the log names an empty host; write {_EXAMPLE}")
    has_port = re.search(r":\d+$", host) is not None and not host.endswith("]")
    return host if has_port else f"{host}:{_KAFKA_PORT}"


def _read_settings(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read '{path}': {error}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise ConfigError(
                f"{path}, line {number}: write SETTING=VALUE, for example security.protocol=SSL"
            )
        found[name.strip()] = value.strip()
    return found


def require_client() -> None:
    """Refuse to go on without the client of Kafka.

    Raises:
        ConfigError: it is not installed.
    """
    if find_spec("confluent_kafka") is None:
        raise ConfigError(
            "a cluster over Kafka needs confluent-kafka: pip install 'lance-sdk[cluster]'"
        )


def open_log(address: KafkaAddress | MemoryAddress, *, unsafe: bool = False) -> ReplicatedLog:
    """Connect to a log.

    Args:
        address: where it is.
        unsafe: whether settings are taken that break what an acknowledgement promises.

    Raises:
        ConfigError: the client of the log is not installed, or does not take a setting.
        ReplicatedLogError: the log cannot be used.
    """
    if isinstance(address, MemoryAddress):
        return named_log(address.name)
    require_client()
    from lance_server.cluster.kafka_log.log import KafkaLog  # noqa: PLC0415 - needs an extra

    return KafkaLog.open(address, unsafe=unsafe)
