"""Small JSON files that must survive: checksummed, replaced atomically, kept twice."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lance_server.errors import DataDirError
from lance_server.storage.contract import (
    StorageBackend,
    UndecidedError,
    read_file,
    replace_file,
)
from lance_spec.checksum import CRC32C

_MAX_SIZE: Final = 64 * 1024 * 1024
_CHECKSUM: Final = "checksum"


@dataclass(frozen=True, slots=True)
class ChecksummedFile:
    """A document as it was found.

    Attributes:
        body: its content.
        problem: what was wrong with one of the two copies, or None.
    """

    body: dict[str, Any]
    problem: str | None = None


def backup_of(path: Path) -> Path:
    """Return where a document's second copy stands."""
    return path.with_name(path.name + ".bak")


def save_document(storage: StorageBackend, path: Path, body: Mapping[str, Any]) -> None:
    """Replace both copies, durably, one after the other.

    Raises:
        UndecidedError: the next start may find the old document or the new one.
        OSError: it finds the old one.
    """
    data = _encode(body)
    replace_file(storage, path, data)
    try:
        replace_file(storage, backup_of(path), data)
    except OSError as error:
        raise UndecidedError.after(error) from error


def load_document(storage: StorageBackend, path: Path) -> ChecksummedFile | None:
    """Return the document, from its second copy when the first is damaged; None if there is none.

    Raises:
        DataDirError: copies exist but none can be trusted.
        OSError: the disk refused, and no copy could be read.
    """
    found: list[dict[str, Any]] = []
    problems: list[str] = []
    refused: OSError | None = None
    for copy in (path, backup_of(path)):
        try:
            found.append(_decode(read_file(storage, copy, _MAX_SIZE)))
        except FileNotFoundError:
            problems.append(f"{copy} is missing")
        except ValueError as error:
            problems.append(f"{copy} is damaged: {error}")
        except OSError as error:
            problems.append(f"{copy} cannot be read: {error.strerror or error}")
            refused = error
    if found:
        return ChecksummedFile(found[0], "; ".join(problems) or None)
    if refused is not None:
        raise OSError(refused.errno, "; ".join(problems)) from refused
    if all(problem.endswith("missing") for problem in problems):
        return None
    raise DataDirError(f"{'; '.join(problems)}. Restore one of the two from a backup.")


def _encode(body: Mapping[str, Any]) -> bytes:
    plain = json.dumps(body, sort_keys=True, ensure_ascii=False, indent=2)
    stamped = {**body, _CHECKSUM: _stamp(plain)}
    return json.dumps(stamped, sort_keys=True, ensure_ascii=False, indent=2).encode() + b"\n"


def _stamp(plain: str) -> str:
    return f"crc32c:{CRC32C(plain.encode()):08x}"


def _decode(data: bytes) -> dict[str, Any]:
    """Return the body; ValueError says what is wrong with the bytes."""
    try:
        body = json.loads(data.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(body, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - one kind of error for bad content
    stated = body.pop(_CHECKSUM, None)
    actual = _stamp(json.dumps(body, sort_keys=True, ensure_ascii=False, indent=2))
    if stated != actual:
        raise ValueError(f"its checksum is {actual}, it says {stated}")
    return body
