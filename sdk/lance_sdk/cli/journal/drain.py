"""``lwp sf drain``: send what waits in slots that nobody holds."""

import dataclasses
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lance_sdk.cli import _types
from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import common_options, current_settings
from lance_sdk.cli._target import client_options
from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.exit_codes import ExitCode, printable
from lance_sdk.cli.console.output import print_json, print_line
from lance_sdk.cli.journal.progress import frames_bar
from lance_sdk.errors import ClosedError
from lance_sdk.hooks import ConnectEvent, DisconnectEvent, Hooks

if TYPE_CHECKING:
    from lance_sdk.journal import DrainerEvent, ForwardConfig, SlotKind
    from lance_sdk.journal.drainers import DrainerPool
    from lance_sdk.journal.transport import TransportFactory

_UNTAKEN = "nothing was taken for too long"
_COUNTS = ("on_disk", "acknowledged", "damaged", "foreign")
_SLICE = 0.2
"""Seconds between two looks at the drainers, so that Ctrl-C is seen."""


@click.command(cls=Command)
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--conf", metavar="STRING", help="Connect string such as ws::addr=HOST:PORT; for QWP slots."
)
@click.option(
    "--on-missing-topic",
    type=click.Choice(["create", "hold", "dead_letter"]),
    default="hold",
    show_default=True,
    help="What to do with frames whose topic does not exist.",
)
@click.option(
    "--patience",
    type=_types.time,
    default="60s",
    show_default=True,
    metavar="TIME",
    help="How long to go on while the server accepts no frame.",
)
@click.option(
    "--parallel",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="How many slots to drain at the same time.",
)
@common_options
@click.pass_context
def drain(
    ctx: click.Context,
    path: Path,
    *,
    conf: str | None,
    on_missing_topic: str,
    patience: float,
    parallel: int,
) -> None:
    """Send the waiting frames of PATH, a slot or a folder of slots, to the server.

    Slots that a process holds, and slots of another protocol, are left alone. The exit code is 1
    when a slot could not be drained (its unsent frames stay in it), and when a frame is lost or
    became a dead letter. A slot without waiting frames is called empty, and no server is asked.
    """
    from lance_sdk.journal.drainers import DrainerPool  # noqa: PLC0415 - loaded when needed

    kind, slots = _slots(path, conf)
    held = {slot: _held(slot, kind) for slot in slots} if current_settings().json else {}
    config, factory = _carriers(conf, on_missing_topic)
    events = _Events()
    config = dataclasses.replace(
        config,
        max_drainers=parallel,
        drainer_listener=events,
        hooks=events,
        journal=dataclasses.replace(config.journal, kind=kind),
    )
    with frames_bar("draining") as tell:
        events.tell = tell
        _run(DrainerPool(slots, config, factory), events, patience)
    _report(events.ends(), events.trouble, held)
    if not all(map(_delivered, events.ends())):
        ctx.exit(ExitCode.FAILED)


def _delivered(event: "DrainerEvent") -> bool:
    """Whether a server has every frame that waited in a slot."""
    good = event.step in {"drained", "empty"}
    return good and not event.lost_frames and not event.dead_letters


class _Events(Hooks):
    """Takes what drainers and their connections tell, from their threads.

    Attributes:
        done: frames that are dealt with.
        tell: draws how far they are.
        trouble: why there is no connection; "" while there is one.
    """

    def __init__(self) -> None:
        self._last: dict[Path, DrainerEvent] = {}
        self._lock = threading.Lock()
        self.done = 0
        self.tell: Any = None
        self.trouble = ""

    def __call__(self, event: "DrainerEvent") -> None:
        """Take one event."""
        with self._lock:
            self._last[event.slot] = event
            self.done = sum(each.settled_fsn + 1 for each in self._last.values())
            total = sum(each.last_fsn + 1 for each in self._last.values())
        self.tell(self.done, total)

    def on_connect(self, event: ConnectEvent) -> None:
        """Forget earlier trouble."""
        del event
        self.trouble = ""

    def on_disconnect(self, event: DisconnectEvent) -> None:
        """Keep why, unless it is that draining ends."""
        if not isinstance(event.error, ClosedError):
            self.trouble = str(event.error)

    def ends(self) -> "list[DrainerEvent]":
        """Return how each slot ended."""
        return [self._last[slot] for slot in sorted(self._last)]


