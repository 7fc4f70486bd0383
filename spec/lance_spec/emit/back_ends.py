"""Which forms of the grammar there are for which family: the table that the site shows."""

from collections.abc import Callable, Mapping
from typing import Final

from lance_spec.emit.targets import targets
from lance_spec.ir.families import composed, families

TITLES: Final[Mapping[str, str]] = {
    "lwp": "LWP",
    "groups": "LWP consumer groups",
    "engine": "Engine files",
    "replication": "Replication",
    "store_forward": "Store-and-forward",
    "qwp": "QWP",
    "fluvio": "Fluvio",
    "rustlog": "RustLog",
}
"""What the families are called, in the order of the table."""

VECTORS: Final[Mapping[str, tuple[str, ...]]] = {
    "lwp": (
        *("crc", "frame_decode", "frame_encode", "frame_stream", "tlv_decode", "tlv_encode"),
        *("control_payload", "fetch_response", "error_payload", "json_body", "lz4_frame"),
    ),
    "groups": ("group_message", "group_text"),
    "engine": ("engine_message", "segment_scan", "file_name", "packed_field", "consumer_id"),
    "replication": ("replication_message",),
    "store_forward": ("slot_message", "slot_file", "slot_segment"),
    "qwp": ("qwp_message", "qwp_upgrade"),
    "fluvio": ("fluvio_message", "fluvio_exchange", "fluvio_records"),
    "rustlog": ("rustlog_message", "rustlog_json"),
}
"""The files of test vectors that are about each family."""

_FILES: Final = {"Kaitai": "ksy", "Wireshark": "lua", "C header": "h", "JSON": "json"}
COLUMNS: Final = ("Codec", *_FILES, "Vectors", "Strategies", "``explain``", "Tables here")
"""The forms, in the order of the table."""


def table(count: Callable[[str], int]) -> dict[str, dict[str, str]]:
    """Return what stands in each cell, by family and form; an empty cell is a form not there.

    Args:
        count: how many tests a file of vectors has.
    """
    written = {str(each.path) for each in targets()}
    return {family: _row(family, written, count) for family in TITLES}


def _row(family: str, written: set[str], count: Callable[[str], int]) -> dict[str, str]:
    known = family in families() or family in composed()
    cells = {"Codec": f"lance_spec/messages/{family}.py"}
    cells |= {name: f"generated/lance_{family}.{suffix}" for name, suffix in _FILES.items()}
    found = {name: path if path in written else "" for name, path in cells.items()}
    tests = sum(count(each) for each in VECTORS[family])
    everywhere = dict.fromkeys(("Strategies", "``explain``", "Tables here"), "yes" if known else "")
    return found | {"Vectors": str(tests or "")} | everywhere
