"""Offsets of named consumers on a node of a cluster: in the shared log, like those of LWP.

A cluster keeps offsets by number. The number of a name is made of it, so every node knows it. Those
offsets count records, where those of LWP's consumers count bytes: the number tells which they are.
"""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

from lance_server.errors import DataDirError
from lance_server.log.metadata.checksummed_file import load_document
from lance_server.storage.contract import StorageBackend
from lance_spec.bodies import take_int
from lance_spec.errors import DecodeError

RUSTLOG_GROUPS: Final = "rustlog-groups.json"
"""Where a single server keeps, in a topic's folder, what RustLog's groups have committed."""
FLUVIO_CONSUMERS: Final = "fluvio-consumers.json"
"""Where a single server keeps, in a topic's folder, what Fluvio's consumers have committed."""
_MARK: Final = b"re"
"""The highest bytes of the number of a consumer whose offset counts records."""


def consumer_number(protocol: str, name: str) -> int:
    """Return the number under which the nodes of a cluster keep a named consumer's offset.

    Args:
        protocol: whose consumer it is; names of different protocols have nothing in common.
        name: the consumer's.
    """
    size = 8 - len(_MARK)
    digest = blake2b(name.encode(), digest_size=size, person=protocol.encode()).digest()
    return int.from_bytes(digest + _MARK, "little")


def counts_records(consumer: int) -> bool:
    """Whether the number is that of a named consumer, whose offset counts records.

    One of 65,536 numbers that LWP's consumers choose at random looks so, too.
    """
    return consumer.to_bytes(8, "little").endswith(_MARK)


class NamedCommit(NamedTuple):
    """What a named consumer has committed at a single server, as a cluster keeps it.

    Attributes:
        consumer: its number.
        offset: records before the next one.
        time_ns: when, or 0 where that is not known.
    """

    consumer: int
    offset: int
    time_ns: int


def named_commits(storage: StorageBackend, folder: Path) -> Iterator[NamedCommit]:
    """Yield what named consumers of a topic have committed at a single server.

    Args:
        storage: the backend.
        folder: the topic's.

    Raises:
        DataDirError: what is kept there cannot be read.
        OSError: the disk refused.
    """
    groups = _offsets(storage, folder / RUSTLOG_GROUPS)
    for name in groups:
        offset = take_int(groups, name, RUSTLOG_GROUPS)
        yield NamedCommit(consumer_number("rustlog", name), offset, 0)
    consumers = _offsets(storage, folder / FLUVIO_CONSUMERS)
    for name, each in consumers.items():
        last, modified = (take_int(each, key, FLUVIO_CONSUMERS) for key in ("offset", "modified"))
        number = consumer_number("fluvio", name)
        yield NamedCommit(number, last + 1, modified * 1_000_000_000)


def _offsets(storage: StorageBackend, path: Path) -> dict[str, Any]:
    try:
        document = load_document(storage, path)
    except DecodeError as error:
        raise DataDirError(f"{path}: {error}") from error
    found = {} if document is None else document.body.get("offsets")
    if not isinstance(found, dict):
        raise DataDirError(f"{path} has no offsets; remove it to begin again")
    return found
