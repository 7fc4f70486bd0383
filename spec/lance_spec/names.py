"""Topic names (LWP section 5.3, AMB-24)."""

import re
import unicodedata
from typing import Final

from lance_spec.dialect import Dialect
from lance_spec.errors import EncodeError
from lance_spec.limits import MAX_TOPIC_NAME

_UNSEEN: Final = frozenset(("Cc", "Zl", "Zp"))
"""Controls, and the separators of lines and paragraphs."""
_BIDIRECTIONAL: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
"""Characters that change the direction of text (Unicode's property Bidi_Control)."""
_STRICT: Final = re.compile(r"[A-Za-z0-9-]+")


def check_topic_name(name: str, dialect: Dialect | None = None) -> str:
    """Return ``name`` in the form in which names are compared (Unicode NFC).

    Args:
        name: the topic's name.
        dialect: whose rules to apply; None means those every dialect shares.

    Raises:
        EncodeError: when no topic may have this name; it says which rule is broken.
    """
    normal = unicodedata.normalize("NFC", name)
    try:
        size = len(normal.encode())
    except UnicodeEncodeError as error:
        raise _refused("valid Unicode", f"a lone surrogate at character {error.start}") from None
    if not 1 <= size <= MAX_TOPIC_NAME:
        raise _refused(f"1 to {MAX_TOPIC_NAME} bytes of UTF-8", f"{size} bytes")
    if normal in {".", ".."}:
        raise _refused("a name other than '.' and '..'", repr(name))
    for place, character in enumerate(normal):
        if character == "/" or _misleads(character):
            raise _refused(
                "no '/', no control character, no bidirectional control and no line separator",
                f"{character!a} at character {place}",
            )
    if dialect is not None and dialect.strict_topic_names and not _STRICT.fullmatch(normal):
        raise _refused("only letters a-z, A-Z, digits and '-'", repr(name))
    return normal


def _misleads(character: str) -> bool:
    """Whether a character shows text as something else: on a terminal, in a log, in a table."""
    return unicodedata.category(character) in _UNSEEN or character in _BIDIRECTIONAL


def _refused(expected: str, got: str) -> EncodeError:
    return EncodeError("CreateTopic", "name", expected, got)
