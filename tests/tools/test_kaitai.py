"""The generated Kaitai specifications, compiled by the real compiler, read the vectors."""

import sys
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import kaitaistruct
import pytest

from lance_spec import vectors
from lance_spec.ir.families import families, message
from lance_spec.vectors import Vector

sys.path.insert(0, str(Path(__file__).parent))  # the folder is not a package
from _kaitai import compiled

MESSAGES = ("control_payload", "engine_message", "fetch_response", "tlv_decode")
NO_MESSAGE = {"TlvDecode"}
CHECKSUM = "checksum"


def payloads() -> list[Vector]:
    """The vectors whose bytes are one message with fields."""
    return [
        vector
        for family in MESSAGES
        for vector in vectors.load(family)
        if vector.group["type"] not in NO_MESSAGE
        and "." not in name_of(vector)
        and message(name_of(vector)).fields
    ]


def name_of(vector: Vector) -> str:
    """The message that a vector is about."""
    return str(vector.test.get("message", vector.group.get("message")))


def family_of(name: str) -> str:
    """The family that a message belongs to."""
    (found,) = [n for n, f in families().items() if name in {each.name for each in f.messages}]
    return found


@pytest.fixture(scope="module")
def modules(
    node: str, node_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, ModuleType]:
    """Every family, compiled to Python by the Kaitai compiler."""
    return compiled(node, node_folder, tmp_path_factory.mktemp("kaitai"))


def parse(modules: dict[str, ModuleType], name: str, data: bytes) -> Any:
    """Read one message, which must end where the bytes end.

    Raises:
        EOFError: the bytes end inside the message, or go on after it.
        ValueError: a field has a value that it must not have.
    """
    family = family_of(name)
    root = getattr(modules[family], f"Lance{family.title().replace('_', '')}")
    stream = kaitaistruct.KaitaiStream(BytesIO(data))
    try:
        parsed = getattr(root, name)(stream)
    except kaitaistruct.KaitaiStructError as error:
        raise ValueError(str(error)) from error
    if not stream.is_eof():
        raise EOFError("bytes after the message")
    return parsed


@pytest.mark.parametrize(
    "vector",
    [each for each in payloads() if each.result == "valid"],
    ids=lambda vector: vector.id,
)
def test_valid_messages_read_as_the_vectors_say(
    vector: Vector, modules: dict[str, ModuleType]
) -> None:
    """Every field has the value that the vector gives."""
    parsed = parse(modules, name_of(vector), vector.data)
    for field in message(name_of(vector)).given:
        value, wanted = getattr(parsed, field.name), vector.test["fields"][field.name]
        if field.is_integer:
            assert int(getattr(value, "value", value)) == int(wanted)
        else:
            assert _bytes_of(parsed, field.name).hex() == wanted


def _bytes_of(parsed: Any, name: str) -> bytes:
    """The bytes of a field, also where Kaitai goes on to read what is inside."""
    return bytes(getattr(parsed, f"_raw_{name}", None) or getattr(parsed, name))


@pytest.mark.parametrize(
    "vector",
    [
        each
        for each in payloads()
        if each.result == "invalid" and each.outcomes[0].get("reason") != CHECKSUM
    ],
    ids=lambda vector: vector.id,
)
def test_invalid_messages_are_refused(vector: Vector, modules: dict[str, ModuleType]) -> None:
    """Every fault but a wrong checksum, which Kaitai cannot compute, is noticed."""
    with pytest.raises((EOFError, ValueError)):
        parse(modules, name_of(vector), vector.data)


@pytest.mark.parametrize(
    "vector",
    [
        each
        for each in vectors.load("frame_decode")
        if each.result == "valid" and each.outcomes[0]["action"] == "accept"
    ],
    ids=lambda vector: vector.id,
)
def test_valid_frames_are_read(vector: Vector, modules: dict[str, ModuleType]) -> None:
    """A capture of one frame has one frame, with its header and its payload."""
    root = modules["lwp"].LanceLwp.from_bytes(vector.data)
    (frame,) = root.frames
    fields = vector.test["fields"]
    assert frame.header.batch_id == int(fields["batch_id"])
    assert frame.header.payload_length == fields["payload_length"]
    assert hasattr(frame, "payload") is (fields["payload_length"] > 0)
