"""The symbols that a QWP slot has sent: the file ``.symbol-dict`` (SF-04).

One header, then chunks; the id of a symbol is its place among all of them. Reading stops at the
first chunk that is not whole or whose checksum is wrong.
"""

from typing import Any, Final

from construct import Bytes, Const, Construct, Int8ul, Int32ul, Rebuild, len_, this

from lance_spec.grammar._composed import LEB128, Filled
from lance_spec.grammar._vocab import Crc, field, message
from lance_spec.grammar.qwp.columns import STRING

_IDS: Final = ("SF-04",)


def _field(name: str, parser: Construct, doc: str, **facts: Any) -> Construct:
    return field(name, parser, doc=doc, section="SF-04", ambiguities=_IDS, **facts)


SYMBOL_DICTIONARY_HEADER = message(
    "SymbolDictionaryHeader",
    _field("magic", Const(b"SYD1"), "The letters SYD1"),
    _field("version", Const(1, Int8ul), "Version of the file's layout"),
    _field("reserved", Const(bytes(3)), "Zeros", reserved=True),
    doc="Opens a dictionary of symbols",
    section="SF-04",
    ambiguities=_IDS,
)
SYMBOLS = message(
    "Symbols",
    _field("symbols", Filled(STRING), "The symbols, each after its length"),
    doc="What the entries of a chunk are",
    section="SF-04",
    ambiguities=_IDS,
)
SYMBOL_CHUNK = message(
    "SymbolChunk",
    _field("entry_count", LEB128, "How many symbols", unit="symbols"),
    _field("entry_bytes", Rebuild(LEB128, len_(this.entries)), "Length of them", unit="bytes"),
    _field("entries", Bytes(this.entry_bytes), "As many symbols, a Symbols message"),
    _field(
        "crc",
        Int32ul,
        "CRC-32C of the chunk up to here",
        checksum=Crc(over="before", algorithm="crc32c"),
    ),
    doc="Symbols that were written together",
    section="SF-04",
    ambiguities=_IDS,
)

MESSAGES: Final = (SYMBOL_DICTIONARY_HEADER, SYMBOLS, SYMBOL_CHUNK)
"""The parts of the file, in its order."""
