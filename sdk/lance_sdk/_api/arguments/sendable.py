"""The type of ``send``'s argument, for type checkers: bytes, or what ``values=`` encodes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from lance_spec.checksum import Buffer

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    V = TypeVar("V", default=Any)
else:
    from typing import TypeVar  # which has no defaults in Python 3.11

    V = TypeVar("V")

__all__ = ["Plain", "V", "with_values"]


class ProtobufMessage(Protocol):
    """A Protocol Buffers message."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - their name
        """Return its bytes."""
        ...


Plain: TypeAlias = Buffer | ProtobufMessage | None
"""What a producer without ``values=`` takes; None is a tombstone."""


def with_values(values: object, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a producer, with ``values`` where the program gave it."""
    return dict(options) if values is None else {**options, "values": values}
