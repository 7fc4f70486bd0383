"""The C headers of families whose messages nest, compiled with every warning an error."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lance_spec.codec.composed import codec
from lance_spec.emit._words import snake
from lance_spec.emit.c import nested_header
from lance_spec.emit.c._nested_functions import is_columnar, section_function
from lance_spec.ir.families import composed
from lance_spec.ir.nodes import Field, Message
from lance_spec.ir.shapes import Blob, Many, Measured, Number, Sections, Varint

sys.path.insert(0, str(Path(__file__).parent))  # the folder is not a package
from _samples import judged, readable, samples

STRICT = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

_HEAD = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static uint8_t *data, again[65536];
static void show(const char *n, struct lance_bytes b) {
  printf(" %s=", n); for (size_t i = 0; i < b.size; i++) printf("%02x", b.data[i]); }
"""


def program(family: str) -> Iterator[str]:
    """Write a program that reads ``message hex`` lines, and prints and rewrites what they say."""
    subjects = [each for each in composed()[family].messages if not is_columnar(each)]
    yield f'#include "lance_{family}.h"\n{_HEAD}'
    for subject in subjects:
        yield from _case(subject)
    yield "int main(void) { static char line[140000]; char name[64]; unsigned byte;"
    yield "while (fgets(line, sizeof line, stdin)) { int used = 0; size_t size = 0;"
    yield '  sscanf(line, "%63s %n", name, &used);'
    yield "  data = malloc(strlen(line)); /* so that reading beyond the end is noticed */"
    yield '  for (const char *p = line + used; sscanf(p, "%2x", &byte) == 1; p += 2)'
    yield "    again[size++] = (uint8_t)byte;"
    yield "  free(data); data = malloc(size ? size : 1); memcpy(data, again, size);"
    for subject in subjects:
        yield f'  if (!strcmp(name, "{subject.name}")) {snake(subject.name)}(size);'
    yield "  free(data); } return 0; }"


def _case(subject: Message) -> Iterator[str]:
    base = snake(subject.name)
    yield f"static void {base}(size_t size) {{ struct lance_{base} it;"
    yield f"  enum lance_result r = lance_{base}_read(&it, data, size);"
    yield '  if (r != LANCE_OK) { printf("rejected\\n"); return; } printf("ok");'
    for each in subject.given:
        yield _print(each)
    yield from _sections(subject)
    yield "  struct lance_writer out = {again, sizeof again, LANCE_OK};"
    yield f"  lance_{base}_put(&out, &it);"
    yield "  size_t wrote = sizeof again - out.left;"
    yield "  if (out.result != LANCE_OK || wrote != size || memcmp(data, again, size) != 0)"
    yield '    printf(" REWRITTEN-DIFFERENTLY");'
    yield '  printf("\\n"); }'


def _print(field: Field) -> str:
    match field.shape:
        case Number() | Varint():
            return f'  printf(" {field.name}=%lld", (long long)it.{field.name});'
        case Blob() | Measured():
            return f'  show("{field.name}", it.{field.name});'
        case Many():
            return f'  printf(" {field.name}=%lld", (long long)it.{field.name}.count);'
    return ""


def _sections(subject: Message) -> Iterator[str]:
    """Take each section of a table once more, and put it: the bytes must be the same."""
    for field in subject.fields:
        if isinstance(field.shape, Sections):
            taken = section_function(field.shape)
            yield "  struct lance_reader defs = lance_reader_of(it.columns.bytes);"
            yield "  struct lance_reader in = lance_reader_of(it.sections.bytes);"
            yield "  struct lance_writer copy = {again, sizeof again, LANCE_OK};"
            yield "  for (uint64_t n = 0; n < it.columns.count; n++) {"
            yield "    struct lance_column_definition column; struct lance_section each;"
            yield "    lance_column_definition_take(&defs, &column);"
            yield f"    {taken}_take(&in, column.type, it.row_count, &each);"
            yield "    lance_section_put(&copy, &each); }"
            yield "  if (lance_finish_read(&in) != LANCE_OK || copy.result != LANCE_OK"
            yield "      || memcmp(again, it.sections.bytes.data, it.sections.bytes.size) != 0)"
            yield '    printf(" SECTIONS-DIFFER");'


