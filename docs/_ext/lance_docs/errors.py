"""What can go wrong, and what to do about it: codes, texts and classes of errors."""

import inspect
import tomllib
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

import lance_sdk.errors
from lance_docs._base import Generated, list_table, literal, prose
from lance_sdk import errors
from lance_sdk.errors import LanceError, ServerError, server_error
from lance_spec import enums, vectors
from lance_spec.enums import ErrorCode

_ADVICE = Path(__file__).with_name("advice.toml")
_MISTAKES = Path(__file__).parents[3] / "tests" / "sdk" / "mistakes" / "mistakes.toml"
_CODES = {type(server_error(code, "example")): f"``0x{code:02X}``" for code in ErrorCode}
_CODES.pop(ServerError, None)  # stands for codes that are not listed


class ErrorCodes(Generated):
    """Every code of an ErrorResponse."""

    sources = (enums, lance_sdk.errors)

    def text(self) -> str:
        """Return a table with one row for each code."""
        header = ("Code", "Name", "Raised as", "retryable", "maybe_applied")
        return list_table(header, map(_row, ErrorCode), widths="10 32 32 13 13")


class ErrorTexts(Generated):
    """What stands in an ErrorResponse of the dialect ``deployed``, and the code that it means."""

    sources = (vectors,)

    def text(self) -> str:
        """Return a table with one row for each text that the vectors have."""
        groups = vectors.load("error_payload").document["testGroups"]
        rows = [
            (literal(test["fields"]["message"]), literal(f"0x{test['fields']['code']:02X}"))
            for group in groups
            if group["dialect"] == "deployed"
            for test in group["tests"]
        ]
        return list_table(("Text", "Code"), rows, widths="85 15")


def _row(code: ErrorCode) -> tuple[str, ...]:
    error = server_error(code, "example")
    return (
        literal(f"0x{code:02X}"),
        literal(code.name),
        _link(type(error)),
        _said(error.retryable),
        _said(error.maybe_applied),
    )


class ErrorTree(Generated):
    """Every class of `lance_sdk.errors`: what it means, its two facts, and what to do."""

    sources = (lance_sdk.errors,)

    def text(self) -> str:
        """Return a table with one row for each class, in the order of the tree."""
        self.env.note_dependency(str(_ADVICE))
        advice = tomllib.loads(_ADVICE.read_text())
        tree = list(_tree(LanceError, 0))
        names = {kind.__name__ for kind, _ in tree}
        if unknown := sorted(advice.keys() - names):
            raise self.refuse(f"advice.toml: no error {', '.join(unknown)}")
        if missing := sorted(names - advice.keys()):
            raise self.refuse(f"advice.toml says nothing on {', '.join(missing)}")
        header = ("Error", "Code", "retryable", "maybe_applied", "What to do")
        rows = (_node(kind, depth, advice[kind.__name__]) for kind, depth in tree)
        return list_table(header, rows, widths="30 8 10 12 40")


class Mistakes(Generated):
    """What users get wrong: each row is caused for real by a test, which has the same table."""

    def text(self) -> str:
        """Return a table with one row for each mistake."""
        self.env.note_dependency(str(_MISTAKES))
        rows = (
            (
                row["what"],
                _error_of(row["error"]),
                literal(row["says"].replace("`", "'")),
                literal(row["remedy"].replace("`", "'")),
            )
            for row in tomllib.loads(_MISTAKES.read_text())["mistake"]
        )
        return list_table(("What happened", "Error", "It says", "It advises"), rows, "28 16 28 28")


def _error_of(name: str) -> str:
    kind = getattr(errors, name, None)
    return literal(name) if kind is None else _link(kind)


def _tree(kind: type[LanceError], depth: int) -> Iterator[tuple[type[LanceError], int]]:
    """Yield a public class, and then those below it."""
    yield kind, depth
    for below in kind.__subclasses__():
        if _is_public(below):
            yield from _tree(below, depth + 1)


def _is_public(kind: type[LanceError]) -> bool:
    return getattr(errors, kind.__name__, None) is kind and kind.__name__ in errors.__all__


def _node(kind: type[LanceError], depth: int, advice: str) -> tuple[str, ...]:
    indent = "\u2003" * depth
    return (
        f"{indent}{_link(kind)}",
        _CODES.get(kind, ""),
        _fact(kind, "retryable"),
        _fact(kind, "maybe_applied"),
        prose(advice),
    )


def _fact(kind: type[LanceError], name: str) -> str:
    """Return what holds for the class, or that it is decided for each error."""
    for each in kind.__mro__:
        if "__init__" in vars(each) and f"self.{name} =" in inspect.getsource(each.__init__):
            return "it says"
        if name in vars(each):
            break
    return _said(getattr(kind, name))


def _link(kind: type[LanceError]) -> str:
    return f":class:`~lance_sdk.errors.{kind.__name__}`"


def _said(answer: bool) -> str:
    return "yes" if answer else "no"


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("lance-error-codes", ErrorCodes)
    app.add_directive("lance-error-texts", ErrorTexts)
    app.add_directive("lance-error-tree", ErrorTree)
    app.add_directive("lance-mistakes", Mistakes)
