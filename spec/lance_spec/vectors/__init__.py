"""The test vectors: where they are, and what they say.

They are JSON files for any language, in ``vectors/`` of a checkout and inside the installed
package; ``vectors/README.md`` explains their form.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

FAMILIES: Final = (
    "crc",
    "frame_decode",
    "tlv_decode",
    "control_payload",
    "fetch_response",
    "engine_message",
    "frame_encode",
    "frame_stream",
    "tlv_encode",
    "segment_scan",
    "error_payload",
    "json_body",
    "file_name",
    "group_text",
    "packed_field",
    "consumer_id",
    "group_message",
    "replication_message",
    "lz4_frame",
    "slot_message",
    "slot_file",
    "slot_segment",
    "qwp_message",
    "qwp_upgrade",
    "fluvio_message",
    "fluvio_exchange",
    "fluvio_records",
    "rustlog_message",
    "rustlog_json",
)
"""The names of all families."""

_PACKAGE: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Vector:
    """One test.

    Attributes:
        id: its name, unique over all families.
        data: the bytes it is about.
        result: ``valid``, ``invalid`` or ``either``.
        outcomes: what a receiver may do, as the file words it; several only for ``either``.
        group: what it shares with its neighbours: dialect, message, algorithm.
        test: everything the file says about it.
    """

    id: str
    data: bytes
    result: str
    outcomes: tuple[dict[str, Any], ...]
    group: dict[str, Any]
    test: dict[str, Any]

    @classmethod
    def of(cls, group: dict[str, Any], test: dict[str, Any]) -> "Vector":
        """Return the test as the file gives it."""
        outcomes = test["outcomes"] if test["result"] == "either" else [test["outcome"]]
        shared = {name: value for name, value in group.items() if name != "tests"}
        data = bytes.fromhex(test["bytes"])
        return cls(test["id"], data, test["result"], tuple(outcomes), shared, test)


@dataclass(frozen=True, slots=True)
class Vectors:
    """One family.

    Attributes:
        family: its name.
        document: the file, as it is.
        tests: every test of every group.
    """

    family: str
    document: dict[str, Any]
    tests: tuple[Vector, ...]

    def __iter__(self) -> Iterator[Vector]:
        return iter(self.tests)


def root() -> Path:
    """Return the folder that holds the vectors.

    Raises:
        FileNotFoundError: the package was installed without them, or torn from its checkout.
    """
    for folder in (_PACKAGE / "_vectors", _PACKAGE.parent.parent / "vectors"):
        if (folder / f"{FAMILIES[0]}.json").is_file():
            return folder
    raise FileNotFoundError(
        "the test vectors are neither in the installed package nor next to it; "
        "install lance-sdk from a wheel, or work in a checkout"
    )


@cache
def load(family: str) -> Vectors:
    """Return a family's tests.

    Args:
        family: one of `FAMILIES`.

    Raises:
        ValueError: there is no such family.
        FileNotFoundError: the vectors are not installed.
    """
    if family not in FAMILIES:
        raise ValueError(f"no family {family!r}; there are {', '.join(FAMILIES)}")
    return read(root() / f"{family}.json")


def read(path: Path) -> Vectors:
    """Return the tests of a file, which must be well formed; `check` tells whether it is."""
    document = json.loads(path.read_text(encoding="utf-8"))
    tests = [Vector.of(group, test) for group in document["testGroups"] for test in group["tests"]]
    return Vectors(path.stem, document, tuple(tests))


def citing(row: str) -> list[str]:
    """Return the ids of the tests that depend on a row of the ambiguity register."""
    return [
        vector.id
        for family in FAMILIES
        for vector in load(family)
        if vector.test.get("ambiguity") == row
        or vector.test["clause"].startswith(f"{row}/")
        or row in vector.test["comment"]
    ]
