"""``lance-error-codes``: the codes a server may answer with, and what the SDK makes of them."""

from sphinx.application import Sphinx

import lance_sdk.errors
from lance_docs._base import Generated, list_table, literal
from lance_sdk.errors import server_error
from lance_spec import enums
from lance_spec.enums import ErrorCode


class ErrorCodes(Generated):
    """Every code of an ErrorResponse."""

    sources = (enums, lance_sdk.errors)

    def text(self) -> str:
        """Return a table with one row for each code."""
        header = ("Code", "Name", "Raised as", "retryable", "maybe_applied")
        return list_table(header, map(_row, ErrorCode), widths="10 32 32 13 13")


def _row(code: ErrorCode) -> tuple[str, ...]:
    error = server_error(code, "example")
    return (
        literal(f"0x{code:02X}"),
        literal(code.name),
        f":class:`~lance_sdk.errors.{type(error).__name__}`",
        _said(error.retryable),
        _said(error.maybe_applied),
    )


def _said(answer: bool) -> str:
    return "yes" if answer else "no"


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("lance-error-codes", ErrorCodes)
