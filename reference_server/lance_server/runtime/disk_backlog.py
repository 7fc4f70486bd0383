"""Counts batches on their way to the disk."""


class Backlog:
    """Bytes that the log holds because they are not durable yet.

    Attributes:
        size: how many; counted where they come and go, because it is asked for with each request.
    """

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0

    def __repr__(self) -> str:
        return f"<Backlog {self.size} bytes>"
