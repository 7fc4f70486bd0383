"""A mixin for objects that live in one process only: it refuses pickling and copying."""

from typing import NoReturn


class NotPicklable:
    """Base of objects that hold a connection: they can be neither pickled nor copied."""

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(
            f"a {name} belongs to the process that made it and can be neither pickled nor copied; "
            f"hand on the URL and the options, and make a {name} of them there"
        )
