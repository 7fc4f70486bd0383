"""Options are what users of the Kafka connector expect, and wrong ones say what is right."""

import dataclasses
from datetime import UTC, datetime

import pytest

from lance_sdk.errors import ConfigError
from lance_sdk.spark.options import OPTIONS, Options

HERE = {"servers": "localhost:1992", "topic": "orders"}


def test_case_does_not_matter() -> None:
    """Spark hands options on in any case."""
    assert Options.parse({"FETCHBYTES": "1MiB"}).fetch_bytes == 1 << 20


@pytest.mark.parametrize("said", ["topic", "topics"])
def test_one_topic_or_several(said: str) -> None:
    """Both words take a list."""
    assert Options.parse({said: "a, b"}).topics == ("a", "b")


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("server", "did you mean 'servers'"),
        ("startingOfsets", "did you mean 'startingOffsets'"),
        ("subscribe", "the Kafka connector's; here it is 'topics'"),
        ("kafka.bootstrap.servers", "here it is 'servers'"),
        ("includeHeaders", "records of LWP have no headers; leave it out"),
        ("kafka.group.id", "commits as a group where commitGroup names one; leave it out"),
        ("zzz", "there are batchBytes"),
    ],
)
def test_an_unknown_option_is_refused_with_a_suggestion(said: str, hint: str) -> None:
    """Silence would read something else than was asked for."""
    with pytest.raises(ConfigError, match=hint):
        Options.parse({said: "x"})


@pytest.mark.parametrize("said", ["checkpointLocation", "path", "paths"])
def test_sparks_own_options_pass(said: str) -> None:
    """They are not for the source."""
    Options.parse({said: '["/a"]'})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("maxBytesPerTrigger", "0"),
        ("maxBytesPerTrigger", "lots"),
        ("minPartitions", "-1"),
        ("minPartitions", "0"),
        ("minPartitions", "\u0661"),
        ("minPartitions", "9" * 5000),
        ("failOnDataLoss", "maybe"),
        ("semantics", "exactly_once"),
        ("onDamage", "ignore"),
        ("startingOffsets", "first"),
        ("startingOffsets", '{"orders": -3}'),
        ("startingOffsets", '{"orders": true}'),
        ("startingOffsets", "[1]"),
        ("startingTimestamp", "2026-01-31T12:00:00"),
        ("startingTimestamp", "9" * 18),
        ("topicsPattern", "("),
        ("topics", " , "),
        ("columns", "topic,nonsense"),
        ("fetchBytes", "1GiB"),
        ("catchUpTimeout", "soon"),
        ("token", ""),
        ("paths", "no json"),
    ],
)
def test_a_value_that_does_not_fit_names_its_option(name: str, text: str) -> None:
    """What it must be stands in the message; a secret never does."""
    with pytest.raises(ConfigError) as caught:
        Options.parse({name: text})
    assert name in str(caught.value) or name == "columns"
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ('{"orders": 42}', 42),
        ('{"orders": {"0": 42}}', 42),
        ('{"orders": -2}', "earliest"),
        ('{"orders": -1}', "latest"),
        ('{"orders": "latest"}', "latest"),
        ('{"others": 42}', "earliest"),
    ],
)
def test_where_to_begin(text: str, where: object) -> None:
    """In Kafka's words, whose partition 0 is the topic."""
    assert Options.parse({"startingOffsets": text}).start("orders") == where


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00Z", "1769860800000"])
def test_a_time_is_iso_8601_or_milliseconds(text: str) -> None:
    """As in Kafka, and as people write it."""
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert Options.parse({"startingTimestamp": text}).start("orders") == moment


@pytest.mark.parametrize("said", ['{"orders": 1769860800000}', '{"orders": {"0": 1769860800000}}'])
def test_a_time_may_be_said_for_each_topic(said: str) -> None:
    """As for Kafka; other topics are read from their beginning to their end."""
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    options = Options.parse({"startingOffsetsByTimestamp": said, "endingOffsetsByTimestamp": said})
    assert (options.start("orders"), options.end("orders")) == (moment, moment)
    assert (options.start("other"), options.end("other")) == ("earliest", "latest")


