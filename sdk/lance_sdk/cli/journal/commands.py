"""``lwp sf``: look after store-and-forward slots."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from lance_sdk.cli._lazy import LazyGroup
from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import common_options, current_settings
from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.exit_codes import ExitCode, printable, require_command
from lance_sdk.cli.console.output import print_json, print_line, print_table
from lance_sdk.cli.journal.progress import frames_bar

if TYPE_CHECKING:
    from lance_sdk.journal import Problem, SlotReport

_COMMANDS: Final = {
    "inspect": "lance_sdk.cli.journal.commands:inspect",
    "verify": "lance_sdk.cli.journal.commands:verify",
    "export": "lance_sdk.cli.journal.export:export",
    "repair": "lance_sdk.cli.journal.change:repair",
    "trim": "lance_sdk.cli.journal.change:trim",
    "unlock": "lance_sdk.cli.journal.change:unlock",
    "drain": "lance_sdk.cli.journal.drain:drain",
}

slot_argument = click.argument(
    "slot", type=click.Path(exists=True, file_okay=False, path_type=Path)
)


@click.group(
    cls=LazyGroup,
    lazy=_COMMANDS,
    extensions="lance_sdk.sf_commands",
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
)
@common_options
@click.pass_context
def sf(ctx: click.Context) -> None:
    """Inspect, drain and repair store-and-forward slots, of LWP (*.sfl) and QWP (*.sfa)."""
    require_command(ctx)


@click.command(cls=Command)
@slot_argument
@common_options
@click.pass_context
def inspect(ctx: click.Context, slot: Path) -> None:
    """Show the contents of SLOT, without taking its lock and without changing a byte.

    The exit code is 1 when a frame is lost.
    """
    from lance_sdk.journal import inspect as look  # noqa: PLC0415 - loaded when it is needed
    from lance_sdk.journal.tools import kind_of  # noqa: PLC0415 - likewise

    kind = kind_of(slot)
    report = look(slot, kind)
    if current_settings().json:
        print_json({"kind": kind.name.lower(), **as_json(report), "topics": _topics(slot, kind)})
        fail_if_lost(ctx, report.damaged)
        return
    rows = [["kind", kind.name], *_rows(report)]
    rows += [["topic", f"{each['number']}: {each['name']}"] for each in _topics(slot, kind)]
    print_table(["field", "value"], rows)
    show_problems(report.problems)
    fail_if_lost(ctx, report.damaged)


@click.command(cls=Command)
@slot_argument
@common_options
@click.pass_context
def verify(ctx: click.Context, slot: Path) -> None:
    """Check every waiting frame of SLOT: its checksum and its contents.

    The command changes nothing. The exit code is 1 when anything is wrong.
    """
    from lance_sdk.journal.tools import verify as check  # noqa: PLC0415 - loaded when needed

    with frames_bar("verifying") as tell:
        found = check(slot, tell)
    if current_settings().json:
        unfit = [{"fsn": fsn, "text": text} for fsn, text in found.unfit]
        body = {"clean": found.clean, "checked": found.checked, "unfit": unfit}
        print_json({**body, **as_json(found.report)})
    else:
        show_problems(found.report.problems)
        for fsn, text in found.unfit:
            print_line(f"frame {fsn}: {printable(text)}")
        wrong = len(found.report.problems) + len(found.unfit)
        verdict = "nothing is wrong" if found.clean else number_format.count(wrong, "problem")
        print_line(f"{number_format.count(found.checked, 'frame')} checked: {verdict}")
    if not found.clean:
        ctx.exit(ExitCode.FAILED)


def fail_if_lost(ctx: click.Context, frames: int) -> None:
    """End with 1 when frames are lost."""
    if frames:
        ctx.exit(ExitCode.FAILED)


def as_json(report: "SlotReport") -> dict[str, Any]:
    """Return a report as ``inspect --json`` prints it."""
    body = dataclasses.asdict(report)
    body["path"] = str(report.path)
    body["problems"] = problems_as_json(report.problems)
    return body


def problems_as_json(problems: "tuple[Problem, ...]") -> list[dict[str, Any]]:
    """Return problems as objects; ``lost`` is the first and last frame, or null."""
    return [{**dataclasses.asdict(each), "path": str(each.path)} for each in problems]


def show_problems(problems: "tuple[Problem, ...]") -> None:
    """Print one line for each problem."""
    for each in problems:
        print_line(f"problem: {printable(str(each))}")


def _rows(report: "SlotReport") -> list[list[str]]:
    first = f"{report.first_fsn} to {report.last_fsn}" if report.frames else "none"
    rows = [
        ["frames that wait", f"{report.frames:,}"],
        ["their numbers", first],
        ["acknowledged up to", str(report.acked_fsn)],
        ["frames on disk", f"{report.on_disk:,}"],
        ["of them acknowledged", f"{report.acknowledged:,}"],
        ["of them by another client", f"{report.foreign:,}"],
        ["lost, at most", f"{report.damaged:,}"],
        ["segments", str(len(report.segments))],
        ["problems", str(len(report.problems))],
    ]
    rows += [["note", each] for each in report.notes]
    if report.failed is not None:
        rows.append(["a drainer gave up", report.failed.strip()])
    return rows


def _topics(slot: Path, kind: object) -> list[dict[str, Any]]:
    from lance_sdk.journal import SlotKind  # noqa: PLC0415 - loaded when it is needed
    from lance_sdk.journal.lwp.metadata import SlotMetadata  # noqa: PLC0415 - likewise

    if kind is not SlotKind.LWP:
        return []
    return [
        {"number": each.topic_number, "name": each.name.decode(errors="replace")}
        for each in SlotMetadata(slot).topics
    ]
