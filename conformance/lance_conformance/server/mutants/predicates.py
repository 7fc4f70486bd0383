"""Mutants of rules that say yes or no: they let one thing more pass, or one thing less."""

from collections.abc import Callable
from typing import Any

from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants.registry import golden, mutant

Predicate = Callable[..., bool]
"""Judges the arguments of the hook, the server before them."""


def also_takes(
    hook: Predicate, name: str, title: str, taken: Predicate, only: str | None = None
) -> None:
    """Register a server that lets something pass that its rule does not.

    Args:
        hook: The rule.
        name: The mutant's id.
        title: How it is wrong, as a sentence.
        taken: What it lets pass.
        only: The one dialect in which this is wrong.
    """

    def replacement(server: Specified, *arguments: Any) -> bool:
        return taken(server, *arguments) or _golden(server, hook)(*arguments)

    register(hook, name, title, replacement, only)


def also_refuses(
    hook: Predicate, name: str, title: str, refused: Predicate, only: str | None = None
) -> None:
    """Register a server that refuses something that its rule lets pass.

    Args:
        hook: The rule.
        name: The mutant's id.
        title: How it is wrong, as a sentence.
        refused: What it refuses.
        only: The one dialect in which this is wrong.
    """

    def replacement(server: Specified, *arguments: Any) -> bool:
        return not refused(server, *arguments) and _golden(server, hook)(*arguments)

    register(hook, name, title, replacement, only)


def _golden(server: Specified, hook: Predicate) -> Predicate:
    judge: Predicate = getattr(golden(server), hook.__name__)
    return judge


def register(  # noqa: PLR0917 - a row of a table
    hook: Callable[..., Any],
    name: str,
    title: str,
    replacement: Callable[..., Any],
    only: str | None = None,
    asked: tuple[str, ...] = (),
) -> None:
    """Register a function that was made, not written, as the replacement of a hook.

    Args:
        hook: The rule.
        name: The mutant's id.
        title: How it is wrong, as a sentence.
        replacement: What stands in the rule's place.
        only: The one dialect in which this is wrong.
        asked: Globs of the cases that it is put to.
    """
    replacement.__name__, replacement.__doc__ = name.replace("-", "_"), title
    mutant(hook, only=only, asked=asked)(replacement)
