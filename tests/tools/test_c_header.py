"""The generated C headers, compiled with every warning an error, read and write the vectors."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lance_spec.codec.packing import PACKINGS, Packing
from lance_spec.emit._words import snake
from lance_spec.emit.c import header, nested_header
from lance_spec.ir.families import composed, families
from lance_spec.ir.nodes import Field, Message

sys.path.insert(0, str(Path(__file__).parents[1]))  # the folder is not a package
from _message_vectors import expected, name_of, payloads

STRICT = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]


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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every header."""
    folder = tmp_path_factory.mktemp("c")
    (folder / "lance_bytes.h").write_text(header.runtime())
    (folder / "lance_nested.h").write_text(nested_header.runtime())
    for name, family in families().items():
        (folder / f"lance_{name}.h").write_text(header.render(family))
    for name in nested_header.FAMILIES:
        (folder / f"lance_{name}.h").write_text(nested_header.render(composed()[name]))
    return folder


@pytest.fixture(scope="module")
def reader(any_cc: str, folder: Path) -> Path:
    """The program, compiled with every warning an error."""
    subjects = [each for family in families().values() for each in family.messages]
    (folder / "reader.c").write_text("\n".join(c_program(subjects)) + "\n")
    arguments = [any_cc, *STRICT, "reader.c", "-o", "reader"]
    subprocess.run(arguments, cwd=folder, check=True, timeout=100)
    return folder / "reader"


def test_c_reads_and_rewrites_every_vector(reader: Path) -> None:
    """The headers compile without a warning and agree with every vector, both ways."""
    tests = payloads()
    lines = "".join(f"{name_of(each)} {each.data.hex()}\n" for each in tests)
    finished = subprocess.run(
        [reader], input=lines, capture_output=True, text=True, check=True, timeout=100
    )
    for vector, answer in zip(tests, finished.stdout.splitlines(), strict=True):
        fields = expected(vector)
        shown = "".join(f" {name}={value}" for name, value in (fields or {}).items())
        assert answer == ("rejected" if fields is None else f"ok{shown}"), vector.id


@pytest.mark.parametrize("name", [*families(), *nested_header.FAMILIES])
def test_each_header_stands_alone(name: str, cc: str, folder: Path) -> None:
    """A program that includes one header, twice, compiles."""
    source = f'#include "lance_{name}.h"\n' * 2 + "int main(void) { return 0; }\n"
    (folder / f"alone_{name}.c").write_text(source)
    arguments = [cc, *STRICT, "-fsyntax-only", f"alone_{name}.c"]
    subprocess.run(arguments, cwd=folder, check=True, timeout=100)


@pytest.mark.parametrize("name", [*families(), *nested_header.FAMILIES])
@pytest.mark.parametrize("standard", ["c++11", "c++20"])
def test_each_header_is_cpp_too(name: str, standard: str, cxx: str, folder: Path) -> None:
    """A C++ program that includes a header, twice, compiles without a warning."""
    source = f'#include "lance_{name}.h"\n' * 2 + "int main() { return 0; }\n"
    (folder / f"alone_{name}.cpp").write_text(source)
    strict = [f"-std={standard}", *STRICT[1:], "-fsyntax-only", f"alone_{name}.cpp"]
    subprocess.run([cxx, *strict], cwd=folder, check=True, timeout=100)


def _bits_program(packing: Packing, values: dict[str, int]) -> str:
    base = f"LANCE_{packing.name.upper()}"
    given = ", ".join(f"UINT64_C({values[part.name]})" for part in packing.parts)
    checks = " && ".join(
        f"{base}_{part.name.upper()}(packed) == UINT64_C({values[part.name]})"
        for part in packing.parts
    )
    return (
        f'#include "lance_engine.h"\nint main(void) {{\n'
        f"  uint64_t packed = lance_{packing.name}_pack({given});\n"
        f"  return packed == UINT64_C({packing.pack(values)}) && {checks} ? 0 : 1;\n}}\n"
    )


@pytest.mark.parametrize("packing", PACKINGS.values(), ids=PACKINGS)
def test_numbers_in_the_bits_of_a_field_are_taken_out(
    packing: Packing, cc: str, folder: Path
) -> None:
    """Design section 13.10: what is put in comes out, and is what Python puts in."""
    values = {part.name: part.largest // 3 for part in packing.parts}
    (folder / "bits.c").write_text(_bits_program(packing, values))
    subprocess.run([cc, *STRICT, "bits.c", "-o", "bits"], cwd=folder, check=True, timeout=100)
    assert subprocess.run([folder / "bits"], check=False, timeout=100).returncode == 0
