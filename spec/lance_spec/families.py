"""The grammar's families, lowered: the way in for tables, strategies and explanations."""

from functools import cache
from typing import Final

from lance_spec.grammar import engine, fluvio, lwp, qwp, rustlog, store_forward
from lance_spec.grammar._vocab import Declaration
from lance_spec.ir import Family, Message
from lance_spec.lowering import lower_grammar

GRAMMARS: Final = (lwp.GRAMMAR, engine.GRAMMAR, store_forward.GRAMMAR)
"""LANCE's own grammars; each becomes a family and a module of `lance_spec.messages`."""

FOREIGN: Final = (fluvio.GRAMMAR, rustlog.GRAMMAR, qwp.GRAMMAR)
"""Grammars of other systems that the server or the SDK can speak to; their messages nest."""


@cache
def families() -> dict[str, Family]:
    """Return LANCE's own families by name."""
    return {each.name: lower_grammar(each) for each in GRAMMARS}


@cache
def foreign() -> dict[str, Family]:
    """Return the families of other systems by name."""
    return {each.name: lower_grammar(each) for each in FOREIGN}


@cache
def messages() -> dict[str, Message]:
    """Return every message of LANCE by name; names are unique across its families."""
    return {each.name: each for family in families().values() for each in family.messages}


@cache
def foreign_messages() -> dict[str, Message]:
    """Return every message of other systems by family and name: ``fluvio.ProduceRequest``."""
    return {
        f"{family.name}.{each.name}": each
        for family in foreign().values()
        for each in family.messages
    }


def declaration(name: str) -> Declaration:
    """Return what the grammar says about a message of another system, by its full name.

    Raises:
        KeyError: no foreign family has it.
    """
    for grammar in FOREIGN:
        for each in grammar.messages:
            if name == f"{grammar.name}.{each.name}":
                return each
    raise KeyError(f"no message {name!r}; there are {', '.join(foreign_messages())}")


def message(name: str) -> Message:
    """Return the message called ``name``; those of other systems by family and name.

    Raises:
        KeyError: no family has it; the text lists the names there are.
    """
    known = foreign_messages() if "." in name else messages()
    try:
        return known[name]
    except KeyError:
        raise KeyError(f"no message {name!r}; there are {', '.join(known)}") from None
