"""The options of the format ``lwp``, under the names that users of the Kafka connector know."""
# ruff: noqa: RUF009 - what declares an option returns a field

import dataclasses
import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from lance_sdk._api.arguments.unit_parsing import shorten
from lance_sdk.errors import ConfigError
from lance_sdk.spark.option_readers import (
    one_of,
    read_columns,
    read_count,
    read_duration,
    read_flag,
    read_frame_size,
    read_moment,
    read_moments,
    read_names,
    read_offsets,
    read_pattern,
    read_records,
    read_size,
    read_text,
    read_url,
)
from lance_sdk.spark.rows.column_names import DEFAULT_COLUMNS, STORED_COLUMNS, Origin
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
_CREATES: Final = "provider"
"""The property that is there when a table is created."""
_SECRETS: Final = frozenset({"token"})
PLACES: Final = frozenset({"servers", "path", "paths"})
"""Options that say where a log is, in lower case."""
TARGETS: Final = PLACES | {"topic", "topics"}
"""Options by which a query says itself where to write."""
_IN_TABLES: Final = "option."
"""What options are prefixed with there."""
_KAFKA: Final = {
    "kafka.bootstrap.servers": "servers",
    "bootstrap.servers": "servers",
    "subscribe": "topics",
    "subscribepattern": "topicsPattern",
    "assign": "topics",
    "kafka.ssl.truststore.location": "tlsCa",
    "fetchoffset.numretries": "requestTimeout",
}
"""What the Kafka connector calls it, and what it is here."""
_NO_GROUP: Final = (
    "a query is known by its checkpoint, and commits as a group where commitGroup names one"
)
_NOT_HERE: Final = {
    "includeheaders": "records of LWP have no headers",
    "groupidprefix": _NO_GROUP,
    "kafka.group.id": _NO_GROUP,
}
"""What the Kafka connector has, and why there is nothing like it."""


Scope: TypeAlias = Literal["read", "stream", "write", "all"]
"""Which queries an option is for."""
MEANING: Final = "option"
"""Where a field of `Options` keeps its declaration."""


@dataclass(frozen=True, slots=True)
class Option:
    """How an option is declared: once, for the source and for its documentation.

    Attributes:
        read: reads its text.
        scope: which queries it is for.
        help: what it says, for the documentation.
        shown: its default in words, where the value alone does not say it.
        other_names: further names of it.
    """

    read: Callable[[str, str], Any]
    scope: Scope
    help: str
    shown: str | None = None
    other_names: tuple[str, ...] = ()


def _option(
    read: Callable[[str, str], Any], scope: Scope, told: str, default: Any = None, **more: Any
) -> Any:
    shown = more.pop("shown", None)
    names = more.pop("other_names", ())
    declared = Option(read, scope, told, shown, names)
    return field(default=default, metadata={MEANING: declared}, **more)


