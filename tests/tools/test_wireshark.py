"""The generated dissector in the real tshark: clean on valid frames, naming each fault."""

import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from lance_spec import vectors
from lance_spec.emit.wireshark import dissector
from lance_spec.ir.families import families
from lance_spec.vectors import Vector

sys.path.insert(0, str(Path(__file__).parent))  # the folder is not a package
from _captures import conversation, write_pcap, write_pcapng

FIRST_PORT = 10000
FIELDS = ("tcp.srcport", "_ws.expert.message", "lwp.header.batch_id", "lwp.record.value")
OTHER_DIALECT = "header-crc-other"


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dissector as the grammar renders it now."""
    path = tmp_path_factory.mktemp("lua") / "lance_lwp.lua"
    path.write_text(dissector.render(families()["lwp"]))
    return path


def dissect(tshark: str, script: Path, capture: Path) -> dict[int, list[list[str]]]:
    """Return the values of `FIELDS` in each packet, by the client's port."""
    arguments = [tshark, "-r", str(capture), "-X", f"lua_script:{script}", "-T", "fields"]
    arguments += [part for name in FIELDS for part in ("-e", name)]
    finished = subprocess.run(
        arguments, capture_output=True, text=True, check=True, timeout=100, env={"HOME": "/nowhere"}
    )
    assert "Lua" not in finished.stderr, finished.stderr
    found: dict[int, list[list[str]]] = defaultdict(list)
    for line in finished.stdout.splitlines():
        port, *values = line.split("\t")
        found[int(port)].append(values)
    return found


def complaints(packets: list[list[str]]) -> list[str]:
    """Every expert message about a conversation but those of TCP about unseen neighbours."""
    texts = [text for packet in packets for text in packet[0].split(",") if text]
    return [text for text in texts if not text.startswith("TCP")]


@pytest.fixture(scope="module")
def judged(
    tshark: str, script: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """What the dissector complains of, for every frame that has vectors."""
    tests = [each for each in vectors.load("frame_decode") if each.data]
    capture = tmp_path_factory.mktemp("pcap") / "frames.pcap"
    packets = [
        packet
        for number, vector in enumerate(tests)
        for packet in conversation(FIRST_PORT + number, [vector.data])
    ]
    write_pcap(capture, packets)
    seen = dissect(tshark, script, capture)
    return {vector.id: complaints(seen[FIRST_PORT + n]) for n, vector in enumerate(tests)}


def frames(keep: Callable[[Vector], bool]) -> pytest.MarkDecorator:
    """Run a test with the vectors of frames that `keep` keeps."""
    chosen = [each for each in vectors.load("frame_decode") if each.data and keep(each)]
    assert chosen
    return pytest.mark.parametrize("vector", chosen, ids=lambda vector: vector.id)


def is_fault(vector: Vector) -> bool:
    """Whether a vector is wrong in whatever dialect it is read."""
    return vector.result == "invalid" and not vector.id.endswith(OTHER_DIALECT)


@frames(lambda vector: vector.result == "valid")
def test_valid_frames_are_clean(vector: Vector, judged: dict[str, list[str]]) -> None:
    """No complaint about anything that a receiver accepts or waits for."""
    assert judged[vector.id] == []


@frames(is_fault)
def test_each_fault_is_flagged(vector: Vector, judged: dict[str, list[str]]) -> None:
    """Something is said about everything that a receiver refuses."""
    assert judged[vector.id], vector.outcomes


@pytest.mark.parametrize("write", [write_pcap, write_pcapng])
def test_frames_are_found_across_segments(
    write: Callable[[Path, list[bytes]], None], tshark: str, script: Path, tmp_path: Path
) -> None:
    """Three frames cut anywhere are three frames, in both kinds of capture."""
    tests = {each.id: each.data for each in vectors.load("frame_decode")}
    stream = b"".join(tests[f"specified-{name}"] for name in ("ingest", "ack-max", "ingest-two"))
    segments = [stream[:7], stream[7:50], stream[50:99], stream[99:]]
    write(tmp_path / "capture", conversation(FIRST_PORT, segments))
    (packets,) = dissect(tshark, script, tmp_path / "capture").values()
    ids = [number for packet in packets for number in packet[1].split(",") if number]
    assert len(ids) == 3
    assert str(2**64 - 1) in ids
    assert complaints(packets) == []
