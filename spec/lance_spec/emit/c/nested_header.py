"""Back end: C11 headers for families whose messages nest."""

from collections.abc import Iterator
from typing import Final

from lance_spec.emit._enums import named_values
from lance_spec.emit._words import citation, snake, with_unit
from lance_spec.emit.c._nested_functions import (
    c_type,
    is_columnar,
    putter,
    section_function,
    taker,
)
from lance_spec.emit.c._nested_runtime import RUNTIME
from lance_spec.emit.c.header import NOTICE, enum
from lance_spec.ir.nodes import Family, Message
from lance_spec.ir.shapes import Maybe, Nested, Sections

FAMILIES: Final = ("groups", "qwp")
"""The families that have a form in C."""


def runtime() -> str:
    """Return ``lance_nested.h``, which the other headers of nested messages include."""
    return f"/* {NOTICE} */\n{RUNTIME}"


def render(family: Family) -> str:
    """Return ``lance_<family>.h``.

    A message is read at once with ``lance_<message>_read``, and one after another from a reader
    with ``lance_<message>_take``. Lists stay the bytes they are: a reader over them takes values.
    """
    guard = f"LANCE_{family.name.upper()}_H"
    blocks = [[f"/* {NOTICE} */", f"/* {family.doc} */"]]
    blocks.append([f"#ifndef {guard}", f"#define {guard}", "", '#include "lance_nested.h"'])
    blocks += [list(enum(each)) for each in named_values(family)]
    sections = False
    for message in family.messages:
        if not sections and _has_sections(message):
            sections = True
            blocks += [list(part) for part in _sections(family)]
        blocks += [list(part) for part in _message(message)]
    blocks.append(["#endif"])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _has_sections(message: Message) -> bool:
    return any(isinstance(each.shape, Sections) for each in message.fields)


def _message(message: Message) -> Iterator[Iterator[str]]:
    yield _struct(message)
    yield taker(message)
    yield putter(message)
    if not is_columnar(message):
        yield _whole(message)


def _struct(message: Message) -> Iterator[str]:
    yield f"/* {message.doc} ({citation(message.section, message.ambiguities)}). */"
    yield f"struct lance_{snake(message.name)} {{"
    for each in message.given:
        assert each.shape is not None
        yield f"    /* {with_unit(each)}: {each.shape.type_name}. */"
        if isinstance(each.shape, Maybe):
            yield f"    uint8_t has_{each.name};"
        yield f"    {c_type(each.shape)} {each.name};"
    if not message.given:
        yield "    char nothing; /* C has no empty structs */"
    yield "};"
    if message.command is not None:
        base = f"LANCE_{snake(message.name).upper()}"
        yield f"#define {base}_COMMAND 0x{message.command:02X}"


def _whole(message: Message) -> Iterator[str]:
    name = snake(message.name)
    yield f"/* Read a whole {message.name}. */"
    yield f"static inline enum lance_result lance_{name}_read("
    yield f"    struct lance_{name} *out, const uint8_t *data, size_t size)"
    yield "{"
    yield "    struct lance_reader in = {data, size, LANCE_OK};"
    yield f"    lance_{name}_take(&in, out);"
    yield "    return lance_finish_read(&in);"
    yield "}"


def _sections(family: Family) -> Iterator[Iterator[str]]:
    shapes = [e.shape for m in family.messages for e in m.fields if isinstance(e.shape, Sections)]
    cases: dict[str, Nested] = {nested.name: nested for s in shapes for _, nested in s.cases}
    yield _union(list(cases))
    for shape in shapes:
        yield _section_taker(shape)
    yield _section_putter(list(cases))


def _union(names: list[str]) -> Iterator[str]:
    yield "/* Which of the columns a section is. */"
    yield "enum lance_section_kind {"
    yield ",\n".join(f"    LANCE_SECTION_{snake(each).upper()}" for each in names)
    yield "};"
    yield ""
    yield "/* The values of one column. */"
    yield "struct lance_section {"
    yield "    enum lance_section_kind kind;"
    yield "    union {"
    yield from (f"        struct lance_{snake(each)} {snake(each)};" for each in names)
    yield "    } as;"
    yield "};"


def _section_taker(shape: Sections) -> Iterator[str]:
    yield "/* Take the values of a column of a type, in a table of so many rows. */"
    yield f"static inline void {section_function(shape)}_take("
    yield "    struct lance_reader *in, uint8_t type, uint64_t rows, struct lance_section *out)"
    yield "{"
    yield "    switch (type) {"
    for tag, nested in shape.cases:
        name = snake(nested.name)
        yield f"    case {tag}:"
        yield f"        out->kind = LANCE_SECTION_{name.upper()};"
        yield f"        lance_{name}_take(in, &out->as.{name}, rows);"
        yield "        break;"
    yield "    default:"
    yield "        lance_require(&in->result, 0);"
    yield "    }"
    yield "}"


def _section_putter(names: list[str]) -> Iterator[str]:
    yield "/* Put the values of a column. */"
    yield "static inline void lance_section_put("
    yield "    struct lance_writer *out, const struct lance_section *in)"
    yield "{"
    yield "    switch (in->kind) {"
    for each in map(snake, names):
        yield f"    case LANCE_SECTION_{each.upper()}:"
        yield f"        lance_{each}_put(out, &in->as.{each});"
        yield "        break;"
    yield "    }"
    yield "}"
