"""``lwp sf repair``, ``trim`` and ``unlock``: what changes a slot."""

import sys
from pathlib import Path

import click

from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import common_options, current_settings
from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.exit_codes import printable
from lance_sdk.cli.console.output import print_json, print_line
from lance_sdk.cli.console.progress import waiting
from lance_sdk.cli.journal.commands import (
    as_json,
    fail_if_lost,
    problems_as_json,
    show_problems,
    slot_argument,
)
from lance_sdk.cli.journal.progress import frames_bar


@click.command(cls=Command)
@slot_argument
@common_options
@click.pass_context
def repair(ctx: click.Context, slot: Path) -> None:
    """Repair SLOT, as the next sender would.

    Damaged bytes are copied before they are cleared, and damaged files are renamed to *.corrupt.
    The command says which frames are lost, and how many are left. The exit code is 1 when a frame
    is lost.
    """
    from lance_sdk.journal.tools import repair as mend  # noqa: PLC0415 - loaded when needed

    settings = current_settings()
    with waiting("reading the slot", shown=not (settings.quiet or settings.json)):
        done = mend(slot)
    if settings.json:
        found = problems_as_json(done.problems)
        copies = [str(each) for each in done.copies]
        body = {"repaired": found, "lost_frames": done.lost_frames, "copies": copies}
        print_json({**body, **as_json(done.report)})
        fail_if_lost(ctx, done.lost_frames)
        return
    show_problems(done.problems)
    for each in done.copies:
        print_line(f"copy of damaged bytes: {each}")
    print_line(
        f"{number_format.count(len(done.problems), 'problem')} dealt with, at most "
        f"{number_format.count(done.lost_frames, 'frame')} lost; "
        f"{number_format.count(done.report.frames, 'frame')} wait"
    )
    fail_if_lost(ctx, done.lost_frames)


@click.command(cls=Command)
@slot_argument
@click.option("--to", "upto", type=int, required=True, metavar="FSN", help="Last frame to give up.")
@click.option("--discard", is_flag=True, help="Keep no copy in the dead-letter file.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common_options
@click.pass_context
def trim(ctx: click.Context, slot: Path, upto: int, *, discard: bool, yes: bool) -> None:
    """Give up all frames of SLOT up to a number: they will never be sent.

    Use it for a frame that every server rejects. Copies go to the dead-letter file. The exit code
    is 1 when a frame is lost: of a damaged frame there is no whole copy.
    """
    from lance_sdk.journal.tools import trim as give_up  # noqa: PLC0415 - loaded when needed

    settings = current_settings()
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("no terminal to ask on; add --yes")
        click.confirm(f"Give up frames up to {upto} of {slot}?", abort=True, err=True)
    with frames_bar("trimming") as tell:
        found = give_up(slot, upto, keep=not discard, tell=tell)
    kept = None if found.kept_in is None else str(found.kept_in)
    if settings.json:
        body = {"trimmed": found.frames, "kept_in": kept, "lost_frames": found.lost_frames}
        print_json({**body, **as_json(found.report)})
        fail_if_lost(ctx, found.lost_frames)
        return
    show_problems(found.problems)
    where = "discarded" if kept is None else f"given up, copies in {kept}"
    left = number_format.count(found.report.frames, "frame")
    print_line(f"{number_format.count(found.frames, 'frame')} {where}; {left} wait")
    fail_if_lost(ctx, found.lost_frames)


@click.command(cls=Command)
@slot_argument
@common_options
@click.pass_context
def unlock(ctx: click.Context, slot: Path) -> None:
    """Let drainers take SLOT again: remove .failed and the files of a holder that has ended.

    If a process holds the slot, the command refuses and names the process. The exit code is 1 when
    a frame of the slot is lost.
    """
    from lance_sdk.journal import inspect  # noqa: PLC0415 - loaded when needed
    from lance_sdk.journal.tools import kind_of  # noqa: PLC0415 - likewise
    from lance_sdk.journal.tools import unlock as release  # noqa: PLC0415 - likewise

    failed = release(slot)
    if current_settings().json:
        print_json({"path": str(slot), "failed": failed})
    elif failed is None:
        print_line("no process holds the slot, and no drainer gave up on it")
    else:
        print_line(f"drainers may take the slot again; one gave up: {printable(failed.strip())}")
    report = inspect(slot, kind_of(slot))
    if not current_settings().json:
        show_problems(report.problems)
    fail_if_lost(ctx, report.damaged)
