"""The golden rules of each dialect."""

from collections.abc import Mapping

from lance_conformance.rustlog.golden.jsonform import JsonForm


class Both(JsonForm):
    """A server of both forms."""


class BinaryOnly(JsonForm):
    """A server of the binary form: a brace is a type like any other."""

    def form(self, _payload: bytes, /) -> str:
        """Everything is binary."""
        return "binary"


class JsonOnly(JsonForm):
    """A server of the JSON form."""

    def form(self, _payload: bytes, /) -> str:
        """Everything is JSON."""
        return "json"

    def form_of_frame_errors(self, /) -> str:
        """Also what is said about bad lengths."""
        return "json"


GOLDEN: Mapping[str, type[JsonForm]] = {"both": Both, "binary": BinaryOnly, "json": JsonOnly}
Rules = JsonForm
