"""A click group whose commands are imported when they are asked for."""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NoReturn

import click

from lance_sdk.cli._sections import SectionedGroup
from lance_sdk.cli.console.exit_codes import Failure, printable


class LazyGroup(SectionedGroup):
    """Finds its commands in modules of this package and in an entry point group.

    Args:
        lazy: command name to ``module:attribute``; their order is the order of the help.
        extensions: name of the entry point group that adds commands. An extension cannot
            replace a built-in command, and one that cannot be loaded says why when it is
            called, so that the others go on working.
        **options: as `click.Group` takes them.
    """

    def __init__(self, *, lazy: Mapping[str, str], extensions: str, **options: Any) -> None:
        super().__init__(**options)
        self._lazy = lazy
        self._extension_group = extensions

    @cached_property
    def _extensions(self) -> dict[str, EntryPoint]:
        found = entry_points(group=self._extension_group)
        return {point.name: point for point in found if point.name not in self._lazy}

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the built-in commands, then the added ones."""
        return [*self._lazy, *sorted(self._extensions)]

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command.

        Args:
            cmd_name: what the user called it.
        """
        if cmd_name in self._lazy:
            module, _, attribute = self._lazy[cmd_name].partition(":")
            command: click.Command = getattr(import_module(module), attribute)
            return command
        point = self._extensions.get(cmd_name)
        return None if point is None else _load(point)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command the arguments begin with, or suggest the nearest one.

        Args:
            ctx: the group's context.
            args: what the user typed after the group's options.

        Raises:
            click.UsageError: when there is no such command.
        """
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None and not name.startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"no such command {printable(name)!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


def _load(point: EntryPoint) -> click.Command:
    try:
        command = point.load()
    except Exception as error:  # noqa: BLE001 - a stranger's module may raise anything on import
        return _broken(point, f"{type(error).__name__}: {error}")
    if not isinstance(command, click.Command):
        return _broken(point, f"it holds a {type(command).__name__} and no click command")
    return command


def _broken(point: EntryPoint, reason: str) -> click.Command:
    """Return a command that takes any arguments and says why the real one is not there."""

    def fail(**_arguments: object) -> NoReturn:
        source = f"{point.value} of {point.dist.name}" if point.dist else point.value
        raise Failure(
            f"the command {point.name!r} cannot be loaded from {source}: {printable(reason)}; "
            f"repair or remove the package that brings it"
        )

    return click.Command(
        point.name,
        callback=fail,
        short_help=f"(cannot be loaded; run 'lwp {point.name}' to see why)",
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True},
        add_help_option=False,
    )