@pytest.mark.parametrize(
    ("text", "size"),
    [("300k", 300 << 10), ("1g", 1 << 30), ("5 mb", 5 << 20), ("64KiB", 64 << 10), ("1MB", 10**6)],
)
def test_sizes_are_written_as_for_spark_or_with_their_unit(text: str, size: int) -> None:
    """In Spark's words k is 1024."""
    assert Options.parse({"maxBytesPerTrigger": text}).max_bytes_per_trigger == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30 seconds", 30), ("1 minute", 60), ("500 milliseconds", 0.5), ("2h", 7200), ("100ms", 0.1)],
)
def test_durations_are_written_as_for_spark_or_with_their_unit(text: str, seconds: float) -> None:
    """In words, or short."""
    assert Options.parse({"catchUpTimeout": text}).catch_up_timeout == seconds


def test_a_duration_without_a_unit_is_seconds_and_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Who knows Kafka's options may mean milliseconds."""
    assert Options.parse({"pollInterval": "100"}).poll_interval == 100
    assert "pollInterval=100 is taken as 100 seconds; write 100s or 100ms" in caplog.text


@pytest.mark.parametrize(
    "pair",
    [
        {"startingOffsets": "latest", "startingTimestamp": "0"},
        {"endingOffsets": "latest", "endingTimestamp": "0"},
        {"startingTimestamp": "0", "startingOffsetsByTimestamp": '{"a": 0}'},
        {"topics": "a", "topicsPattern": "b"},
        {"servers": "a", "path": "/b"},
    ],
)
def test_options_that_contradict_each_other_are_refused(pair: dict[str, str]) -> None:
    """Rather than one of them forgotten."""
    with pytest.raises(ConfigError, match="exclude each other"):
        Options.parse(pair)


def test_a_pattern_matches_whole_names() -> None:
    """So that a prefix says that it is one."""
    options = Options.parse({"topicsPattern": "a.*"})
    assert options.wants("ab")
    assert not options.wants("ba")


def test_a_token_is_not_shown() -> None:
    """Neither in the repr nor in the URL."""
    options = Options.parse({**HERE, "token": "s3cret"})
    assert "s3cret" not in repr(options)
    assert "s3cret" not in str(options.url("orders"))


def test_without_a_place_to_read_the_error_says_so() -> None:
    """Servers or a path."""
    with pytest.raises(ConfigError, match="option servers=host:port, or a path"):
        Options.parse({"topic": "orders"}).url()


def test_every_field_is_an_option_that_says_what_it_does() -> None:
    """The table of the documentation is made of the declarations; the rest is Spark's own."""
    fields = {each.name for each in dataclasses.fields(Options)}
    assert fields - set(OPTIONS) == {"path", "checkpoint"}
    assert all(each.help.endswith(".") for each in OPTIONS.values())


@pytest.mark.parametrize("which", [{"topics": "orders,returns"}, {"topicsPattern": "o.*|r.*"}])
@pytest.mark.parametrize("name", ["startingOffsets", "endingOffsets"])
def test_an_offset_for_a_topic_that_is_not_read_is_refused(
    which: dict[str, str], name: str
) -> None:
    """A slip in a name would have the topic read from somewhere else."""
    assert Options.parse({**which, name: '{"returns": 5}'}).topics_pattern == which.get(
        "topicsPattern"
    )
    with pytest.raises(ConfigError, match=f"{name} names topic 'Orders', and the query reads o"):
        Options.parse({**which, name: '{"Orders": 5}'})


def test_what_spark_adds_to_a_tables_options_is_passed_over() -> None:
    """A table of the catalog has properties of its own; its options come with a prefix."""
    said = {"provider": "lwp", "owner": "root", "option.topic": "a", "option.Servers": "b:1"}
    found = Options.parse(said)
    assert (found.topics, found.servers) == (("a",), "b:1")
    assert Options.parse({**said, "topic": "c"}).topics == ("c",)
    with pytest.raises(ConfigError, match="unknown option 'fetchBites'"):
        Options.parse({"option.fetchBites": "1"})
