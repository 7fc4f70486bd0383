"""Frames that a client sends, in its dialect."""

from lance_spec.checksum import Buffer
from lance_spec.dialect import Dialect
from lance_spec.enums import Flag
from lance_spec.frames import encode_control, encode_header, encode_keepalive


class Requests:
    """Makes frames.

    Attributes:
        dialect: what the client speaks.
    """

    dialect: Dialect

    def raw_ingest(
        self,
        payload: bytes,
        batch_id: int = 1,
        *,
        count: int = 1,
        topic_id: int = 0,
        timestamp_ns: int = 5,
        flags: int = Flag.BATCH_MODE,
    ) -> bytes:
        """Return an Ingest frame with any payload."""
        header = encode_header(
            self.dialect,
            flags,
            batch_id=batch_id,
            timestamp_ns=timestamp_ns,
            record_count=count,
            topic_id=topic_id,
            payload=payload,
        )
        return header + payload

    def control(self, command: int, payload: Buffer = b"") -> bytes:
        """Return a Control frame."""
        return encode_control(self.dialect, command, payload)

    def keepalive(self) -> bytes:
        """Return a Keepalive frame."""
        return encode_keepalive(self.dialect)
