"""The commands against a real server."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from lance_sdk import Client
from lance_sdk._protocol.consume import consume_errors
from lance_sdk.cli.admin import topics

Call = Callable[..., Result]
NOBODY = "lance://127.0.0.1:1"


@pytest.fixture
def orders(server: Any, lwp: Call) -> str:
    """URL of a topic with three records."""
    url = f"{server.url}/orders"
    result = lwp("produce", url, "--create-topic", "-q", stdin="one\ntwo\nthree\n")
    assert (result.exit_code, result.output) == (0, "")
    return url


def objects(result: Result) -> Any:
    """The JSON lines on stdout."""
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def table(result: Result) -> list[list[str]]:
    """The cells of a plain table, without its headings."""
    assert result.exit_code == 0, result.output
    return [re.split(r" {2,}", line.strip()) for line in result.stdout.splitlines()[1:]]


@pytest.mark.usefixtures("server")
class TestTopics:
    """lwp topics."""

    def test_a_created_topic_is_listed(self, lwp: Call) -> None:
        """With its id, and no records yet."""
        assert lwp("topics", "create", "orders").stdout == "created topic orders (id 1)\n"
        ((number, name, records, size, _created),) = table(lwp("topics", "list"))
        assert (number, name, records, size) == ("1", "orders", "0", "0")

    def test_the_list_of_no_topics_says_how_to_create_one(self, lwp: Call) -> None:
        """On stderr, so that stdout stays an empty list."""
        result = lwp("topics", "list")
        assert (result.exit_code, result.stdout) == (0, "")
        assert "lwp topics create NAME" in result.stderr

    def test_json_lists_are_arrays_of_what_the_server_tells(self, lwp: Call) -> None:
        """The fields have the protocol's names."""
        lwp("topics", "create", "orders", "-q")
        ((topic,),) = objects(lwp("topics", "list", "--json"))
        assert (topic["id"], topic["name"], topic["end_offset"]) == (1, "orders", 0)

    def test_show_tells_records_and_offsets(self, lwp: Call) -> None:
        """One field a line."""
        lwp("produce", "orders", "--create-topic", stdin="one\ntwo\n")
        shown = dict(table(lwp("topics", "show", "orders")))
        assert (shown["records"], shown["end offset"]) == ("2", "16")

    def test_retention_is_told_to_the_server(self, lwp: Call) -> None:
        """Ages and sizes have units."""
        lwp("topics", "create", "orders", "--max-age", "7d", "--max-bytes", "1MiB")
        (topic,) = objects(lwp("topics", "show", "orders", "--json"))
        assert (topic["max_age_secs"], topic["max_bytes"]) == (604_800, 1_048_576)

    def test_a_deleted_topic_is_gone(self, lwp: Call) -> None:
        """Nothing is asked where nobody could answer."""
        lwp("topics", "create", "orders")
        assert lwp("topics", "delete", "orders").stdout == "deleted topic orders (id 1)\n"
        assert lwp("topics", "show", "orders").exit_code == 1

    @pytest.mark.parametrize(("answer", "code", "left"), [("y", 0, 0), ("n", 1, 1), ("", 1, 1)])
    def test_deleting_asks_where_somebody_can_answer(
        self,
        lwp: Call,
        monkeypatch: pytest.MonkeyPatch,
        answer: str,
        code: int,
        left: int,
    ) -> None:
        """Anything but yes leaves the topic alone."""
        lwp("topics", "create", "orders")
        monkeypatch.setattr(topics, "_somebody_is_there", lambda: True)
        result = lwp("topics", "delete", "orders", stdin=f"{answer}\n")
        assert result.exit_code == code
        assert "delete topic orders and all its records at lance://127.0.0.1:" in result.stderr
        assert len(json.loads(lwp("topics", "list", "--json").stdout)) == left

    def test_yes_answers_in_advance(self, lwp: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        """For those who know."""
        lwp("topics", "create", "orders")
        monkeypatch.setattr(topics, "_somebody_is_there", lambda: True)
        result = lwp("topics", "delete", "orders", "--yes")
        assert (result.exit_code, result.stderr) == (0, "")

    def test_creating_a_topic_twice_fails(self, lwp: Call) -> None:
        """The server says no: exit code 1, one line."""
        lwp("topics", "create", "orders")
        result = lwp("topics", "create", "orders")
        assert (result.exit_code, result.stdout) == (1, "")
        assert re.fullmatch(r"error: .*exists already.*\n", result.stderr)

    def test_a_missing_topic_says_how_to_create_it(self, lwp: Call) -> None:
        """The very command, with the server's address."""
        result = lwp("topics", "show", "nothing")
        assert result.exit_code == 1
        assert "lwp topics create nothing --url lance://127.0.0.1:" in result.stderr

    def test_a_partitioned_topic_is_handled_as_one(self, lwp: Call) -> None:
        """Created, shown, limited, extended and deleted by its name."""
        assert lwp("topics", "create", "parts", "--partitions", "2").stdout == (
            "created topic parts (2 partitions)\n"
        )
        assert "parts-1" in lwp("topics", "list").stdout
        assert "id 1, 0 records" in lwp("topics", "show", "parts").stdout
        assert lwp("topics", "add-partitions", "parts", "3").exit_code == 0
        assert lwp("topics", "retention", "parts", "--max-age", "1d").exit_code == 0
        assert "86,400 s" in lwp("topics", "show", "parts-2").stdout
        assert lwp("topics", "delete", "--yes", "parts").exit_code == 0
        assert "parts" not in lwp("topics", "list").stdout

    def test_names_may_be_any_text(self, lwp: Call) -> None:
        """AMB-24: UTF-8 without control characters and slashes; never markup."""
        for name in ("[red]x", "größe 5", "100%"):
            assert lwp("topics", "create", name).exit_code == 0
            assert lwp("produce", name, stdin="x\n").exit_code == 0
            assert lwp("consume", name, "-q").stdout == "x\n"


class TestProduceAndConsume:
    """lwp produce and lwp consume."""

    def test_lines_come_back_as_lines(self, orders: str, lwp: Call) -> None:
        """In order, to the current end; the summary is on stderr."""
        result = lwp("consume", orders)
        assert (result.exit_code, result.stdout) == (0, "one\ntwo\nthree\n")
        assert result.stderr.startswith("read 3 records (11 B) in ")

    def test_produce_sums_up_on_stderr(self, server: Any, lwp: Call) -> None:
        """Stdout stays empty."""
        result = lwp("produce", f"{server.url}/t", "--create-topic", stdin="a\nb\n")
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr.startswith("stored 2 records (2 B) in ")

    def test_produce_sums_up_in_json(self, server: Any, lwp: Call) -> None:
        """For scripts."""
        (summary,) = objects(
            lwp("produce", f"{server.url}/t", "--create-topic", "--json", stdin="a\nb\n")
        )
        assert (summary["records"], summary["stored"]) == (2, 2)

    def test_a_topic_may_be_named_alone(self, orders: str, lwp: Call) -> None:
        """The server is that of --url or LANCE_URL."""
        assert lwp("consume", "orders", "-q").stdout == "one\ntwo\nthree\n"
        assert lwp("consume", "-q", "--url", orders).stdout == "one\ntwo\nthree\n"

    def test_a_url_option_goes_before_the_environment(self, orders: str, lwp: Call) -> None:
        """LANCE_URL is a default."""
        assert lwp("consume", "orders", "--url", NOBODY).exit_code == 3
        assert lwp("consume", orders, "-q").exit_code == 0

    def test_json_lines_have_topic_offset_type_and_value(self, orders: str, lwp: Call) -> None:
        """The offset leads back to the record."""
        found = objects(lwp("consume", orders, "--json"))
        assert [(each["offset"], each["value"]) for each in found] == [
            (0, "one"),
            (8, "two"),
            (16, "three"),
        ]
        assert found[0] | {"offset": 0} == {
            "topic": "orders",
            "offset": 0,
            "type": "raw_data",
            "encoding": "utf-8",
            "value": "one",
        }

    def test_consume_begins_where_it_is_told(self, orders: str, lwp: Call) -> None:
        """At a record's offset, or at the end."""
        assert lwp("consume", orders, "--from", "8", "-q").stdout == "two\nthree\n"
        assert lwp("consume", orders, "--from", "end", "-q").stdout == ""

    def test_an_offset_beyond_the_end_is_refused(
        self, orders: str, lwp: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing read and all well would be a lie (AMB-31)."""
        monkeypatch.setattr(consume_errors, "BELIEVED_AFTER", 0.0)
        result = lwp("consume", orders, "--from", "20000")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "the log ends at 26, before the position 20000" in result.stderr
        assert "begin elsewhere with --from" in result.stderr

    @pytest.mark.parametrize("place", ["-1", "x", "9" * 5000])
    def test_a_place_that_is_none_is_wrong_usage(self, orders: str, lwp: Call, place: str) -> None:
        """Also a number that Python itself refuses to read."""
        assert lwp("consume", orders, "--from", place).exit_code == 2

    def test_an_offset_inside_a_record_is_refused(self, orders: str, lwp: Call) -> None:
        """Better than garbage (AMB-19)."""
        result = lwp("consume", orders, "--from", "9")
        assert (result.exit_code, result.stdout) == (1, "")
        assert re.fullmatch(r"error: .*\b9\b.*--json shows\n", result.stderr)

    @pytest.mark.parametrize(("limit", "expected"), [(1, "one\n"), (2, "one\ntwo\n")])
    def test_consume_stops_after_so_many(
        self, orders: str, lwp: Call, limit: int, expected: str
    ) -> None:
        """Also in the middle of what one Fetch brought."""
        assert lwp("consume", orders, "-n", str(limit), "-q").stdout == expected

    def test_following_stops_after_so_many_too(self, orders: str, lwp: Call) -> None:
        """Even at the end of the topic, where it would wait for more."""
        assert lwp("consume", orders, "-f", "-n", "3", "-q").stdout == "one\ntwo\nthree\n"

    def test_records_of_a_partitioned_topic_go_by_their_keys(self, server: Any, lwp: Call) -> None:
        """And come back from all partitions."""
        lwp("topics", "create", "parts", "--partitions", "4")
        lines = [f"key-{number % 5}:{number}" for number in range(20)]
        url = f"{server.url}/parts"
        made = lwp("produce", url, "--key-separator", ":", stdin="\n".join(lines))
        assert "stored 20 records" in made.stderr
        found = lwp("consume", url, "--key-separator", ":").stdout.splitlines()
        assert sorted(found) == sorted(lines)
        assert [each for each in found if each.startswith("key-3:")] == [
            f"key-3:{number}" for number in range(3, 20, 5)
        ]

    def test_all_records_can_have_one_key(self, orders: str, lwp: Call) -> None:
        """As a source that is one key by itself has."""
        lwp("produce", orders, "--key", "sensor-7", stdin="a:1\nb:2")
        found = lwp("consume", orders, "--key-separator", "=").stdout.splitlines()
        assert found[-2:] == ["sensor-7=a:1", "sensor-7=b:2"]

    def test_a_key_comes_from_one_place(self, orders: str, lwp: Call) -> None:
        """From the line, or from the command."""
        outcome = lwp("produce", orders, "--key", "k", "--key-separator", ":", stdin="a:1")
        assert (outcome.exit_code, "--key and --key-separator" in outcome.stderr) == (2, True)

    def test_printed_records_of_a_partitioned_topic_are_committed(
        self, server: Any, lwp: Call, tmp_path: Path
    ) -> None:
        """And no others."""
        lwp("topics", "create", "parts", "--partitions", "3")
        url = f"{server.url}/parts"
        lwp("produce", url, stdin="\n".join(str(number) for number in range(20)))
        kept = ("--consumer", "app", "--offsets", f"file:{tmp_path / 'offsets'}")
        first = lwp("consume", url, "-n", "8", *kept).stdout.splitlines()
        rest = lwp("consume", url, *kept).stdout.splitlines()
        assert len(first) == 8
        assert sorted(map(int, first + rest)) == list(range(20))

    def test_zero_bytes_separate_records_that_contain_newlines(
        self, server: Any, lwp: Call
    ) -> None:
        """What goes in with --null comes out with --null."""
        lwp("produce", "t", "--create-topic", "--null", stdin=b"a\nb\0\0c\0")
        assert lwp("consume", "t", "--null", "-q").stdout_bytes == b"a\nb\0\0c\0"
        assert server.url

    def test_any_bytes_survive(self, server: Any, lwp: Call) -> None:
        """Lines are bytes, not text."""
        line = bytes(set(range(256)) - {10}) + b"\n"
        lwp("produce", f"{server.url}/t", "--create-topic", stdin=line)
        assert lwp("consume", "t", "-q").stdout_bytes == line

    def test_json_records_are_stored_as_json(self, server: Any, lwp: Call) -> None:
        """The type is that of LWP section 8.2."""
        lwp("produce", f"{server.url}/t", "--create-topic", "--type", "json", stdin='{"a":1}\n')
        (found,) = objects(lwp("consume", "t", "--json"))
        assert (found["type"], found["value"]) == ("json", '{"a":1}')

    def test_what_stands_before_a_bad_line_is_stored(self, server: Any, lwp: Call) -> None:
        """The line is named, and the count of what is durable told."""
        result = lwp(
            "produce", f"{server.url}/t", "--create-topic", "--type", "json", stdin="1\n2\n{\n4\n"
        )
        assert result.exit_code == 1
        assert "error: line 3 is not JSON" in result.stderr
        assert "stored 2 records" in result.stderr
        assert lwp("consume", "t", "-q").stdout == "1\n2\n"

    def test_a_record_of_the_largest_size_passes(self, server: Any, lwp: Call) -> None:
        """16 MiB (LWP section 8.7); one byte more is refused by its line number."""
        line = b"x" * 16 * 1024 * 1024
        url = f"{server.url}/t"
        assert lwp("produce", url, "--create-topic", stdin=line + b"\n").exit_code == 0
        assert lwp("consume", url, "-q").stdout_bytes == line + b"\n"
        result = lwp("produce", url, stdin=b"ok\n" + line + b"x\n")
        assert result.exit_code == 1
        assert "error: line 2 is longer than the 16777216 bytes" in result.stderr

    def test_producing_into_a_missing_topic_says_how_to_create_it(
        self, server: Any, lwp: Call
    ) -> None:
        """Nothing is created unasked."""
        result = lwp("produce", f"{server.url}/nothing", stdin="x\n")
        assert result.exit_code == 1
        assert "lwp topics create nothing" in result.stderr
        assert "say --create-topic" in result.stderr
        assert "create_topic" not in result.stderr
        with Client(server.url) as client:
            assert client.list_topics() == []

    def test_consuming_a_missing_topic_advises_no_option_it_lacks(
        self, server: Any, lwp: Call
    ) -> None:
        """The name is quoted, so that the command can be pasted."""
        result = lwp("consume", f"{server.url}/not%20there")
        assert result.exit_code == 1
        assert f"`lwp topics create 'not there' --url {server.url}`" in result.stderr
        assert "create_topic" not in result.stderr
        assert "--create-topic" not in result.stderr

    def test_a_misspelt_topic_is_answered_with_the_one_that_is_there(
        self, server: Any, lwp: Call
    ) -> None:
        """Whoever reads does not want to create it."""
        with Client(server.url) as client:
            client.create_topic("orders")
        told = lwp("consume", f"{server.url}/ordrs").stderr
        assert f"does not exist at {server.url}; did you mean 'orders'?" in told

    @pytest.mark.parametrize("dialect", ["specified", "deployed"])
    def test_the_dialect_can_be_chosen(self, server: Any, lwp: Call, dialect: str) -> None:
        """Both work with a server that answers in kind."""
        arguments = (f"{server.url}/t", "--dialect", dialect)
        assert lwp("produce", *arguments, "--create-topic", stdin="x\n").exit_code == 0
        assert lwp("consume", *arguments, "-q").stdout == "x\n"


class TestPing:
    """lwp ping."""

    def test_every_answer_has_its_time(self, server: Any, lwp: Call) -> None:
        """And the last line sums up."""
        result = lwp("ping", "--url", server.url, "--count", "3", "--interval", "0")
        assert result.exit_code == 0
        *answers, last = result.stdout.splitlines()
        assert len(answers) == 3
        assert last.startswith("3 answers, min / median / max: ")

    def test_json_gives_seconds(self, server: Any, lwp: Call) -> None:
        """Numbers for monitoring."""
        (found,) = objects(lwp("ping", "--url", server.url, "-c", "3", "--interval", "0", "--json"))
        assert found["count"] == 3
        assert 0 < found["min_s"] <= found["median_s"] <= found["max_s"] < 30


@pytest.mark.parametrize(
    "arguments",
    [
        ["ping", "--url", NOBODY],
        ["topics", "list", "--url", NOBODY],
        ["produce", f"{NOBODY}/t"],
        ["consume", f"{NOBODY}/t"],
        ["demo", "--url", NOBODY, "--rows", "1"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_server_is_exit_code_3(lwp: Call, arguments: list[str]) -> None:
    """One line that names the address and the system's reason."""
    result = lwp(*arguments, stdin="")
    assert (result.exit_code, result.stdout) == (3, "")
    assert re.fullmatch(r"error: cannot connect to lance://127\.0\.0\.1:1\b.*\n", result.stderr)
    assert "refused" in result.stderr.lower()


@pytest.mark.parametrize("arguments", [["-vv", "ping"], ["ping", "-vv"], ["-v", "ping", "-v"]])
@pytest.mark.usefixtures("server")
def test_verbosity_counts_wherever_it_stands(lwp: Call, arguments: list[str]) -> None:
    """Log messages of the SDK go to stderr."""
    result = lwp(*arguments, "--count", "1")
    assert "DEBUG lance_sdk." in result.stderr
    assert "DEBUG" not in lwp("ping", "--count", "1").stderr


@pytest.fixture
def mute() -> Iterator[str]:
    """URL of something that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"lance://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("command", ["ping", "topics list", "consume t", "produce t"])
def test_a_mute_server_is_given_up_after_the_timeout(lwp: Call, mute: str, command: str) -> None:
    """No command hangs: exit code 3, one line."""
    arguments = [*command.split(), "--url", mute, "--timeout", "200ms"]
    result = lwp(*arguments, stdin="x\n")
    assert (result.exit_code, result.stdout) == (3, "")
    assert re.fullmatch(r"error: cannot connect to lance://127\.0\.0\.1:[^\n]+\n", result.stderr)
