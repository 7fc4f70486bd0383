"""Errors of the grammar package."""


class DecodeError(ValueError):
    """Bytes that are not what the grammar says they are.

    Attributes:
        message: name of the message that was being read, for example ``Fetch``.
        field: name of the field at fault, or ``""`` when the whole message is.
        offset: byte offset of the fault within the bytes that were given.
        expected: what the grammar asks for, in words.
        got: what stood there, in words.
    """

    def __init__(self, message: str, field: str, offset: int, expected: str, got: str) -> None:
        self.message = message
        self.field = field
        self.offset = offset
        self.expected = expected
        self.got = got
        super().__init__(message, field, offset, expected, got)

    def __str__(self) -> str:
        place = f"{self.message}.{self.field}" if self.field else self.message
        return f"{place} at byte {self.offset}: expected {self.expected}, got {self.got}"


class EncodeError(ValueError):
    """A value that the wire cannot carry.

    Attributes:
        message: name of the message that was being written.
        field: name of the field at fault.
        expected: what the grammar asks for, in words.
        got: what was given, in words.
    """

    def __init__(self, message: str, field: str, expected: str, got: str) -> None:
        self.message = message
        self.field = field
        self.expected = expected
        self.got = got
        super().__init__(message, field, expected, got)

    def __str__(self) -> str:
        return f"{self.message}.{self.field}: expected {self.expected}, got {self.got}"
