"""The options of the format ``lwp``, under the names that users of the Kafka connector know."""

import dataclasses
import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias, get_args

from lance_sdk._units import parse_duration, parse_size, shorten
from lance_sdk.errors import ConfigError
from lance_sdk.spark.columns import DEFAULT_COLUMNS, STORED_COLUMNS, Origin, arrow_schema
from lance_sdk.url import URL, parse_url

Start: TypeAlias = Literal["earliest", "latest"] | Mapping[str, int | str] | datetime
"""Where to begin or to end: everywhere the same, by topic, or by time."""
Semantics: TypeAlias = Literal["at-least-once", "exactly-once"]
RecordFormat: TypeAlias = Literal["payload", "stored"]
Severity: TypeAlias = Literal["raise", "skip"]

_SPARKS_OWN: Final = frozenset({"checkpointlocation", "path", "paths"})
_OF_TABLES: Final = frozenset(
    {
        "provider",
        "owner",
        "comment",
        "location",
        "external",
        "is_managed_location",
        "table_type",
        "collation",
        "serialization.format",
    }
)
"""What Spark adds to the options of a table in its catalog; it says nothing of what is read."""
_IN_TABLES: Final = "option."
"""What options are prefixed with there."""
_KAFKA: Final = {
    "kafka.bootstrap.servers": "servers",
    "bootstrap.servers": "servers",
    "subscribe": "topics",
    "subscribepattern": "topicsPattern",
    "assign": "topics",
    "maxoffsetspertrigger": "maxBytesPerTrigger",
    "minoffsetspertrigger": "maxBytesPerTrigger",
    "startingoffsetsbytimestamp": "startingTimestamp",
    "endingoffsetsbytimestamp": "endingTimestamp",
    "kafka.ssl.truststore.location": "tlsCa",
    "fetchoffset.numretries": "requestTimeout",
}
"""What the Kafka connector calls it, and what it is here."""
_KAFKA_PLACES: Final = {-2: "earliest", -1: "latest"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a query says, checked.

    Attributes:
        servers: ``host:port`` of one or more servers, separated by commas, or a ``lance://`` or
            ``lances://`` URL.
        topics: the topics to read, or the one to write all rows to; may be said as ``topic``, too.
        topics_pattern: regular expression that whole names of topics match.
        path: data directory, topic directory, segment file, slot, or a folder of slots; local,
            or a URI that Arrow can open (``hdfs://``, ``s3://``, ``gs://``).
        columns: columns to produce when the query gives no schema; by default those of the
            record format.
        record_format: ``payload``: the column ``value`` is what was sent; ``stored``: it is what
            is stored, with key and time before it, as version 1 of checkpoints has it.
        starting_offsets: ``earliest``, ``latest``, or JSON: ``{"orders": 1024}``.
        ending_offsets: likewise, for batch queries.
        starting_timestamp: ISO 8601 with a zone, or milliseconds since the Unix epoch; the first
            record that the server stored then or later.
        ending_timestamp: likewise; the last record is the one before.
        max_bytes_per_trigger: bytes of the log that one micro-batch takes at most.
        min_partitions: into at least so many tasks the work is cut, where it can be.
        max_partition_bytes: bytes of files that one task reads, about.
        fetch_bytes: bytes asked for in one Fetch.
        fail_on_data_loss: whether the query ends when records it was to read are gone.
        catch_up_timeout: seconds to wait for a log that ends before the query's position, and for
            a server that sends nothing.
        poll_interval: least seconds between two questions for new data.
        on_opaque: what to do at a batch that is no records (AMB-27).
        on_damage: what to do in files at bytes that do not match their checksum.
        semantics: of a sink.
        ledger_path: where a sink with ``exactly-once`` stages; by default beside the checkpoint.
        txn_id: names a batch write, so that it can be repeated.
        create_topic: create the topic to write to where it does not exist.
        batch_bytes: records sent in one frame, about.
        pushdown: apply comparisons with ``offset`` and ``topic`` at the source.
        dialect: see `lance_sdk.config.ClientConfig`.
        request_timeout: likewise.
        token: likewise.
        tls_ca: likewise.
        tls_cert: likewise.
        tls_key: likewise.
        tls_server_name: likewise.
        checkpoint: Spark's checkpoint directory, where the query has one.
    """

    servers: str | None = None
    topics: tuple[str, ...] = ()
    topics_pattern: str | None = None
    path: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    record_format: RecordFormat | None = None
    starting_offsets: "Start | None" = None
    ending_offsets: "Start | None" = None
    starting_timestamp: datetime | None = None
    ending_timestamp: datetime | None = None
    max_bytes_per_trigger: int = 256 << 20
    min_partitions: int = 1
    max_partition_bytes: int = 128 << 20
    fetch_bytes: int = 4 << 20
    fail_on_data_loss: bool = True
    catch_up_timeout: float = 60.0
    poll_interval: float = 0.1
    on_opaque: Severity = "raise"
    on_damage: Severity = "raise"
    semantics: Semantics = "at-least-once"
    ledger_path: str | None = None
    txn_id: str | None = None
    create_topic: bool = False
    batch_bytes: int = 1 << 20
    pushdown: bool = False
    dialect: str | None = None
    request_timeout: float = 30.0
    token: str | None = field(default=None, repr=False)
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_server_name: str | None = None
    checkpoint: str | None = None

    @classmethod
    def parse(cls, said: Mapping[str, str]) -> "Options":
        """Read the options of a query.

        Args:
            said: names, in any case, and texts.

        Raises:
            ConfigError: naming the option that is unknown or has no fitting value, and what to
                say instead.
        """
        values: dict[str, Any] = {}
        for name, text in _without_prefix(said).items():
            lowered = name.lower()
            if lowered in _OF_TABLES:
                continue
            if lowered in _SPARKS_OWN:
                values.update(_sparks(lowered, text))
                continue
            attribute = _ATTRIBUTES.get(lowered)
            if attribute is None:
                raise ConfigError(_unknown(name))
            values[attribute] = _READERS[attribute](NAMES[attribute], text)
        options = cls(**values)
        _check_times(options)
        _check_places(options)
        return options

    def url(self, topic: str | None = None) -> URL:
        """Return where the server, or a topic of it, is.

        Raises:
            ConfigError: there are no ``servers``, or they are no addresses.
        """
        if self.servers is None:
            raise ConfigError("say where to read: option servers=host:port, or a path of files")
        text = self.servers if "://" in self.servers else f"lance://{self.servers}"
        return dataclasses.replace(parse_url(text), topic=topic, topic_id=None)

    def client_options(self) -> dict[str, Any]:
        """Return the keywords for a client, as far as they were said."""
        names = ("dialect", "token", "tls_ca", "tls_cert", "tls_key", "tls_server_name")
        chosen = {name: getattr(self, name) for name in names}
        chosen["request_timeout"] = self.request_timeout
        return {name: value for name, value in chosen.items() if value is not None}

    @property
    def stored(self) -> bool:
        """Whether the column ``value`` is what is stored."""
        return self.record_format == "stored"

    @property
    def chosen_columns(self) -> tuple[str, ...]:
        """The columns of a query that gives no schema."""
        return self.columns or (STORED_COLUMNS if self.stored else DEFAULT_COLUMNS)

    def origin(
        self, topic: str, offset: int, segment: str | None = None, *, crc_ok: bool = True
    ) -> Origin:
        """Return where a run of records is from, and how it is to be shown."""
        skip = self.on_damage == "skip" or not crc_ok  # the batch is marked as damaged already
        return Origin(topic, offset, segment, crc_ok, self.stored, skip)

    def start(self, topic: str) -> int | str | datetime:
        """Return where to begin in a topic: a time, an offset, ``earliest`` or ``latest``."""
        return _place(self.starting_timestamp, self.starting_offsets, topic, "earliest")

    def end(self, topic: str) -> int | str | datetime:
        """Return where to end in a topic."""
        return _place(self.ending_timestamp, self.ending_offsets, topic, "latest")

    def wants(self, topic: str) -> bool:
        """Whether a topic was asked for."""
        if self.topics_pattern is not None:
            return re.fullmatch(self.topics_pattern, topic) is not None
        return not self.topics or topic in self.topics

    def one_topic(self) -> str:
        """Return the topic to write to when rows do not say.

        Raises:
            ConfigError: none, or several.
        """
        if len(self.topics) != 1:
            raise ConfigError("say which topic to write to: option topic=NAME")
        return self.topics[0]


def _without_prefix(said: Mapping[str, str]) -> dict[str, str]:
    """Return options without the prefix of those that stand in a table of Spark's catalog."""
    start = len(_IN_TABLES)
    of_table = {name[start:]: v for name, v in said.items() if name.lower().startswith(_IN_TABLES)}
    return of_table | {
        name: v for name, v in said.items() if not name.lower().startswith(_IN_TABLES)
    }


def _place(
    moment: datetime | None, said: "Start | None", topic: str, default: str
) -> int | str | datetime:
    if moment is not None:
        return moment
    if said is None:
        return default
    if isinstance(said, Mapping):
        return said.get(topic, default)
    return said


def _sparks(name: str, text: str) -> dict[str, Any]:
    if name == "checkpointlocation":
        return {"checkpoint": text}
    if name == "path":
        return {"path": (text,)}
    try:
        return {"path": tuple(str(each) for each in json.loads(text))}
    except ValueError:
        raise ConfigError(f"paths={shorten(text)}: expected a JSON list") from None


def _unknown(name: str) -> str:
    lowered = name.lower()
    if lowered in _KAFKA:
        return f"option {name!r} is the Kafka connector's; here it is {_KAFKA[lowered]!r}"
    near = difflib.get_close_matches(lowered, _ATTRIBUTES, n=1)
    if near:
        return f"unknown option {name!r}; did you mean {NAMES[_ATTRIBUTES[near[0]]]!r}?"
    return f"unknown option {name!r}; there are {', '.join(sorted(NAMES.values()))}"


def _check_times(options: Options) -> None:
    pairs = (("starting_offsets", "starting_timestamp"), ("ending_offsets", "ending_timestamp"))
    for by_offset, by_time in pairs:
        if getattr(options, by_offset) is not None and getattr(options, by_time) is not None:
            raise ConfigError(
                f"options {NAMES[by_offset]} and {NAMES[by_time]} exclude each other; say one"
            )
    if options.topics and options.topics_pattern is not None:
        raise ConfigError("options topics and topicsPattern exclude each other; say one")
    if options.servers is not None and options.path:
        raise ConfigError("options servers and path exclude each other; read one of them")


def _check_places(options: Options) -> None:
    """Refuse an offset for a topic that is not read: it would begin somewhere else, unnoticed."""
    for attribute in ("starting_offsets", "ending_offsets"):
        said = getattr(options, attribute)
        for topic in said if isinstance(said, Mapping) else ():
            if not options.wants(topic):
                read = options.topics_pattern or ", ".join(options.topics)
                raise ConfigError(
                    f"{NAMES[attribute]} names topic {shorten(topic)}, and the query reads {read}"
                )


# What each option's text means.


def _text(name: str, text: str) -> str:
    if not text:
        raise ConfigError(f"{name}='': expected a text")
    return text


def _names(name: str, text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise ConfigError(f"{name}={shorten(text)}: expected names, separated by commas")
    return found


def _columns(name: str, text: str) -> tuple[str, ...]:
    found = _names(name, text)
    arrow_schema(found)
    return found


def _pattern(name: str, text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(f"{name}={shorten(text)}: no regular expression: {error}") from None
    return text


def _size(name: str, text: str) -> int:
    found = parse_size(name, text)
    if found <= 0:
        raise ConfigError(f"{name}={shorten(text)}: expected more than 0 bytes")
    return found


def _frame_size(name: str, text: str) -> int:
    found = _size(name, text)
    if not 64 <= found <= 16 << 20:
        raise ConfigError(f"{name}={shorten(text)}: expected 64 bytes to 16MiB")
    return found


def _count(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= 100_000):
        raise ConfigError(f"{name}={shorten(text)}: expected a number from 1 to 100000")
    return int(text)


def _duration(name: str, text: str) -> float:
    plain = f"{text}s" if re.fullmatch(r"[0-9.]+", text) else text
    return parse_duration(name, plain)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ConfigError(f"{name}={shorten(text)}: expected true or false")
    return text.lower() == "true"


def _one_of(choices: tuple[str, ...]) -> Callable[[str, str], str]:
    def read(name: str, text: str) -> str:
        if text.lower() not in choices:
            raise ConfigError(f"{name}={shorten(text)}: expected {' or '.join(choices)}")
        return text.lower()

    return read


def _moment(name: str, text: str) -> datetime:
    try:
        if re.fullmatch(r"-?[0-9]{1,18}", text):
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(text))
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ConfigError(
            f"{name}={shorten(text)}: expected ISO 8601 with a zone, such as "
            "2026-01-31T12:00:00Z, or milliseconds since 1970"
        )
    return moment


def _offsets(name: str, text: str) -> Start:
    lowered = text.strip().lower()
    if lowered == "earliest":
        return "earliest"
    if lowered == "latest":
        return "latest"
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise ConfigError(
            f'{name}={shorten(text)}: expected earliest, latest or JSON such as {{"orders": 1024}}'
        )
    return {topic: _offset(name, topic, value) for topic, value in said.items()}


def _offset(name: str, topic: str, value: object) -> int | str:
    """Read one topic's place: a number, a word, or Kafka's ``{"0": number}``."""
    if isinstance(value, dict) and list(value) == ["0"]:
        value = value["0"]
    if isinstance(value, str) and value in {"earliest", "latest"}:
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not -2 <= value < 2**63:
        raise ConfigError(
            f"{name}: topic {topic!r} has {shorten(value)}; expected a byte offset, earliest or "
            "latest"
        )
    return _KAFKA_PLACES.get(value, value)


_READERS: Final[dict[str, Callable[[str, str], Any]]] = {
    "servers": _text,
    "topics": _names,
    "topics_pattern": _pattern,
    "columns": _columns,
    "record_format": _one_of(get_args(RecordFormat)),
    "starting_offsets": _offsets,
    "ending_offsets": _offsets,
    "starting_timestamp": _moment,
    "ending_timestamp": _moment,
    "max_bytes_per_trigger": _size,
    "min_partitions": _count,
    "max_partition_bytes": _size,
    "fetch_bytes": _frame_size,
    "fail_on_data_loss": _flag,
    "catch_up_timeout": _duration,
    "poll_interval": _duration,
    "on_opaque": _one_of(get_args(Severity)),
    "on_damage": _one_of(get_args(Severity)),
    "semantics": _one_of(get_args(Semantics)),
    "ledger_path": _text,
    "txn_id": _text,
    "create_topic": _flag,
    "batch_bytes": _frame_size,
    "pushdown": _flag,
    "dialect": _one_of(("auto", "specified", "deployed")),
    "request_timeout": _duration,
    "token": _text,
    "tls_ca": _text,
    "tls_cert": _text,
    "tls_key": _text,
    "tls_server_name": _text,
}


def _spoken(attribute: str) -> str:
    head, *rest = attribute.split("_")
    return head + "".join(part.capitalize() for part in rest)


NAMES: Final = {attribute: _spoken(attribute) for attribute in _READERS}
"""How each attribute of `Options` is said."""
_ATTRIBUTES: Final = {name.lower(): attribute for attribute, name in NAMES.items()} | {
    "topic": "topics"
}
assert set(_ATTRIBUTES.values()) <= {field.name for field in dataclasses.fields(Options)}
