"""The grammar's families, lowered: the way in for tables, strategies and explanations."""

from functools import cache
from typing import Final

from lance_spec.grammar import engine, lwp, store_forward
from lance_spec.ir import Family, Message
from lance_spec.lowering import lower_grammar

GRAMMARS: Final = (lwp.GRAMMAR, engine.GRAMMAR, store_forward.GRAMMAR)
"""Every grammar; each becomes a family and a module of `lance_spec.messages`."""


@cache
def families() -> dict[str, Family]:
    """Return every family by name."""
    return {each.name: lower_grammar(each) for each in GRAMMARS}


@cache
def messages() -> dict[str, Message]:
    """Return every message by name; names are unique across families."""
    return {each.name: each for family in families().values() for each in family.messages}


def message(name: str) -> Message:
    """Return the message called ``name``.

    Raises:
        KeyError: no family has it; the text lists the names there are.
    """
    try:
        return messages()[name]
    except KeyError:
        raise KeyError(f"no message {name!r}; there are {', '.join(messages())}") from None
