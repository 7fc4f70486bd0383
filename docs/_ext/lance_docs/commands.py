"""``lance-command``: the reference of a command line, from its click commands."""

import re
from collections.abc import Iterator
from importlib import import_module

import click
from sphinx.application import Sphinx

from lance_docs._base import Generated, block, escape, heading, list_table, literal

_UNDERLINES = "-~^"
_OPTION = re.compile(r"(?<![\w-])(--[a-z][\w-]*)")
_KEEP_LINES = "\b"
_MARK_IN_RAW_STRING = "\\b\n"


class CommandReference(Generated):
    """Usage, help and options of a command and of every command below it.

    The argument is the program's name and where its click command lives:
    ``lance-server lance_server.server_command:command``.
    """

    required_arguments = 2

    def text(self) -> str:
        """Return one section for each command."""
        program, place = self.arguments
        module, _, name = place.partition(":")
        try:
            command = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise self.refuse(f"no click command {place}: {error}") from error
        if not isinstance(command, click.Command):
            raise self.refuse(f"{place} is {command!r}, not a click command")
        self.env.note_dependency(str(import_module(module).__file__))
        try:
            return "\n".join(describe(_context(command, program), depth=0))
        except LookupError as error:
            raise self.refuse(str(error)) from error


def describe(context: click.Context, depth: int) -> Iterator[str]:
    """Yield the sections of a command and of the commands below it.

    Raises:
        LookupError: one of them has no help text, as a command that could not be loaded, or
            one in which click would show its own layout mark.
    """
    command = context.command
    if not command.help:
        raise LookupError(f"{context.command_path} has no help: {command.get_short_help_str(200)}")
    if _MARK_IN_RAW_STRING in command.help:
        raise LookupError(
            f"{context.command_path}: the help text is a raw string with a '\\b' in it"
        )
    if depth:
        yield heading(context.command_path, _UNDERLINES[depth - 1])
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield block("code-block", usage, "text")
    yield help_text(command.help)
    yield options(context)
    yield help_text(command.epilog or "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from describe(_context(below, name, context), depth + 1)


def _context(
    command: click.Command, name: str, parent: click.Context | None = None
) -> click.Context:
    return click.Context(command, parent, name, **command.context_settings)


def help_text(text: str) -> str:
    """Return a help text; paragraphs that click keeps as they are stay so here."""
    paragraphs = text.replace("\f", "").strip().split("\n\n")
    return "\n\n".join(_paragraph(each) for each in paragraphs) + "\n"


def _paragraph(text: str) -> str:
    if text.lstrip().startswith(_KEEP_LINES):
        return block("code-block", text.lstrip().removeprefix(_KEEP_LINES).strip("\n"), "text")
    return _sentence(" ".join(text.split()))


def _sentence(text: str) -> str:
    """Return running text with the options in it as code."""
    pieces = _OPTION.split(text)
    return "".join(
        f"{literal(piece)}\\ " if place % 2 else escape(piece) for place, piece in enumerate(pieces)
    )


def options(context: click.Context) -> str:
    """Return the table of the options that are not the parent command's as well."""
    inherited = _records(context.parent) if context.parent else []
    own = [record for record in _records(context) if record not in inherited]
    rows = [(literal(names), _sentence(meaning)) for names, meaning in own]
    table = list_table(("Option", "Meaning"), rows, widths="35 65") if rows else ""
    if context.parent is None or len(own) == len(_records(context)):
        return table
    return f"{table}\nTakes the options of {literal(context.parent.command_path)} as well.\n"


def _records(context: click.Context) -> list[tuple[str, str]]:
    return [
        record
        for parameter in context.command.params
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context))
    ]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("lance-command", CommandReference)