def _slots(path: Path, conf: str | None) -> "tuple[SlotKind, list[Path]]":
    from lance_sdk.journal import SlotKind, orphans  # noqa: PLC0415 - loaded when it is needed
    from lance_sdk.journal.tools import NotASlot, kind_of  # noqa: PLC0415 - likewise

    kind = SlotKind.QWP if conf is not None and conf.startswith("ws") else SlotKind.LWP
    try:
        found = kind_of(path)
    except NotASlot:
        return kind, list(orphans(path, kind))
    if found is not kind:
        hint = "--conf ws::addr=HOST:PORT" if found is SlotKind.QWP else "--url lance://HOST:PORT"
        raise click.UsageError(f"{path} is a slot for {found.name}; name its server with {hint}")
    return kind, [path]


def _held(slot: Path, kind: "SlotKind") -> dict[str, int | None]:
    """Return how many frames a slot holds, by what becomes of them; null where it is unreadable."""
    from lance_sdk.journal import inspect  # noqa: PLC0415 - loaded when it is needed
    from lance_sdk.journal.errors import SlotUnreadable  # noqa: PLC0415 - likewise

    try:
        report = inspect(slot, kind)
    except (SlotUnreadable, OSError):
        return dict.fromkeys(_COUNTS)
    return {name: getattr(report, name) for name in _COUNTS}


def _carriers(conf: str | None, on_missing: Any) -> "tuple[ForwardConfig, TransportFactory]":
    from lance_sdk.journal.lwp.settings import (  # noqa: PLC0415 - likewise
        from_arguments,
        from_connect_string,
    )
    from lance_sdk.journal.lwp.transport import LwpTransports  # noqa: PLC0415 - loaded when needed

    if conf is None:
        settings = current_settings()
        url = settings.named_url("draining")
        options = client_options(settings, url)
        lwp = from_arguments(url, None, None, options, on_missing_topic=on_missing)
        return lwp.forward, LwpTransports(lwp)
    if not conf.startswith("ws"):
        lwp = from_connect_string(conf, initial_connect="async")
        return lwp.forward, LwpTransports(lwp)
    from lance_sdk.journal.qwp import QwpTransports  # noqa: PLC0415 - it needs an extra
    from lance_sdk.journal.qwp.config import from_connect_string as from_qwp  # noqa: PLC0415

    qwp = from_qwp(conf, {"initial_connect": "async"})
    return qwp.forward, QwpTransports(qwp.carrier)


def _run(pool: "DrainerPool", events: _Events, patience: float) -> None:
    """Wait for the drainers, as long as frames are taken now and then."""
    pool.start()
    done, until = -1, time.monotonic() + patience
    try:
        while not pool.join(_SLICE) and time.monotonic() < until:
            if events.done != done:
                done, until = events.done, time.monotonic() + patience
    finally:
        pool.stop()


def _report(
    events: "list[DrainerEvent]", trouble: str, held: dict[Path, dict[str, int | None]]
) -> None:
    why = f"{_UNTAKEN}: {trouble}" if trouble else f"{_UNTAKEN} (-vv shows why)"
    events = [
        each if each.step != "stopped" else dataclasses.replace(each, reason=each.reason or why)
        for each in events
    ]
    settings = current_settings()
    if settings.json:
        print_json([{**dataclasses.asdict(e), "slot": str(e.slot), **held[e.slot]} for e in events])
        return
    for each in events:
        reason = f": {printable(each.reason)}" if each.reason else ""
        print_line(f"{each.slot}: {each.step}{reason}{_missed(each)}")
    if not settings.quiet:
        drained, empty = (sum(e.step == step for e in events) for step in ("drained", "empty"))
        rest = f", {empty} empty" if empty else ""
        print_line(f"{drained} of {number_format.count(len(events), 'slot')} drained{rest}")


def _missed(event: "DrainerEvent") -> str:
    lost = f"; at most {number_format.count(event.lost_frames, 'frame')} lost"
    letters = f"; {number_format.count(event.dead_letters, 'dead letter')}"
    return lost * bool(event.lost_frames) + letters * bool(event.dead_letters)
