"""``lwp explain --as`` and ``lwp vectors``, as somebody types them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lance_sdk.cli._app import lwp
from lance_spec.messages.engine import SecondaryIndexEntry
from lance_spec.messages.fluvio import FetchOffsetsRequest


def call(*arguments: str, stdin: bytes = b"") -> Result:
    """What a command prints and how it ends."""
    return CliRunner().invoke(lwp, arguments, input=stdin)


def test_a_message_is_named_with_its_version() -> None:
    """FLV-01: version 23 alone carries a consumer."""
    asked = FetchOffsetsRequest(topics=[], consumer_id="me").encode(23).hex()
    name = "fluvio.FetchOffsetsRequest"
    seen = call("explain", "--as", name, "--version-of-protocol", "23", asked, "--json")
    assert json.loads(seen.stdout)["faults"] == []
    older = call("explain", "--as", name, asked, "--json")
    assert json.loads(older.stdout)["firstBroken"]["field"] == "extra"


@pytest.mark.parametrize("name", ["1.secondary.idx", "x/.lock.pid"])
def test_a_file_is_known_by_its_name(name: str, tmp_path: Path) -> None:
    """Also one whose bytes happen to be hexadecimal digits."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    entry = SecondaryIndexEntry(server_time_ns=0x3030303030303030, offset=0x3131313131313131)
    path.write_bytes(entry.encode() if name.endswith("idx") else b"1234\n")
    seen = call("explain", f"@{path}")
    assert seen.exit_code == 0
    assert "No faults" in seen.stdout


def test_an_unknown_form_is_wrong_usage() -> None:
    """The error lists the forms there are."""
    seen = call("explain", "--as", "nothing", "00")
    assert seen.exit_code == 2
    assert "secondary-index" in seen.output


def test_vectors_are_listed() -> None:
    """By family, with their number."""
    seen = call("vectors", "list", "--family", "crc")
    assert seen.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [((), 0), (("--help",), 0), (("bogus",), 2), (("list", "--family", "none"), 2)],
)
def test_the_command_ends_as_its_actions_do(arguments: tuple[str, ...], code: int) -> None:
    """Help is no failure, wrong usage is one."""
    assert call("vectors", *arguments).exit_code == code
