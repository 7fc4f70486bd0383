"""``lwp sf``: what people see and what scripts read."""

import base64
import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from lance_sdk.cli import _app
from lance_sdk.journal import (
    Journal,
    JournalConfig,
    SlotKind,
    StoreAndForwardSender,
    read_dead_letters,
)
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.checksum import CRC32C
from lance_spec.enums import ErrorCode
from lance_spec.frames import Frame
from lance_spec.messages.qwp import QwpMessage

NOWHERE = "lance://127.0.0.1:1/readings"
Call = Callable[..., Result]


class Program(click.Command):
    """What a shell starts."""

    def __init__(self) -> None:
        super().__init__("lwp")

    def main(self, args: Any = None, *_more: object, **_options: object) -> Any:
        """Run and exit, as the console script does."""
        raise SystemExit(_app.run(args))


@pytest.fixture
def sf(monkeypatch: pytest.MonkeyPatch) -> Call:
    """Call ``lwp sf`` in this process."""
    monkeypatch.delenv("LANCE_URL", raising=False)
    return lambda *arguments: CliRunner().invoke(Program(), ["sf", *map(str, arguments)])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a slot of a few segments with 41 frames of two topics that nobody got yet."""
    path = tmp_path_factory.mktemp("made") / "slot"
    config = JournalConfig(segment_bytes=1024)
    with StoreAndForwardSender(NOWHERE, path, journal=config, close_timeout=0) as sender:
        for number in range(40):
            sender.send(b"value %d" % number)
        sender.send_many([b"x", b"y"], topic="other")
    return path


@pytest.fixture
def slot(made: Path, tmp_path: Path) -> Path:
    """Return a copy of it."""
    return shutil.copytree(made, tmp_path / "slot")


def content(folder: Path) -> dict[str, bytes]:
    """Every byte of a slot."""
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def flip(slot: Path) -> None:
    """Damage the first frame that holds ``value 3``."""
    for path in sorted(slot.glob("*.sfl")):
        data = bytearray(path.read_bytes())
        place = data.find(b"value 3")
        if place >= 0:
            data[place] ^= 1
            path.write_bytes(bytes(data))
            return


def test_inspect_json_has_the_promised_fields(sf: Call, slot: Path) -> None:
    """Scripts rely on these names."""
    found = json.loads(sf("inspect", slot, "--json").stdout)
    assert (found["frames"], found["first_fsn"], found["last_fsn"]) == (41, 0, 40)
    assert (found["acked_fsn"], found["problems"], found["failed"]) == (-1, [], None)
    assert found["segments"] == sorted(each.name for each in slot.glob("*.sfl"))
    assert [each["name"] for each in found["topics"]] == ["readings", "other"]
    assert found["kind"] == "lwp"


@pytest.mark.parametrize("command", ["inspect", "verify", "export"])
@pytest.mark.parametrize("damaged", [False, True])
def test_looking_changes_no_byte(sf: Call, slot: Path, command: str, damaged: bool) -> None:
    """Whatever is wrong with the slot."""
    if damaged:
        flip(slot)
    before = content(slot)
    sf(command, slot)
    assert content(slot) == before


def test_a_slot_in_use_can_be_looked_at(sf: Call, slot: Path) -> None:
    """Inspecting takes no lock; changing does."""
    with StoreAndForwardSender(NOWHERE, slot, close_timeout=0):
        assert json.loads(sf("inspect", slot, "--json").stdout)["frames"] == 41
        for command in (["repair"], ["trim", "--to", "0", "--yes"], ["unlock"]):
            result = sf(*command, slot)
            assert result.exit_code == 1
            assert "already in use" in result.stderr


def test_verify_tells_every_problem(sf: Call, slot: Path) -> None:
    """Damage by file, offset and frame; the exit code says so."""
    assert "41 frames checked: nothing is wrong" in sf("verify", slot).stdout
    flip(slot)
    result = sf("verify", slot)
    assert result.exit_code == 1
    assert "frame 3 cannot be delivered" in result.stdout
    found = json.loads(sf("verify", slot, "--json").stdout)
    assert (found["clean"], found["checked"]) == (False, 40)
    assert found["problems"][0]["lost"] == [3, 3]


def test_verify_looks_into_frames(sf: Call, tmp_path: Path) -> None:
    """A frame with a good checksum may still be no batch, or name no topic."""
    with Journal.open(tmp_path / "slot") as journal:
        journal.append(b"no batch")
    result = sf("verify", tmp_path / "slot")
    assert result.exit_code == 1
    assert "frame 0" in result.stdout
    assert "not a stored batch" in result.stdout


def test_export_gives_every_record(sf: Call, slot: Path) -> None:
    """As JSON lines, with topic, time and type."""
    lines = [json.loads(line) for line in sf("export", slot).stdout.splitlines()]
    assert [base64.b64decode(each["value"]) for each in lines] == [
        *[b"value %d" % number for number in range(40)],
        b"x",
        b"y",
    ]
    assert {each["fsn"] for each in lines} == set(range(41))
    assert lines[-1]["topic"] == "other"
    assert lines[0]["type"] == 1
    assert lines[0]["timestamp_ns"] > 0


def test_export_of_a_qwp_slot_gives_frames(sf: Call, tmp_path: Path) -> None:
    """Their rows are the business of QWP tools."""
    with Journal.open(tmp_path / "slot", JournalConfig(kind=SlotKind.QWP)) as journal:
        journal.append(b"frame")
    (line,) = sf("export", tmp_path / "slot").stdout.splitlines()
    assert json.loads(line) == {"fsn": 0, "payload": base64.b64encode(b"frame").decode()}


def test_repair_says_how_many_frames(sf: Call, slot: Path) -> None:
    """What was found, what is lost, what is left; a copy of torn bytes is kept."""
    (last,) = sorted(slot.glob("*.sfl"))[-1:]
    data = bytearray(last.read_bytes())
    end = len(data.rstrip(b"\0"))
    data[end + 8 : end + 20] = b"half a frame"
    last.write_bytes(bytes(data))
    flip(slot)
    found = json.loads(sf("repair", slot, "--json").stdout)
    assert found["lost_frames"] == 1
    assert found["frames"] == 40
    assert {each["kind"] for each in found["repaired"]} == {"torn_tail", "damaged_frame"}
    copies = [Path(each).read_bytes() for each in found["copies"]]
    assert [b"half a frame" in each for each in copies].count(True) == 1
    assert [b"lue 3" in each for each in copies].count(True) == 1
    again = sf("repair", slot)
    assert "1 problem dealt with" in again.stdout
    assert "copy of" not in again.stdout


def test_trim_keeps_copies(sf: Call, slot: Path) -> None:
    """Up to the number; the rest waits as before."""
    result = sf("trim", slot, "--to", 4, "--yes")
    assert "5 frames given up" in result.stdout
    found = json.loads(sf("inspect", slot, "--json").stdout)
    assert (found["first_fsn"], found["frames"], found["acked_fsn"]) == (5, 36, 4)
    assert [each.rejection.first_fsn for each in read_dead_letters(slot)] == [0, 1, 2, 3, 4]
    lines = sf("export", slot, "--dead-letters").stdout.splitlines()
    assert base64.b64decode(json.loads(lines[0])["value"]) == b"value 0"


def test_trim_without_copies(sf: Call, slot: Path) -> None:
    """By explicit wish only."""
    assert "discarded" in sf("trim", slot, "--to", 40, "--yes", "--discard").stdout
    assert not (slot / "dead-letters.jsonl").exists()


@pytest.mark.parametrize("upto", [-1, 41, 10**20])
def test_trim_refuses_numbers_that_are_not_there(sf: Call, slot: Path, upto: int) -> None:
    """Nothing is given up by a typo."""
    result = sf("trim", slot, f"--to={upto}", "--yes")
    assert result.exit_code == 1
    assert "it holds 0 to 40" in result.stderr
    assert json.loads(sf("inspect", slot, "--json").stdout)["frames"] == 41


def test_trim_asks_first(sf: Call, slot: Path) -> None:
    """Where nobody can answer, it does nothing."""
    result = sf("trim", slot, "--to", 4)
    assert result.exit_code == 2
    assert "--yes" in result.stderr


def test_unlock_lets_drainers_try_again(sf: Call, slot: Path) -> None:
    """And says why one had given up."""
    (slot / ".failed").write_text("it was refused")
    assert "it was refused" in sf("unlock", slot).stdout
    assert not (slot / ".failed").exists()
    assert json.loads(sf("unlock", slot, "--json").stdout)["failed"] is None


def test_drain_sends_a_slot(sf: Call, slot: Path, server: FakeServer) -> None:
    """To the server that is named; topics are created on request."""
    url = f"lance://127.0.0.1:{server.port}"
    result = sf("drain", slot, "--url", url, "--on-missing-topic", "create")
    assert result.exit_code == 0
    assert f"{slot}: drained" in result.stdout
    assert len(server.records(1)) == 40
    assert server.records(2) == [b"x", b"y"]
    assert json.loads(sf("inspect", slot, "--json").stdout)["frames"] == 0


def test_drain_takes_a_folder_of_slots(sf: Call, slot: Path, server: FakeServer) -> None:
    """Only those of its own protocol."""
    with Journal.open(slot.parent / "qwp", JournalConfig(kind=SlotKind.QWP)) as journal:
        journal.append(b"frame")
    url = f"lance://127.0.0.1:{server.port}"
    arguments = ["--url", url, "--on-missing-topic", "create", "--json"]
    events = json.loads(sf("drain", slot.parent, *arguments).stdout)
    assert [(each["slot"], each["step"]) for each in events] == [(str(slot), "drained")]


def test_drain_ends_when_nobody_takes_frames(sf: Call, slot: Path) -> None:
    """What was not taken stays; nothing is marked as failed."""
    result = sf("drain", slot, "--url", "lance://127.0.0.1:1", "--patience", "50ms")
    assert result.exit_code == 1
    assert "0 of 1 slot drained" in result.stdout
    assert "nothing was taken for too long: " in result.stdout
    assert not (slot / ".failed").exists()


def test_drain_names_the_protocol_of_a_slot(sf: Call, slot: Path) -> None:
    """An LWP slot is never sent to a QWP server (SF-31)."""
    result = sf("drain", slot, "--conf", "ws::addr=127.0.0.1:1;")
    assert result.exit_code == 2
    assert "is a slot for LWP" in result.stderr


@pytest.mark.parametrize("command", ["inspect", "verify", "export", "repair", "unlock"])
def test_a_folder_that_is_no_slot(sf: Call, tmp_path: Path, command: str) -> None:
    """It is named, and nothing is created in it."""
    result = sf(command, tmp_path)
    assert result.exit_code == 1
    assert "is not a slot" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_trim_of_a_folder_that_is_no_slot(sf: Call, tmp_path: Path) -> None:
    """Likewise."""
    assert "is not a slot" in sf("trim", tmp_path, "--to", 1, "--yes").stderr


def with_a_gap(folder: Path) -> Path:
    """A slot of which one of three segment files was deleted."""
    path = folder / "gap"
    with Journal.open(path, JournalConfig(segment_bytes=256, background=False)) as journal:
        for _ in range(12):
            journal.append(bytes(50))
    (path / "sf-0000000000000001.sfl").unlink()
    return path


EVERY: dict[str, tuple[object, ...]] = {
    "inspect": (),
    "verify": (),
    "export": (),
    "repair": (),
    "trim": ("--to", 1, "--yes"),
    "unlock": (),
    "drain": ("--on-missing-topic", "create"),
}
"""Every command, with what it needs beside a slot."""


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("command", EVERY)
def test_a_lost_frame_makes_every_command_fail(
    sf: Call, slot: Path, server: FakeServer, command: str, form: list[str]
) -> None:
    """Also where everything else was done: the exit code says so to scripts."""
    flip(slot)
    url = ["--url", f"lance://127.0.0.1:{server.port}"] if command == "drain" else []
    assert sf(command, slot, *EVERY[command], *url, *form).exit_code == 1
    assert len(server.records(1)) == (39 if command == "drain" else 0)


@pytest.mark.parametrize("command", EVERY)
def test_frames_without_a_number_are_lost_for_every_command(
    sf: Call, tmp_path: Path, command: str
) -> None:
    """A header that nobody can read, and nothing beside it that says where the frames belong."""
    slot = tmp_path / "slot"
    slot.mkdir()
    content = bytearray(segment(0, 3))
    content[0] ^= 1
    (slot / "sf-0000000000000001.sfl").write_bytes(content)
    more = EVERY[command] if command != "drain" else ("--url", NOWHERE, "--patience", "50ms")
    result = sf(command, slot, *more)
    assert result.exit_code == 1
    if command in {"inspect", "repair", "drain"}:
        assert "at most" in result.stdout
        assert "3" in result.stdout


@pytest.mark.parametrize("command", ["inspect", "verify", "export", "repair"])
def test_a_missing_segment_makes_a_command_fail(sf: Call, tmp_path: Path, command: str) -> None:
    """Its frames are lost."""
    assert sf(command, with_a_gap(tmp_path)).exit_code == 1


def test_draining_a_slot_with_a_gap_fails(sf: Call, tmp_path: Path, server: FakeServer) -> None:
    """Nothing is sent, and the numbers are in the reason."""
    result = sf("drain", with_a_gap(tmp_path), "--url", server.url("readings"))
    assert result.exit_code == 1
    assert "the frames 4 to 7" in result.stdout


def segment(base: int, frames: int, flags: int = 0) -> bytes:
    """A segment as a client writes it that follows the document."""
    out = struct.pack("<4sBBHQQ", b"SF01", 1, flags, 0, base, 1_800_000_000_000_000)
    for number in range(base, base + frames):
        body = struct.pack("<I", 8) + b"%08d" % number
        out += struct.pack("<I", CRC32C(body)) + body
    return out.ljust(512, b"\0")


@pytest.mark.parametrize("command", ["inspect", "verify", "repair", "trim", "drain"])
def test_json_counts_frames_by_what_becomes_of_them(sf: Call, tmp_path: Path, command: str) -> None:
    """On disk, acknowledged, damaged, and of another client."""
    slot = tmp_path / "slot"
    with Journal.open(slot, JournalConfig(background=False)) as journal:
        for number in range(9):
            journal.append(b"value %d" % number)
        list(journal.read_from(0))
        journal.ack(3)
    path = slot / "sf-0000000000000000.sfl"
    path.write_bytes(path.read_bytes().replace(b"value 6", b"value x"))
    (slot / "sf-0000000000000001.sfl").write_bytes(segment(9, 3))
    more = {"trim": ("--to", 4, "--yes"), "drain": ("--url", NOWHERE, "--patience", "50ms")}
    found = json.loads(sf(command, slot, *more.get(command, ()), "--json").stdout)
    counts = found[0] if command == "drain" else found
    names = ("on_disk", "acknowledged", "damaged", "foreign")
    acknowledged = 5 if command == "trim" else 4
    assert [counts[name] for name in names] == [11, acknowledged, 1, 3]


@pytest.mark.parametrize("online", [True, False], ids=["server", "no server"])
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "killed"])
def test_a_slot_in_which_nothing_waits_is_empty_and_not_drained(
    sf: Call, slot: Path, server: FakeServer, closed: bool, online: bool
) -> None:
    """No server is asked, none has acknowledged anything, and nothing is wrong."""
    with Journal.open(slot, JournalConfig(background=False)) as journal:
        for fsn, _ in journal.read_from(0):
            journal.ack(fsn)
        killed = slot.parent / "killed"
        shutil.copytree(slot, killed)
    port = server.port if online else 1
    path = slot if closed else killed
    result = sf("drain", path, "--url", f"lance://127.0.0.1:{port}")
    assert result.exit_code == 0
    assert f"{path}: empty: nothing waits in it" in result.stdout
    assert "0 of 1 slot drained, 1 empty" in result.stdout
    assert server.records() == []


@pytest.mark.parametrize("policy", ["drop", "dead_letter"])
def test_a_slot_whose_frames_were_given_up_is_not_drained_in_order(
    sf: Call, slot: Path, server: FakeServer, policy: str
) -> None:
    """The server took none of them: the exit code says so."""

    def refuse(peer: FakePeer, frame: Frame) -> bool:
        peer.error(ErrorCode.INVALID_PAYLOAD, "no", batch_id=frame.batch_id)
        return True

    server.on_ingest = refuse
    conf = f"lance::addr=127.0.0.1:{server.port};on_missing_topic=create;on_parse_error={policy};"
    result = sf("drain", slot, "--conf", conf, "--json")
    assert result.exit_code == 1
    (event,) = json.loads(result.stdout)
    given_up = event["dead_letters" if policy == "dead_letter" else "lost_frames"]
    assert (event["acked_frames"], given_up) == (0, 41)


def test_verify_reads_the_symbols_of_qwp_frames(sf: Call, tmp_path: Path) -> None:
    """A frame that needs symbols which nobody has is named; packed times are read, too."""
    path = tmp_path / "slot"
    with Journal.open(path, JournalConfig(kind=SlotKind.QWP, background=False)) as journal:
        payload = bytes([5, 1, 1]) + b"a"
        journal.append(QwpMessage(flags=8, table_count=0, payload=payload).encode())
        journal.append(QwpMessage(flags=0, table_count=1, payload=b"").encode())
        packed = b"\x01t\x01\x01\0\x10\0\0" + bytes(8)  # a row with a time, flag GORILLA
        journal.append(QwpMessage(flags=4, table_count=1, payload=packed).encode())
    result = sf("verify", path)
    assert result.exit_code == 1
    assert "frame 0: it needs the symbols below id 5, and 0 are known" in result.stdout
    assert "frame 1: 0 tables where 1 are stated" in result.stdout
    assert "frame 2" not in result.stdout
