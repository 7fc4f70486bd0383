"""The help of each command in sections: its own options, those of the connection, of the output."""

from typing import Final

import click

_OUTPUT: Final = frozenset({"json", "quiet", "verbose", "help", "version"})
_CONNECTION: Final = frozenset(
    {"url", "dialect", "timeout", "token", "tls_ca", "tls_cert", "tls_key", "tls_server_name"}
)


def write_options(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    """Write a command's options: its own, then those that every command shares.

    Args:
        command: whose options they are.
        ctx: its context.
        formatter: takes the lines.
    """
    sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Connection": [], "Output": []}
    for param in command.get_params(ctx):
        if (line := param.get_help_record(ctx)) is not None:
            sections[_title(param.name or "")].append(line)
    for title, lines in sections.items():
        if lines:
            with formatter.section(title):
                formatter.write_dl(lines)


def _title(name: str) -> str:
    if name in _OUTPUT:
        return "Output"
    return "Connection" if name in _CONNECTION else "Options"


class Command(click.Command):
    """A command whose help tells its own options from the shared ones."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in sections; see `click.Command`."""
        write_options(self, ctx, formatter)


class SectionedGroup(click.Group):
    """A group whose help, and whose commands' help, have sections."""

    command_class = Command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in sections, then the commands; see `click.Command`."""
        write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)
