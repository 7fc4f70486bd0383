"""What is generated for other languages reads and writes what the vectors say."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lance_spec import vectors
from lance_spec.emit import c_header, jsonspec, kaitai, wireshark
from lance_spec.emit._words import snake
from lance_spec.families import families, message
from lance_spec.ir import Field, Message
from lance_spec.vectors import Vector

FAMILIES = pytest.mark.parametrize("family", families().values(), ids=lambda each: each.name)
CC = shutil.which("cc")


def payloads() -> list[Vector]:
    """The vectors whose bytes are one message."""
    return [
        vector
        for family in ("control_payload", "fetch_response", "tlv_decode")
        for vector in vectors.load(family)
        if vector.group["type"] != "TlvDecode"
    ]


def name_of(vector: Vector) -> str:
    """The message that a vector is about."""
    return str(vector.test.get("message", vector.group.get("message")))


def expected(vector: Vector) -> dict[str, str] | None:
    """The fields of a valid vector, as text, or None for an invalid one."""
    if vector.result != "valid":
        return None
    integers = {each.name for each in message(name_of(vector)).fields if each.is_integer}
    fields = {name: value for name, value in vector.test["fields"].items() if name != "whole"}
    return {name: str(int(v)) if name in integers else v for name, v in fields.items()}


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
    document = json.loads(jsonspec.render(families()["lwp"]))
    assert interpret(document, name_of(vector), vector.data) == expected(vector)


@FAMILIES
def test_the_json_form_has_every_fact(family: Any) -> None:
    """Every message, field, sentence and section is there."""
    document = json.loads(jsonspec.render(family))
    for subject, described in zip(family.messages, document["messages"], strict=True):
        assert described["name"] == subject.name
        assert [each["name"] for each in described["fields"]] == [f.name for f in subject.fields]
        assert all(each["doc"] and each["section"] for each in described["fields"])


def c_program(subjects: list[Message]) -> Iterator[str]:
    """Write a program that reads ``message hex`` lines, and prints and rewrites what they say."""
    yield "#include <stdio.h>\n#include <string.h>"
    yield from (f'#include "lance_{name}.h"' for name in families())
    yield "static uint8_t data[65536], again[65536];"
    yield "static void show(const char *n, struct lance_bytes b) {"
    yield '  printf(" %s=", n); for (size_t i = 0; i < b.size; i++) printf("%02x", b.data[i]); }'
    for subject in subjects:
        yield from _c_case(subject)
    yield "int main(void) { static char line[140000]; char name[64]; unsigned byte;"
    yield "while (fgets(line, sizeof line, stdin)) { int used = 0; size_t size = 0;"
    yield '  sscanf(line, "%63s %n", name, &used);'
    yield '  for (const char *p = line + used; sscanf(p, "%2x", &byte) == 1; p += 2)'
    yield "    data[size++] = (uint8_t)byte;"
    for subject in subjects:
        yield f'  if (!strcmp(name, "{subject.name}")) {snake(subject.name)}(size);'
    yield "} return 0; }"


def _c_case(subject: Message) -> Iterator[str]:
    base = snake(subject.name)
    yield f"static void {base}(size_t size) {{ struct lance_{base} it; size_t wrote = 0;"
    yield f"  enum lance_result r = lance_{base}_read(&it, data, size);"
    yield '  if (r != LANCE_OK) { printf("rejected\\n"); return; } printf("ok");'
    for each in subject.given:
        yield _c_print(each)
    yield f"  r = lance_{base}_write(&it, again, sizeof again, &wrote);"
    yield "  if (r != LANCE_OK || wrote != size || memcmp(data, again, size) != 0)"
    yield '    printf(" REWRITTEN-DIFFERENTLY");'
    yield '  printf("\\n"); }'


def _c_print(field: Field) -> str:
    if field.is_integer:
        return f'  printf(" {field.name}=%llu", (unsigned long long)it.{field.name});'
    return f'  show("{field.name}", it.{field.name});'


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled with every warning an error."""
    if CC is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("c")
    (folder / "lance_bytes.h").write_text(c_header.runtime())
    for name, family in families().items():
        (folder / f"lance_{name}.h").write_text(c_header.render(family))
    subjects = [each for family in families().values() for each in family.messages]
    (folder / "reader.c").write_text("\n".join(c_program(subjects)) + "\n")
    strict = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    subprocess.run([CC, *strict, "reader.c", "-o", "reader"], cwd=folder, check=True)
    return folder / "reader"


def test_c_reads_and_rewrites_every_vector(reader: Path) -> None:
    """The headers compile without a warning and agree with every vector, both ways."""
    tests = payloads()
    lines = "".join(f"{name_of(each)} {each.data.hex()}\n" for each in tests)
    finished = subprocess.run([reader], input=lines, capture_output=True, text=True, check=True)
    for vector, answer in zip(tests, finished.stdout.splitlines(), strict=True):
        fields = expected(vector)
        shown = "".join(f" {name}={value}" for name, value in (fields or {}).items())
        assert answer == ("rejected" if fields is None else f"ok{shown}"), vector.id


@FAMILIES
def test_kaitai_describes_every_field_in_order(family: Any) -> None:
    """Each message with fields is a type, each field an entry of its sequence."""
    text = kaitai.render(family)
    for subject in family.messages:
        if subject.fields:
            block = text.split(f"\n  {snake(subject.name)}:\n")[1].split("\n    seq:\n")[1]
            own = re.split(r"\n(?=  \w|\w)", block)[0]
            ids = re.findall(r"^      - id: (\w+)$", own, re.MULTILINE)
            assert ids == [each.name for each in subject.fields]


def test_kaitai_has_no_tabs_and_unique_keys() -> None:
    """YAML forbids both, and silently keeps the last of two keys."""
    text = kaitai.render(families()["lwp"])
    keys = re.findall(r"^  (\w+):$", text, re.MULTILINE)
    assert "\t" not in text
    assert len(keys) == len(set(keys))


def test_wireshark_has_a_table_for_every_message() -> None:
    """The dissector walks these tables."""
    text = wireshark.render(families()["lwp"])
    for subject in families()["lwp"].messages:
        table = text.split(f"\n    {snake(subject.name)} = {{")[1].split("\n    --")[0]
        names = re.findall(r'\{name = "(\w+)"', table)
        assert names == [each.name for each in subject.fields]


def test_wireshark_balances_its_brackets() -> None:
    """A cheap guard against a table that does not close."""
    text = re.sub(r'"(?:\\.|[^"\\])*"|--[^\n]*', "", wireshark.render(families()["lwp"]))
    for opening, closing in ("{}", "()", "[]"):
        assert text.count(opening) == text.count(closing)
