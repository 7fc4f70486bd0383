"""``lwp sf repair``, ``trim`` and ``unlock``: what changes a slot."""

import sys
from pathlib import Path

import click

from lance_sdk.cli import _format
from lance_sdk.cli._exit import printable
from lance_sdk.cli._output import print_json, print_line
from lance_sdk.cli._progress import waiting
from lance_sdk.cli._settings import common_options, current_settings
from lance_sdk.cli._sf import as_json, fail_if_lost, problems_as_json, show_problems, slot_argument
from lance_sdk.cli._sf_progress import frames_bar


@click.command()
@slot_argument
@common_options
@click.pass_context
def repair(ctx: click.Context, slot: Path) -> None:
    """Bring SLOT in order, as the next sender would.

    Damaged bytes are copied aside before they are cleared, damaged files are renamed to
    *.corrupt; it says which frames are lost and how many are left. Ends with 1 when any is lost.
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
        f"{_format.count(len(done.problems), 'problem')} dealt with, at most "
        f"{_format.count(done.lost_frames, 'frame')} lost; "
        f"{_format.count(done.report.frames, 'frame')} wait"
    )
    fail_if_lost(ctx, done.lost_frames)


@click.command()
@slot_argument
@click.option("--to", "upto", type=int, required=True, metavar="FSN", help="Last frame to give up.")
@click.option("--discard", is_flag=True, help="Keep no copy in the dead-letter file.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common_options
def trim(slot: Path, upto: int, discard: bool, yes: bool) -> None:
    """Give up the frames of SLOT up to a number: they will never be sent.

    For a frame that every server rejects. Copies stand in the dead-letter file afterwards.
    """
    from lance_sdk.journal.tools import trim as give_up  # noqa: PLC0415 - loaded when needed

    settings = current_settings()
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("say --yes: there is nobody to ask")
        click.confirm(f"Give up frames up to {upto} of {slot}?", abort=True, err=True)
    with frames_bar("trimming") as tell:
        found = give_up(slot, upto, keep=not discard, tell=tell)
    kept = None if found.kept_in is None else str(found.kept_in)
    if settings.json:
        print_json({"trimmed": found.frames, "kept_in": kept, **as_json(found.report)})
        return
    where = "discarded" if kept is None else f"given up, copies in {kept}"
    left = _format.count(found.report.frames, "frame")
    print_line(f"{_format.count(found.frames, 'frame')} {where}; {left} wait")


@click.command()
@slot_argument
@common_options
def unlock(slot: Path) -> None:
    """Let drainers take SLOT again: remove .failed and what a dead holder left.

    A slot that somebody holds is refused; the error names the process.
    """
    from lance_sdk.journal.tools import unlock as release  # noqa: PLC0415 - loaded when needed

    failed = release(slot)
    if current_settings().json:
        print_json({"path": str(slot), "failed": failed})
    elif failed is None:
        print_line("nobody holds the slot, and no drainer gave up on it")
    else:
        print_line(f"drainers may take the slot again; one gave up: {printable(failed.strip())}")
