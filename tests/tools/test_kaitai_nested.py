"""Kaitai specifications of families whose messages nest read what Python reads."""

import dataclasses
import sys
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import kaitaistruct
import pytest

from lance_spec.codec.composed import codec
from lance_spec.dialect import SPECIFIED
from lance_spec.emit.c._nested_functions import is_columnar
from lance_spec.emit.kaitai import nested_description
from lance_spec.enums import Command
from lance_spec.frames import encode_control
from lance_spec.ir.families import composed
from lance_spec.messages import groups, qwp

sys.path.insert(0, str(Path(__file__).parent))  # the folder is not a package
from _kaitai import compiled
from _samples import judged, readable, samples


@pytest.fixture(scope="module")
def modules(
    node: str, node_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, ModuleType]:
    """Every family, compiled to Python by the Kaitai compiler."""
    return compiled(node, node_folder, tmp_path_factory.mktemp("kaitai"))


def parse(modules: dict[str, ModuleType], family: str, name: str, data: bytes) -> Any:
    """Read one message, or return None where it does not read to the end of the bytes."""
    root = getattr(modules[family], f"Lance{family.title().replace('_', '')}")
    stream = kaitaistruct.KaitaiStream(BytesIO(data))
    try:
        parsed = getattr(root, name)(stream)
    except (kaitaistruct.KaitaiStructError, EOFError, ValueError):
        return None
    return parsed if stream.is_eof() else None


def same(ours: Any, theirs: Any) -> bool:
    """Whether two readings of a message agree in what both have fields for."""
    if isinstance(ours, int | str | bytes):
        return plain(theirs) == plain(ours)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if not dataclasses.is_dataclass(ours):
        return True
    theirs = getattr(theirs, "section", theirs)
    given = ((getattr(ours, each.name), each.name) for each in dataclasses.fields(ours))
    pairs = [(value, getattr(theirs, name)) for value, name in given if name != "nulls" and value]
    return all(_same_part(mine, other) for mine, other in pairs)


def _same_part(ours: Any, theirs: Any) -> bool:
    kind = type(theirs).__name__
    if kind == "Times":
        return len(theirs.plain) == len(ours) // 8 or theirs.encoding == 1
    if kind == "Slices":
        return b"".join(ours) == theirs.values
    return same(ours, theirs)


def plain(value: Any) -> Any:
    """A number or a text, out of what Kaitai wraps it in."""
    if hasattr(value, "value"):
        return plain(value.value)
    return value


@pytest.mark.parametrize("family", nested_description.FAMILIES)
def test_kaitai_reads_what_python_reads(family: str, modules: dict[str, ModuleType]) -> None:
    """The same values from valid messages; cut, lengthened and broken ones not at all."""
    wrong, read = [], 0
    for name, data in samples(family):
        if is_columnar(composed()[family].message(name)):
            continue
        parsed = parse(modules, family, name, data)
        if not readable(family, name, data):
            agrees = parsed is None
        else:
            ours = codec(f"{family}.{name}").decode(data)
            agrees, read = parsed is not None and same(ours, parsed), read + 1
        if not agrees:
            wrong.append((name, data.hex(), parsed))
    assert not wrong, wrong[:3]
    assert read > 50


@pytest.mark.parametrize("family", nested_description.FAMILIES)
def test_kaitai_judges_vectors_as_they_say(family: str, modules: dict[str, ModuleType]) -> None:
    """Every valid message is read; none with a fault is, but for checksums."""
    wrong = [
        (name, data.hex())
        for name, data, valid in judged(family, checksums=False)
        if not is_columnar(composed()[family].message(name))
        and valid is (parse(modules, family, name, data) is None)
    ]
    assert not wrong, wrong[:3]


def test_the_payload_of_a_group_is_read_inside_its_frame(modules: dict[str, ModuleType]) -> None:
    """AMB-38: the specification of frames imports that of groups."""
    sync = groups.GroupSync(group="g", member="m", generation=3, owned=[7, 9])
    data = encode_control(SPECIFIED, Command.GROUP_SYNC, sync.encode())
    (frame,) = modules["lwp"].LanceLwp.from_bytes(data).frames
    assert frame.payload.owned == [7, 9]


def test_the_content_of_a_qwp_message_is_read_by_its_flags(
    modules: dict[str, ModuleType],
) -> None:
    """A message without flag DELTA_DICTIONARY holds tables alone."""
    column = qwp.ColumnDefinition(name="c", type=qwp.ColumnType.LONG)
    table = qwp.LocalTable(
        name="t", row_count=1, columns=[column], sections=[qwp.Column8(nulls=None, values=bytes(8))]
    )
    payload = qwp.LocalPayload(tables=[table]).encode()
    message = qwp.QwpMessage(flags=0, table_count=1, payload=payload).encode()
    parsed = modules["qwp"].LanceQwp.QwpMessage.from_bytes(message)
    assert parsed.content.tables[0].name == "t"


def test_any_null_flag_but_zero_says_that_null_bits_follow(modules: dict[str, ModuleType]) -> None:
    """QWP wire ingress: three rows of one byte each, of which the second is null."""
    for flag in (1, 2, 0xFF):
        raw = b"\x01t\x03\x01\x01c\x02" + bytes([flag]) + b"\x02\x07\x09"
        (found,) = modules["qwp"].LanceQwp.TableBlock.from_bytes(raw).sections
        section = found.section
        assert (section.nulls.present, section.values) == (2, b"\x07\x09")
