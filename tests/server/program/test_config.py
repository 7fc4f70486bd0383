"""Options: how they are written and which are refused."""

import re
from pathlib import Path

import click
import pytest

from lance_server.config.settings import Address, ServerConfig, parse_size
from lance_server.errors import ConfigError
from lance_server.offline.commands import NAMES
from lance_server.server_command import command
from lance_spec.dialect import DEPLOYED, SPECIFIED


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:1992", Address("127.0.0.1", 1992)),
        ("localhost:0", Address("localhost", 0)),
        ("[::1]:65535", Address("::1", 65535)),
    ],
)
def test_addresses_are_read_and_written_alike(text: str, address: Address) -> None:
    """IPv6 stands in brackets."""
    assert Address.parse(text) == address
    assert str(address) == text


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "::1:1", "host:x", "host:70000"])
def test_other_text_is_no_address(text: str) -> None:
    """The message shows what was given."""
    with pytest.raises(ConfigError, match=f"'{text}'"):
        Address.parse(text)


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("64KiB", 65536), ("1 MiB", 1 << 20), ("2gib", 2 << 30), ("7B", 7)]
)
def test_sizes_are_read(text: str, size: int) -> None:
    """In bytes or binary units."""
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "1.5MiB", "1MB", "KiB"])
def test_other_text_is_no_size(text: str) -> None:
    """Decimal units are refused rather than guessed at."""
    with pytest.raises(ConfigError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize(
    "options",
    [
        {"dialect": "x"},
        {"max_payload": 1},
        {"segment_size": 0},
        {"max_connections": 0},
        {"dedup_entries": -1},
        {"drain_timeout": -1.0},
        {"idle_timeout": 0.0},
    ],
)
def test_impossible_options_are_refused(options: dict[str, object]) -> None:
    """At once, and by name."""
    with pytest.raises(ConfigError, match=next(iter(options))):
        ServerConfig(data_dir=Path("/data"), **options)  # type: ignore[arg-type]


def test_the_dialects_follow_from_the_options() -> None:
    """Auto is every preset; limits are put into each."""
    assert ServerConfig(data_dir=Path("/data")).dialects == (SPECIFIED, DEPLOYED)
    (pinned,) = ServerConfig(data_dir=Path("/data"), dialect="deployed", max_payload=4096).dialects
    assert (pinned.name, pinned.max_payload) == ("deployed", 4096)


def test_the_help_lists_the_commands() -> None:
    """Nobody finds ``dump`` or ``repair`` otherwise."""
    text = command.get_help(click.Context(command)).split("\nCommands on data directories")[1]
    assert set(re.findall(r"^  ([a-z-]+)  +[A-Z]", text, re.MULTILINE)) == NAMES


def test_an_option_of_other_servers_is_answered_with_ours() -> None:
    """``--port`` is no ``--port-file``."""
    with pytest.raises(click.NoSuchOption) as caught:
        command.make_context("lance-server", ["--port", "5"])
    assert caught.value.format_message() == "No such option '--port'. Did you mean '--listen'?"


def test_the_help_groups_the_options_by_what_they_are_about() -> None:
    """Eighty options in one list are not read."""
    text = command.get_help(click.Context(command))
    titles = re.findall(r"^([A-Z][a-z ]+):$", text, re.MULTILINE)
    assert titles == [
        *("Options", "Storage", "Network", "Limits", "Security", "Operation"),
        *("Other protocols", "Cluster", "Commands on data directories and running servers"),
    ]
    options = text.split("\nOptions:\n")[1].split("\nStorage:\n")[0]
    assert re.findall(r"^  (--[a-z-]+)", options, re.MULTILINE) == [
        *("--config", "--check-config", "--version", "--help"),
    ]
