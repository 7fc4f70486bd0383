"""The grammar's families, lowered: the way in for tables, strategies and explanations."""

from functools import cache
from typing import Final

from lance_spec.grammar import groups, replication, rustlog, store_forward
from lance_spec.grammar._vocab import Declaration
from lance_spec.grammar.engine import files
from lance_spec.grammar.fluvio import protocol as fluvio
from lance_spec.grammar.lwp import protocol as lwp
from lance_spec.grammar.qwp import protocol as qwp
from lance_spec.ir.lowering import lower_grammar
from lance_spec.ir.nodes import Family, Message

GRAMMARS: Final = (lwp.GRAMMAR, files.GRAMMAR, store_forward.GRAMMAR)
"""Grammars of flat messages; each becomes a family and a module of `lance_spec.messages`."""

COMPOSED: Final = (
    groups.GRAMMAR,
    replication.GRAMMAR,
    qwp.GRAMMAR,
    fluvio.GRAMMAR,
    rustlog.GRAMMAR,
)
"""Grammars of messages that nest: consumer groups, the records of a cluster, other protocols."""


@cache
def families() -> dict[str, Family]:
    """Return the families of flat messages by name."""
    return {each.name: lower_grammar(each) for each in GRAMMARS}


@cache
def composed() -> dict[str, Family]:
    """Return the families of messages that nest by name."""
    return {each.name: lower_grammar(each) for each in COMPOSED}


@cache
def messages() -> dict[str, Message]:
    """Return every flat message by name; names are unique across their families."""
    return {each.name: each for family in families().values() for each in family.messages}


@cache
def composed_messages() -> dict[str, Message]:
    """Return every message that nests by family and name: ``fluvio.ProduceRequest``."""
    return {
        f"{family.name}.{each.name}": each
        for family in composed().values()
        for each in family.messages
    }


def declaration(name: str) -> Declaration:
    """Return what the grammar says about a message that nests, by its full name.

    Raises:
        KeyError: no such family has it.
    """
    for grammar in COMPOSED:
        for each in grammar.messages:
            if name == f"{grammar.name}.{each.name}":
                return each
    raise KeyError(f"no message {name!r}; there are {', '.join(composed_messages())}")


def message(name: str) -> Message:
    """Return the message called ``name``; those that nest by family and name.

    Raises:
        KeyError: no family has it; the text lists the names there are.
    """
    known = composed_messages() if "." in name else messages()
    try:
        return known[name]
    except KeyError:
        raise KeyError(f"no message {name!r}; there are {', '.join(known)}") from None