def _of_client(read: Callable[[str, str], Any], **more: Any) -> Any:
    return _option(read, "all", "See `ClientConfig`; it travels to Spark's tasks.", **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a query says, checked; each option is declared here, with its documentation.

    ``path`` and ``checkpoint`` are what Spark itself says, by ``load(path)`` and
    ``checkpointLocation``.
    """

    servers: str | None = _option(
        read_text,
        "all",
        "`host:port`, several separated by commas, or a `lance://` or `lances://` URL.",
    )
    topics: tuple[str, ...] = _option(
        read_names,
        "all",
        "Names, separated by commas; for writing, the one topic that every row goes to. Also said "
        "as `topic`.",
        (),
        shown="",
        other_names=("topic",),
    )
    topics_pattern: str | None = _option(
        read_pattern,
        "read",
        "Regular expression that whole names match, at a server or in files. New topics join a "
        "running query, see below.",
    )
    path: tuple[str, ...] = ()
    record_format: RecordFormat | None = _option(
        one_of(get_args(RecordFormat)),
        "all",
        "`payload`: the column `value` is what was sent. `stored`: it is what is stored, with key "
        "and time before it, for reading and for writing; see above.",
        shown="payload",
    )
    columns: tuple[str, ...] = _option(
        read_columns,
        "read",
        "Columns of a query that gives no schema.",
        (),
        shown=",".join(DEFAULT_COLUMNS),
    )
    starting_offsets: "Start | None" = _option(
        read_offsets,
        "read",
        '`earliest`, `latest`, or JSON by topic: `{"orders": 1024}`, which may name only topics '
        "that are read. A streaming query that has a checkpoint goes on there instead.",
        shown="earliest",
    )
    ending_offsets: "Start | None" = _option(
        read_offsets, "read", "Likewise, for batch queries.", shown="latest"
    )
    starting_timestamp: datetime | None = _option(
        read_moment,
        "read",
        "The first record that the server stored then or later (AMB-37). ISO 8601 with a zone, or "
        "milliseconds since 1970.",
    )
    ending_timestamp: datetime | None = _option(
        read_moment, "read", "Likewise, for batch queries; the last record is the one before."
    )
    starting_offsets_by_timestamp: Mapping[str, datetime] | None = _option(
        read_moments,
        "read",
        'A time for each topic, as JSON: `{"orders": 1767225600000}`. Other topics are read from '
        "their beginning.",
    )
    ending_offsets_by_timestamp: Mapping[str, datetime] | None = _option(
        read_moments, "read", "Likewise, for batch queries; other topics to their end."
    )
    max_bytes_per_trigger: int = _option(
        read_size,
        "stream",
        "Bytes of the log in one micro-batch, shared by the topics. Sizes are written as `64KiB`, "
        "`1MB` or as Spark has them: `300k`, `1g`, in units of 1024.",
        256 << 20,
    )
    max_offsets_per_trigger: int = _option(
        read_records,
        "stream",
        "Records in one micro-batch, shared by the topics; from files whole batches are taken.",
        2**62,
        shown="",
    )
    min_offsets_per_trigger: int = _option(
        read_records,
        "stream",
        "Records that a micro-batch waits for, all but the first and those of "
        "`Trigger.AvailableNow`. Where a server is read, each look reads what is waiting.",
        0,
        shown="",
    )
    max_trigger_delay: float = _option(
        read_duration,
        "stream",
        "How long after the last micro-batch one waits for `minOffsetsPerTrigger`. Durations are "
        "written as `100ms` or `15m`, or as Spark has them: `30 seconds`; a number alone is "
        "seconds.",
        900.0,
        shown="15m",
    )
    min_partitions: int = _option(
        read_count,
        "read",
        "At least so many tasks, where there are boundaries for them. Without it files are cut "
        "into one for each core that the driver has, and a topic at a server is one.",
        1,
    )
    max_partition_bytes: int = _option(
        read_size,
        "read",
        "Bytes that one task reads, about. More of them make more tasks.",
        128 << 20,
    )
    fetch_bytes: int = _option(
        read_frame_size,
        "read",
        "Bytes asked for in one Fetch. Raise it where the server is far away: one Fetch at a time "
        "is under way.",
        2 << 20,
    )
    fail_on_data_loss: bool = _option(
        read_flag,
        "read",
        "Whether a query ends when what it was to read is gone or is not the same. `false` goes "
        "on, with a warning.",
        True,
    )
    catch_up_timeout: float = _option(
        read_duration,
        "read",
        "How long a log that ends before the query's offset is waited for, and a server that is "
        "away or sends nothing.",
        60.0,
        shown="60s",
    )
    poll_interval: float = _option(
        read_duration,
        "stream",
        "Least time between two questions for new data.",
        0.1,
        shown="100ms",
    )
    on_opaque: Severity = _option(
        one_of(get_args(Severity)),
        "read",
        "`skip` leaves out batches that a lenient server has stored without their being records "
        "(AMB-27).",
        "raise",
    )
    on_damage: Severity = _option(
        one_of(get_args(Severity)),
        "read",
        "`skip` leaves out batches and frames of files that do not match their checksum, or that "
        "nothing tells any more, and records that are not laid out as their type says.",
        "raise",
    )
    pushdown: bool = _option(
        read_flag,
        "read",
        "Apply comparisons with `offset` and `topic` at the source. Needs "
        "`spark.sql.python.filterPushdown.enabled`; without that setting Spark refuses the query. "
        "Spark gives what one query has handed over to the next one on the same DataFrame, too, "
        "which then lacks rows: call `load()` for each query.",
        False,
    )
    commit_group: str | None = _option(
        read_text,
        "stream",
        "Consumer group at whose coordinator each micro-batch that is done is committed, so that "
        "`lwp group status` shows how far the query is; see below. For topics at a server.",
    )
    commit_coordinator: str | None = _option(
        read_url, "stream", "Where the coordinator of `commitGroup` is: `host:port` or a URL."
    )
    semantics: Semantics = _option(
        one_of(get_args(Semantics)),
        "write",
        "Or `exactly-once`, see below.",
        "at-least-once",
    )
    ledger_path: str | None = _option(
        read_text,
        "write",
        "Folder for `exactly-once` that driver and tasks share.",
        shown="in the checkpoint",
    )
    txn_id: str | None = _option(
        read_text,
        "write",
        "Name of a batch write with `exactly-once`: repeating it writes nothing.",
    )
    create_topic: bool = _option(
        read_flag, "write", "Create a topic to write to where it does not exist.", False
    )
    batch_bytes: int = _option(
        read_frame_size, "write", "Records written in one frame, about.", 1 << 20
    )
    dialect: str | None = _of_client(one_of(("auto", "specified", "deployed")), shown="auto")
    request_timeout: float = _of_client(read_duration, default=30.0, shown="30s")
    token: str | None = _of_client(read_text, repr=False)
    tls_ca: str | None = _of_client(read_text)
    tls_cert: str | None = _of_client(read_text)
    tls_key: str | None = _of_client(read_text)
    tls_server_name: str | None = _of_client(read_text)
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
            values[attribute] = OPTIONS[attribute].read(NAMES[attribute], text)
        options = cls(**values)
        _check_times(options)
        _check_places(options)
        _check_group(options)
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
        moment = (self.starting_offsets_by_timestamp or {}).get(topic, self.starting_timestamp)
        return _place(moment, self.starting_offsets, topic, "earliest")

    def end(self, topic: str) -> int | str | datetime:
        """Return where to end in a topic."""
        moment = (self.ending_offsets_by_timestamp or {}).get(topic, self.ending_timestamp)
        return _place(moment, self.ending_offsets, topic, "latest")

    def of_stream(self) -> "Options":
        """Return the same options for a streaming query.

        Raises:
            ConfigError: one says where to end.
        """
        said = [name for name in _ENDS if getattr(self, name) is not None]
        if said:
            raise ConfigError(
                f"option {NAMES[said[0]]} is for batch queries: a streaming query goes on until it "
                "is stopped, or with Trigger.AvailableNow to what is there when it starts"
            )
        return self

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


def options_of_table(said: Mapping[str, str]) -> dict[str, str] | None:
    """Return what a user says of a table that is being created; None where this creates none.

    Args:
        said: what Spark hands over, its own properties of tables among it.

    Raises:
        ConfigError: a secret is among it.
    """
    if _CREATES not in {name.lower() for name in said}:
        return None
    known = _SPARKS_OWN | set(_ATTRIBUTES)
    found = {name: text for name, text in _without_prefix(said).items() if name.lower() in known}
    if secret := next((name for name in found if name.lower() in _SECRETS), None):
        raise ConfigError(
            f"option {secret!r} cannot stand in a table: Spark shows a table's options to everyone "
            "who may read it. Use CREATE TEMPORARY VIEW, or a DataFrame with the option"
        )
    return found


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
    if lowered in _NOT_HERE:
        return f"option {name!r} is the Kafka connector's: {_NOT_HERE[lowered]}; leave it out"
    near = difflib.get_close_matches(lowered, _ATTRIBUTES, n=1)
    if near:
        return f"unknown option {name!r}; did you mean {NAMES[_ATTRIBUTES[near[0]]]!r}?"
    return f"unknown option {name!r}; there are {', '.join(sorted(NAMES.values()))}"


def _check_times(options: Options) -> None:
    for side in ("starting", "ending"):
        names = (f"{side}_offsets", f"{side}_timestamp", f"{side}_offsets_by_timestamp")
        said = [NAMES[name] for name in names if getattr(options, name) is not None]
        if len(said) > 1:
            raise ConfigError(f"options {' and '.join(said)} exclude each other; say one")
    if options.topics and options.topics_pattern is not None:
        raise ConfigError("options topics and topicsPattern exclude each other; say one")
    if options.servers is not None and options.path:
        raise ConfigError("options servers and path exclude each other; read one of them")


_BY_TOPIC: Final = (
    "starting_offsets",
    "ending_offsets",
    "starting_offsets_by_timestamp",
    "ending_offsets_by_timestamp",
)
_ENDS: Final = ("ending_offsets", "ending_timestamp", "ending_offsets_by_timestamp")


def _check_places(options: Options) -> None:
    """Refuse an offset for a topic that is not read: it would begin somewhere else, unnoticed."""
    for attribute in _BY_TOPIC:
        said = getattr(options, attribute)
        for topic in said if isinstance(said, Mapping) else ():
            if not options.wants(topic):
                read = options.topics_pattern or ", ".join(options.topics)
                raise ConfigError(
                    f"{NAMES[attribute]} names topic {shorten(topic)}, and the query reads {read}"
                )


def _check_group(options: Options) -> None:
    if options.commit_group is not None and options.commit_coordinator is None:
        raise ConfigError(
            "commitGroup needs commitCoordinator, where the groups' coordinator is: host:port of "
            "`lwp group serve`"
        )
    if options.commit_coordinator is not None and options.commit_group is None:
        raise ConfigError("commitCoordinator is for commitGroup: say that, too")
    if options.commit_group is not None and options.path:
        raise ConfigError("commitGroup is for topics at a server, and this query reads files")


def _spoken(attribute: str) -> str:
    head, *rest = attribute.split("_")
    return head + "".join(part.capitalize() for part in rest)


OPTIONS: Final[Mapping[str, Option]] = {
    each.name: each.metadata[MEANING]
    for each in dataclasses.fields(Options)
    if MEANING in each.metadata
}
"""The declaration of each option, by its attribute."""
NAMES: Final = {attribute: _spoken(attribute) for attribute in OPTIONS}
"""How each attribute of `Options` is said."""
_ATTRIBUTES: Final = {name.lower(): attribute for attribute, name in NAMES.items()} | {
    other.lower(): attribute for attribute, each in OPTIONS.items() for other in each.other_names
}
