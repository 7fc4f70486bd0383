"""The bytes that ``lwp explain`` is given, and what it says of them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from lance_sdk.cli import _explain

Call = Callable[..., Result]

KEEPALIVE = "4c414e43 01 20 0000 0b8ba2a3" + "00" * 32
"""LWP appendix A.1 with the header CRC that CRC32C gives (AMB-02)."""


def explained(result: Result) -> dict[str, str]:
    """Field names and their hexadecimal bytes, of the first frame."""
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["parts"][0]["rows"]
    return {row["field"]: row["hex"].replace(" ", "") for row in rows}


@pytest.mark.parametrize(
    "text",
    [
        KEEPALIVE.replace(" ", ""),
        KEEPALIVE.upper(),
        "0x" + KEEPALIVE.replace(" ", " 0x"),
        ":".join(bytes.fromhex(KEEPALIVE).hex()[i : i + 2] for i in range(0, 88, 2)),
        bytes.fromhex(KEEPALIVE).hex(",") + "\n",
    ],
    ids=["plain", "capital", "0x", "colons", "commas"],
)
def test_hexadecimal_may_be_written_in_any_common_way(lwp: Call, text: str) -> None:
    """As dumps come out of other tools."""
    assert explained(lwp("explain", text, "--json"))["header_crc"] == "0b8ba2a3"


def test_bytes_may_be_separate_arguments(lwp: Call) -> None:
    """Nobody has to quote."""
    assert explained(lwp("explain", *KEEPALIVE.split(), "--json"))["magic"] == "4c414e43"


def test_text_names_kind_and_dialect(lwp: Call) -> None:
    """For people: the frame's kind and each field by name."""
    shown = lwp("explain", KEEPALIVE).stdout
    assert "KEEPALIVE" in shown
    assert "specified" in shown
    assert "payload_crc" in shown


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "hexadecimal"])
def test_a_file_may_hold_the_bytes_or_their_dump(lwp: Call, tmp_path: Path, binary: bool) -> None:
    """A frame begins with LANC, which is not a hexadecimal."""
    file = tmp_path / "capture"
    file.write_bytes(bytes.fromhex(KEEPALIVE) if binary else KEEPALIVE.encode())
    assert explained(lwp("explain", f"@{file}", "--json"))["flags"] == "20"


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "hexadecimal"])
def test_stdin_may_hold_the_bytes_or_their_dump(lwp: Call, binary: bool) -> None:
    """As in xxd -p capture.bin | lwp explain -."""
    stdin = bytes.fromhex(KEEPALIVE) if binary else KEEPALIVE.encode()
    assert explained(lwp("explain", "-", "--json", stdin=stdin))["flags"] == "20"


def test_a_fault_is_named_and_no_failure(lwp: Call) -> None:
    """The command did what it was asked to."""
    result = lwp("explain", KEEPALIVE.replace("0b8b", "ffff"))
    assert result.exit_code == 0
    assert "header_crc" in result.stdout.splitlines()[-1]


@pytest.mark.parametrize("arguments", [["explain", ""], ["explain", "-"]])
def test_nothing_to_explain_is_wrong_usage(lwp: Call, arguments: list[str]) -> None:
    """Rather than an empty answer."""
    result = lwp(*arguments, stdin=b"")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no bytes to explain" in result.stderr


def test_endless_input_is_refused(lwp: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded whatever is piped in."""
    monkeypatch.setattr(_explain, "_LIMIT", 1000)
    result = lwp("explain", "@/dev/zero")
    assert result.exit_code == 1
    assert "/dev/zero holds more than 2000 bytes" in result.stderr


def test_a_file_without_the_at_sign_gets_a_hint(lwp: Call, tmp_path: Path) -> None:
    """What the user most likely meant."""
    file = tmp_path / "capture"
    file.write_bytes(b"")
    assert f"to read a file, write @{file}" in lwp("explain", str(file)).stderr