@pytest.fixture(scope="module", params=nested_header.FAMILIES)
def reader(request: pytest.FixtureRequest, cc: str, tmp_path_factory: Any) -> tuple[str, Path]:
    """A family and its program, which stops at the first access beyond the bytes."""
    family = str(request.param)
    folder = tmp_path_factory.mktemp(family)
    source = Path(__file__).parents[2] / "spec" / "generated"
    (folder / "lance_bytes.h").write_text((source / "lance_bytes.h").read_text())
    (folder / "lance_nested.h").write_text(nested_header.runtime())
    (folder / f"lance_{family}.h").write_text(nested_header.render(composed()[family]))
    (folder / "reader.c").write_text("\n".join(program(family)) + "\n")
    arguments = [cc, *STRICT, *SANITIZED, "reader.c", "-o", "reader"]
    subprocess.run(arguments, cwd=folder, check=True, timeout=200)
    return family, folder / "reader"


def expected(family: str, name: str, data: bytes) -> str:
    """What the program must say of a message."""
    if not readable(family, name, data):
        return "rejected"
    value = codec(f"{family}.{name}").decode(data)
    shown = "".join(_shown(each, value) for each in composed()[family].message(name).given)
    same = value.encode() == data
    return f"ok{shown}" + ("" if same else " REWRITTEN-DIFFERENTLY")


def _shown(field: Field, value: Any) -> str:
    found = getattr(value, field.name)
    match field.shape:
        case Number() | Varint():
            signed = int(found) - 2**64 if int(found) >= 2**63 else int(found)
            return f" {field.name}={signed}"
        case Blob() | Measured():
            raw = found.encode() if isinstance(found, str) else found
            return f" {field.name}={raw.hex()}"
        case Many():
            return f" {field.name}={len(found)}"
    return ""


def test_c_reads_and_rewrites_what_python_does(reader: tuple[str, Path]) -> None:
    """Valid messages with their values; cut, lengthened and broken ones not at all."""
    family, path = reader
    tests = [
        each for each in samples(family) if not is_columnar(composed()[family].message(each[0]))
    ]
    lines = "".join(f"{name} {data.hex()}\n" for name, data in tests)
    finished = subprocess.run(
        [path], input=lines, capture_output=True, text=True, check=False, timeout=200
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    answers = finished.stdout.splitlines()
    wrong = [
        (name, data.hex(), answer)
        for (name, data), answer in zip(tests, answers, strict=True)
        if answer.removesuffix(" SECTIONS-DIFFER") != expected(family, name, data)
        or ("SECTIONS-DIFFER" in answer and "REWRITTEN" not in answer)
    ]
    assert not wrong, wrong[:3]
    assert {answer.split()[0] for answer in answers} == {"ok", "rejected"}


def test_c_judges_vectors_as_they_say(reader: tuple[str, Path]) -> None:
    """Every valid message is read; none with a fault is, but for checksums, which C leaves."""
    family, path = reader
    tests = [
        each
        for each in judged(family, checksums=False)
        if not is_columnar(composed()[family].message(each[0]))
    ]
    lines = "".join(f"{name} {data.hex()}\n" for name, data, _ in tests)
    finished = subprocess.run(
        [path], input=lines, capture_output=True, text=True, check=True, timeout=200
    )
    answers = finished.stdout.splitlines()
    wrong = [
        (name, data.hex(), answer)
        for (name, data, valid), answer in zip(tests, answers, strict=True)
        if valid is (answer == "rejected")
    ]
    assert not wrong, wrong[:3]
