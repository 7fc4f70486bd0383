"""Dissectors of messages that are not frames, in the real tshark over captures of such messages."""

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from lance_spec import vectors
from lance_spec.emit._words import snake
from lance_spec.emit.wireshark import dissector
from lance_spec.ir.families import families
from lance_spec.vectors import Vector

sys.path.insert(0, str(Path(__file__).parent))  # the folder is not a package
from _captures import write_pcap

USER_0 = 147
"""The first of the link types that everybody may use."""
OTHERS_FAMILY = "LockHolder"
"""An LWP message that stands in no frame of its own."""

Judge = Callable[[str], dict[str, str]]


def with_bytes(name: str) -> list[Vector]:
    """The vectors of a message that have bytes; a capture has no empty packets."""
    return [e for e in vectors.load("engine_message") if e.group["message"] == name and e.data]


@pytest.fixture(scope="module")
def judge(tshark: str, tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """What the dissector of a message complains of, by vector."""
    folder = tmp_path_factory.mktemp("files")
    script = folder / "lance_engine.lua"
    script.write_text(dissector.render(families()["engine"]))

    @cache
    def judged(name: str) -> dict[str, str]:
        tests = with_bytes(name)
        capture = folder / f"{name}.pcap"
        write_pcap(capture, [each.data for each in tests], USER_0)
        table = f'uat:user_dlts:"User 0 (DLT=147)","lance_engine.{snake(name)}","0","","0",""'
        arguments = [tshark, "-r", str(capture), "-X", f"lua_script:{script}", "-o", table]
        arguments += ["-T", "fields", "-e", "_ws.col.Info", "-e", "_ws.expert.message"]
        finished = subprocess.run(
            arguments, capture_output=True, text=True, check=True, timeout=100
        )
        assert "Lua" not in finished.stderr, finished.stderr
        lines = [line.split("\t") for line in finished.stdout.splitlines()]
        assert {info for info, _ in lines} == {snake(name)}
        return {each.id: text for each, (_, text) in zip(tests, lines, strict=True)}

    return judged


VECTORS = pytest.mark.parametrize(
    "vector",
    [
        each
        for each in vectors.load("engine_message")
        if each.data and each.group["message"] != OTHERS_FAMILY
    ],
    ids=lambda vector: vector.id,
)


@VECTORS
def test_valid_messages_are_clean_and_each_fault_is_flagged(vector: Vector, judge: Judge) -> None:
    """A complaint about everything that a reader refuses, and about nothing else."""
    complaint = judge(vector.group["message"])[vector.id]
    assert bool(complaint) is (vector.result == "invalid"), complaint


@pytest.mark.parametrize("name", [each for each in families() if not families()[each].frames])
def test_every_message_has_a_dissector(name: str, tshark: str, tmp_path: Path) -> None:
    """A display filter may name each; a name that tshark does not know fails."""
    script, capture = tmp_path / f"lance_{name}.lua", tmp_path / "empty.pcap"
    script.write_text(dissector.render(families()[name]))
    write_pcap(capture, [], USER_0)
    names = [f"lance_{name}.{snake(each.name)}" for each in families()[name].messages]
    arguments = [tshark, "-r", str(capture), "-X", f"lua_script:{script}"]
    arguments += ["-Y", " or ".join(names)]
    finished = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=100)
    assert finished.returncode == 0, finished.stderr
    assert "Lua" not in finished.stderr, finished.stderr
