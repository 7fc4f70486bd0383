"""The value of ``--cluster``, and the settings of a topic that keep what was acknowledged."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from lance_server.cluster.kafka_log.settings import (
    NEW_TOPIC,
    KafkaAddress,
    TopicFacts,
    durability,
    problems,
)
from lance_server.cluster.log_address import OURS, MemoryAddress, parse_address
from lance_server.errors import ConfigError
from lance_server.server_command import command

SAFE = TopicFacts(
    topic="lance",
    topic_id="HPAVe4ldSICzQYEILPg9JA",
    replicas=[3],
    settings=NEW_TOPIC,
    brokers={1: {"socket.request.max.bytes": "104857600"}},
)


class TestAddress:
    """What an address says, and what is refused."""

    def test_brokers_get_the_usual_port(self) -> None:
        """A broker without a port is reached at 9092."""
        found = parse_address("kafka://a,b:9000,[::1]/lance")
        assert found == KafkaAddress("a:9092,b:9000,[::1]:9092", "lance")

    def test_settings_stand_in_the_query(self) -> None:
        """They are those of the client of the log."""
        found = parse_address("kafka://a/lance?security.protocol=SSL")
        assert isinstance(found, KafkaAddress)
        assert found.settings == {"security.protocol": "SSL"}

    def test_settings_stand_in_a_file(self, tmp_path: Path) -> None:
        """Passwords do not belong into an address."""
        path = tmp_path / "client.properties"
        path.write_text("# a comment\n\nsasl.username = lance\nsasl.password=a=b\n")
        found = parse_address("kafka://a/lance", path)
        assert isinstance(found, KafkaAddress)
        assert found.settings == {"sasl.username": "lance", "sasl.password": "a=b"}
        assert "a=b" not in repr(found)

    def test_a_log_in_memory_has_a_name(self) -> None:
        """For trials within one process."""
        assert parse_address("memory://trial") == MemoryAddress("trial")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("lance", "is not the address of a cluster's log"),
            ("http://a/lance", "is not the address of a cluster's log"),
            ("kafka://a", "is not the address of a cluster's log"),
            ("kafka:///lance", "is not the address of a cluster's log"),
            ("kafka://a,,b/lance", "names an empty host"),
            ("kafka://u:p@a/lance", "do not belong into the address"),
            ("kafka://a/two words", "is not a name of a Kafka topic"),
            ("kafka://a/..", "is not a name of a Kafka topic"),
        ],
    )
    def test_what_is_something_else_is_refused(self, text: str, words: str) -> None:
        """With what to write instead."""
        with pytest.raises(ConfigError, match=words):
            parse_address(text)

    @pytest.mark.parametrize("name", sorted(OURS))
    def test_what_an_acknowledgement_rests_on_is_not_set(self, name: str) -> None:
        """The server sets it itself."""
        with pytest.raises(ConfigError, match=f"'{name}' of the log's client is set by"):
            parse_address(f"kafka://a/lance?{name}=1")

    def test_a_file_of_something_else_is_refused(self, tmp_path: Path) -> None:
        """With the line."""
        path = tmp_path / "client.properties"
        path.write_text("a=b\nnothing\n")
        with pytest.raises(ConfigError, match=r"client\.properties, line 2"):
            parse_address("kafka://a/lance", path)


class TestSettings:
    """Which settings of a topic keep what was acknowledged."""

    def test_what_init_makes_is_safe(self) -> None:
        """There is nothing to mend."""
        assert problems(SAFE) == []

    @pytest.mark.parametrize("name", sorted(NEW_TOPIC))
    def test_a_setting_that_cannot_be_read_is_a_problem(self, name: str) -> None:
        """Whatever is not known is not safe."""
        settings = {each: value for each, value in NEW_TOPIC.items() if each != name}
        (problem,) = problems(replace(SAFE, settings=settings))
        assert problem.startswith(f"{name} is not known")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("cleanup.policy", "compact"),
            ("cleanup.policy", "compact,delete"),
            ("retention.ms", "604800000"),
            ("retention.bytes", "1"),
            ("message.timestamp.type", "CreateTime"),
            ("min.insync.replicas", "1"),
            ("unclean.leader.election.enable", "true"),
            ("max.message.bytes", "1048588"),
            ("max.message.bytes", str(17 * 1024 * 1024)),
            ("flush.messages", "9223372036854775807"),
        ],
    )
    def test_a_setting_that_loses_records_is_a_problem(self, name: str, value: str) -> None:
        """It is named, with what to set instead."""
        (problem,) = problems(replace(SAFE, settings={**NEW_TOPIC, name: value}))
        assert problem.startswith(f"{name} is {value}")
        assert "set it to" in problem

    @given(st.lists(st.integers(0, 5), max_size=4))
    def test_every_partition_needs_three_replicas(self, replicas: list[int]) -> None:
        """One with fewer is a problem."""
        found = problems(replace(SAFE, replicas=replicas))
        assert bool(found) == (min(replicas, default=0) < 3)

    def test_a_topic_without_an_id_is_a_problem(self) -> None:
        """One that is made again could not be told apart."""
        for topic_id in ("", "AAAAAAAAAAAAAAAAAAAAAA"):
            (problem,) = problems(replace(SAFE, topic_id=topic_id))
            assert "no id" in problem

    def test_brokers_must_take_the_largest_record(self) -> None:
        """The broker is named."""
        brokers = {**SAFE.brokers, 2: {"socket.request.max.bytes": "1000000"}}
        (problem,) = problems(replace(SAFE, brokers=brokers))
        assert problem.startswith("socket.request.max.bytes of broker 2 is 1000000")

    def test_brokers_that_tell_nothing_are_a_problem(self) -> None:
        """At least one must."""
        (problem,) = problems(replace(SAFE, brokers={}))
        assert "no broker told its settings" in problem

    def test_operators_are_told_what_is_survived(self) -> None:
        """With syncing brokers a loss of power everywhere, too."""
        assert "the loss of 1 of them, and a loss of power everywhere" in durability(SAFE)
        lazy = {**NEW_TOPIC, "flush.messages": "9223372036854775807"}
        assert "but not a loss of power" in durability(replace(SAFE, settings=lazy))


class TestCommand:
    """Options of a node that make no sense end the command."""

    @pytest.fixture
    def options(self, tmp_path: Path) -> list[str]:
        """The least that a server needs."""
        return ["--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0"]

    @pytest.mark.parametrize(
        "option", [["--advertise", "a:1"], ["--engine-unsafe"], ["--cluster-config", __file__]]
    )
    def test_options_of_a_node_need_a_cluster(self, options: list[str], option: list[str]) -> None:
        """Alone they say nothing."""
        result = CliRunner().invoke(command, options + option)
        assert result.exit_code == 2
        assert f"{option[0]} is for a node of a cluster; add --cluster" in result.output

    def test_a_node_needs_a_number(
        self, options: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where the host's name has none."""
        monkeypatch.setenv("HOSTNAME", "host")
        result = CliRunner().invoke(command, [*options, "--cluster", "memory://x"])
        assert result.exit_code == 2
        assert "add --node-id" in result.output

    def test_a_node_needs_an_address_that_others_reach(self, options: list[str]) -> None:
        """One that listens everywhere says where it is."""
        options[-1] = "0.0.0.0:0"
        result = CliRunner().invoke(
            command, [*options, "--node-id", "1", "--cluster", "memory://x"]
        )
        assert result.exit_code == 2
        assert "add --advertise HOST:PORT" in result.output

    def test_an_address_of_something_else_is_refused(self, options: list[str]) -> None:
        """With an example."""
        result = CliRunner().invoke(command, [*options, "--node-id", "1", "--cluster", "here"])
        assert result.exit_code == 2
        assert "kafka://broker1,broker2,broker3/lance" in result.output
