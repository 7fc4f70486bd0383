"""Dissectors of families whose messages nest, in the real tshark."""

import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from lance_spec.emit._words import snake
from lance_spec.emit.wireshark import nested_dissector
from lance_spec.ir.families import composed

sys.path.insert(0, str(Path(__file__).parent))  # the folder is not a package
from _captures import write_interfaces
from _samples import VECTORS, faulty, judged, samples

USER_0 = 147
"""The first of the sixteen link types that everybody may use."""
AT_ONCE = 16


def _batches(names: list[str]) -> Iterator[list[str]]:
    left = iter(names)
    while batch := list(islice(left, AT_ONCE)):
        yield batch


def judge(tshark: str, folder: Path, family: str, tests: list[tuple[str, bytes]]) -> list[str]:
    """Return what the dissectors of messages complain of, for each of some packets."""
    script = folder / f"lance_{family}.lua"
    script.write_text(nested_dissector.render(composed()[family]))
    names = list(dict.fromkeys(name for name, _ in tests))
    found: dict[int, str] = {}
    for batch in _batches(names):
        chosen = [
            (n, batch.index(name), data) for n, (name, data) in enumerate(tests) if name in batch
        ]
        lines = _run(tshark, folder, script, batch, [(place, data) for _, place, data in chosen])
        found |= {n: line for (n, _, _), line in zip(chosen, lines, strict=True)}
    return [found[n] for n in range(len(tests))]


def _run(
    tshark: str, folder: Path, script: Path, names: list[str], packets: list[tuple[int, bytes]]
) -> list[str]:
    capture = folder / "messages.pcapng"
    write_interfaces(capture, packets, [USER_0 + n for n in range(len(names))])
    arguments = [tshark, "-r", str(capture), "-X", f"lua_script:{script}"]
    for place, name in enumerate(names):
        table = f'"User {place} (DLT={USER_0 + place})","{script.stem}.{snake(name)}","0","","0",""'
        arguments += ["-o", f"uat:user_dlts:{table}"]
    arguments += ["-T", "fields", "-e", "_ws.col.Info", "-e", "_ws.expert.message"]
    finished = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=200)
    assert "Lua" not in finished.stderr, finished.stderr
    lines = [line.split("\t") for line in finished.stdout.splitlines()]
    for (place, _), (info, text) in zip(packets, lines, strict=True):
        assert info == snake(names[place]), text
    return [text for _, text in lines]


@pytest.mark.parametrize("family", composed())
def test_valid_messages_are_clean_and_each_fault_is_flagged(
    family: str, tshark: str, tmp_path: Path
) -> None:
    """A complaint about everything that Python refuses, and about nothing else."""
    tests = samples(family)
    complaints = judge(tshark, tmp_path, family, tests)
    wrong = [
        (name, data.hex(), complaint)
        for (name, data), complaint in zip(tests, complaints, strict=True)
        if faulty(family, name, data) is not bool(complaint)
    ]
    assert not wrong, wrong[:3]
    assert any(complaints)
    assert not all(complaints)


@pytest.mark.parametrize("family", VECTORS)
def test_vectors_are_judged_as_they_say(family: str, tshark: str, tmp_path: Path) -> None:
    """Clean on valid messages, and a complaint about each single fault."""
    tests = judged(family, checksums=True)
    complaints = judge(tshark, tmp_path, family, [(name, data) for name, data, _ in tests])
    wrong = [
        (name, data.hex(), complaint)
        for (name, data, valid), complaint in zip(tests, complaints, strict=True)
        if valid is bool(complaint)
    ]
    assert not wrong, wrong[:3]
