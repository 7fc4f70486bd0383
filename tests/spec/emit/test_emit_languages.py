"""What is generated for other languages reads and writes what the vectors say."""

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lance_spec.emit._words import snake
from lance_spec.emit.c import header
from lance_spec.emit.docs import json_description
from lance_spec.emit.kaitai import description
from lance_spec.emit.wireshark import dissector
from lance_spec.ir.families import families
from lance_spec.vectors import Vector

sys.path.insert(0, str(Path(__file__).parents[2]))  # the folder is no package
from _message_vectors import expected, name_of, payloads

FAMILIES = pytest.mark.parametrize("family", families().values(), ids=lambda each: each.name)


@cache
def document_of(name: str) -> dict[str, Any]:
    """The JSON form of the family that has a message."""
    (family,) = [f for f in families().values() if name in {each.name for each in f.messages}]
    document: dict[str, Any] = json.loads(json_description.render(family))
    return document


def interpret(document: dict[str, Any], name: str, data: bytes) -> dict[str, str] | None:
    """Read a message by the JSON form of the grammar alone."""
    (declared,) = [each for each in document["messages"] if each["name"] == name]
    values: dict[str, Any] = {}
    place = 0
    for field in declared["fields"]:
        length = _length(field, values, len(data) - place)
        raw = data[place : place + length]
        if length < 0 or len(raw) != length:
            return None
        place += length
        is_number = field["type"].startswith("u")
        values[field["name"]] = int.from_bytes(raw, "little") if is_number else raw.hex()
        if not _allowed(field, values[field["name"]]):
            return None
    if place != len(data):
        return None
    given = [f["name"] for f in declared["fields"] if "const" not in f and "lengthOf" not in f]
    return {name: str(values[name]) for name in given}


def _length(field: dict[str, Any], values: dict[str, Any], left: int) -> int:
    if field["size"] is not None:
        return int(field["size"])
    length = field["length"]
    if "field" in length:
        return int(values[length["field"]])
    return values[length["end"]] - values[length["start"]] if "end" in length else left


def _allowed(field: dict[str, Any], value: Any) -> bool:
    low, high = field.get("bounds", (value, value))
    return field.get("const", value) == value and low <= value <= high


@pytest.mark.parametrize("vector", payloads(), ids=lambda vector: vector.id)
def test_the_json_form_is_enough_to_write_a_codec(vector: Vector) -> None:
    """A reader that knows nothing but the JSON agrees with every vector."""
    assert interpret(document_of(name_of(vector)), name_of(vector), vector.data) == expected(vector)


@FAMILIES
def test_the_json_form_has_every_fact(family: Any) -> None:
    """Every message, field, sentence and section is there."""
    document = json.loads(json_description.render(family))
    for subject, described in zip(family.messages, document["messages"], strict=True):
        assert described["name"] == subject.name
        assert [each["name"] for each in described["fields"]] == [f.name for f in subject.fields]
        assert all(each["doc"] and each["section"] for each in described["fields"])


@FAMILIES
def test_kaitai_describes_every_field_in_order(family: Any) -> None:
    """Each message with fields is a type, each field an entry of its sequence."""
    text = description.render(family)
    for subject in family.messages:
        if subject.fields:
            block = text.split(f"\n  {snake(subject.name)}:\n")[1].split("\n    seq:\n")[1]
            own = re.split(r"\n(?=  \w|\w)", block)[0]
            ids = re.findall(r"^      - id: (\w+)$", own, re.MULTILINE)
            assert ids == [each.name for each in subject.fields]


def test_kaitai_has_no_tabs_and_unique_keys() -> None:
    """YAML forbids both, and silently keeps the last of two keys."""
    text = description.render(families()["lwp"])
    keys = re.findall(r"^  (\w+):$", text, re.MULTILINE)
    assert "\t" not in text
    assert len(keys) == len(set(keys))


@FAMILIES
def test_wireshark_has_a_table_for_every_message(family: Any) -> None:
    """The dissector walks these tables."""
    text = dissector.render(family).split("\nlocal MESSAGES = {")[1].split("\n}\n")[0]
    for subject in family.messages:
        table = text.split(f"\n    {snake(subject.name)} = {{")[1].split("\n    --")[0]
        names = re.findall(r'\{name = "(\w+)"', table)
        assert names == [each.name for each in subject.fields]


@FAMILIES
def test_wireshark_balances_its_brackets(family: Any) -> None:
    """A cheap guard against a table that does not close."""
    text = re.sub(r'"(?:\\.|[^"\\])*"|--[^\n]*', "", dissector.render(family))
    for opening, closing in ("{}", "()", "[]"):
        assert text.count(opening) == text.count(closing)


def test_c_has_a_reader_and_a_writer_for_every_message() -> None:
    """Whether they work is checked where a compiler is sure to be there."""
    for family in families().values():
        text = header.render(family)
        for subject in family.messages:
            assert f" lance_{snake(subject.name)}_read(" in text
            assert f" lance_{snake(subject.name)}_write(" in text


def test_numbers_in_the_bits_of_a_field_are_in_every_form() -> None:
    """Design section 13.10: node, actor and sequence of a sort key."""
    engine = families()["engine"]
    (field,) = [
        each
        for each in json.loads(json_description.render(engine))["messages"][2]["fields"]
        if each["name"] == "node_actor_sequence"
    ]
    assert [(each["name"], each["shift"]) for each in field["bits"]] == [
        ("node", 48),
        ("actor", 40),
        ("sequence", 0),
    ]
    assert "#define LANCE_NODE_ACTOR_SEQUENCE_ACTOR(packed)" in header.render(engine)
    assert "node_actor_sequence_actor:" in description.render(engine)
