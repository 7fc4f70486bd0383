"""The interface of codecs, which convert an application's values to bytes of records and back."""

from typing import Any, Protocol, runtime_checkable

__all__ = ["Codec"]


@runtime_checkable
class Codec(Protocol):
    """How values of one kind are written; give one as ``values=`` to a producer or consumer.

    Attributes:
        record_type: the TLV type that such records bear (LWP section 8.2).
    """

    @property
    def record_type(self) -> int:
        """The TLV type that such records bear (LWP section 8.2)."""
        ...

    def encode(self, value: Any) -> bytes:
        """Return a value as bytes; raise `TypeError` or `ValueError` when that cannot be."""
        ...

    def decode(self, data: bytes) -> Any:
        """Return the value that the bytes encode; raise `ValueError` when they encode none."""
        ...
