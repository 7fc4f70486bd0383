"""Base of session handlers that never ingest: they only ask and take answers."""

from lance_sdk.errors import RemoteProtocolError, ServerError


class ReadOnlyHandler:
    """Frames about Ingest mean nothing to an application that sends none."""

    @property
    def pinned(self) -> bool:
        """Nothing sent twice could be stored twice, so any dialect will do."""
        return False

    def acked(self, batch_id: int, now: float) -> None:
        """Refuse an Ack: nothing was ingested."""
        del now
        raise RemoteProtocolError(
            f"the server acknowledged batch {batch_id:#x}, which was never sent"
        )

    def slow_down(self, now: float) -> None:
        """Ignore a Backpressure frame: it is about Ingest (LWP section 4.4)."""

    def refused(self, error: ServerError, now: float) -> None:
        """Take an error that answers no request: the server is about to close."""
        del now
        raise RemoteProtocolError(f"the server sent an error that answers no request: {error}")
