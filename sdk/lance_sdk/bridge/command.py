"""``lwp bridge``: the records of a topic into a topic of another system."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from lance_sdk.bridge.copy_run import Bridge, Ends
from lance_sdk.bridge.endpoints import Writing, open_source, open_target, partitions
from lance_sdk.bridge.shutdown import Stop
from lance_sdk.bridge.state import CopyState
from lance_sdk.cli import _types
from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import Settings, common_options, current_settings
from lance_sdk.cli._target import client_options
from lance_sdk.cli.console.error_messages import describe
from lance_sdk.cli.console.output import print_json
from lance_sdk.cli.console.progress import Meter, progress
from lance_sdk.cli.console.streams import tell
from lance_sdk.errors import LanceError

_LWP: Final = ("lance://", "lances://")
_RETRY_FOR: Final = 30.0
"""Seconds, for a copy that is to end."""
_SECURED: Final = ("lances://", "fluvios://", "rustlogs://")
_FILES: Final = ("ca", "cert", "key")
_EXAMPLES: Final = """\b
Examples:
  lwp bridge fluvio://localhost:9003/orders lance://localhost:1992/orders --create-topic
  lwp bridge rustlog://localhost:9092/ticks lance://localhost:1992/ticks --state ticks.state -f
  lwp bridge 'fluvio://a:9003/wide?partition=1' 'rustlog://b:9092/wide?partition=1'
"""


@click.command(cls=Command, epilog=_EXAMPLES)
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@click.option("-f", "--follow", is_flag=True, help="Wait for new records at the end.")
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep the position in this file, and go on there the next time.",
)
@click.option(
    "--create-topic", is_flag=True, help="Create the target's topic if it does not exist."
)
@click.option(
    "--retry-for",
    type=_types.time,
    metavar="TIME",
    help="How long to try again while a server is away and nothing can be copied; the "
    "default is 30s once both servers were reached, and with --follow for ever.",
)
@common_options
def bridge(
    source: str,
    target: str,
    *,
    follow: bool,
    state: Path | None,
    create_topic: bool,
    retry_for: float | None,
) -> None:
    """Copy the records that SOURCE has now to TARGET; with --follow also records that come later.

    URLs begin with lance://, fluvio:// or rustlog://, and with TLS with lances://, fluvios:// or
    rustlogs://. Each partition of a Fluvio or RustLog topic is copied to the partition with the
    same number, which in LWP is a topic TOPIC.N of its own; ?partition=N names one partition. Other
    keys are ?compression= for a Fluvio target, and ?dialect=json for RustLog's JSON.

    Keys, values and times do not change; Fluvio's times have milliseconds, and RustLog has neither
    keys nor times. With --state a run goes on where the last one was, however that ended. Every
    record is then stored once in an LWP server that keeps a duplicate window, and in a Fluvio
    partition to which only the bridge writes. Other targets store the records that were sent after
    the position was last written twice, 64 KiB at most.

    After the first Ctrl-C the bridge stores the records that it has read, writes its position and
    ends. A second one ends it at once.

    --timeout and --tls-... hold for both ends, --token and --dialect for LWP servers.
    """
    settings = current_settings()
    if source == target:
        raise click.UsageError("source and target are the same topic; it would be doubled")
    from_options = _options(source, settings, target)
    to_options = _options(target, settings, source)
    meter = Meter()
    bar = progress("copying", meter, shown=not settings.quiet)
    with CopyState.held(state, source, target) as noted, Stop() as stop:
        ends = Ends(
            lambda: partitions(source, options=from_options),
            lambda reading: open_source(source, reading, options=from_options),
            lambda partition, count: open_target(
                target,
                Writing(create_topic, partition, count, noted.identity),
                options=to_options,
            ),
        )
        wait_at_start = follow or retry_for is not None
        if retry_for is None and not follow:
            retry_for = _RETRY_FOR
        with bar:
            Bridge(
                ends,
                noted,
                stop,
                progress=meter,
                tell=_warn,
                follow=follow,
                wait_at_start=wait_at_start,
                retry_for=retry_for,
            ).run()
        _summarize(meter, noted, settings)
        if stop.asked is not None:
            stop.end()


def _options(url: str, settings: Settings, other: str) -> dict[str, Any]:
    """Return the settings of a connection, by the names that its client gives them.

    What is said of TLS is for the end that has it; where none has, it is a mistake.
    """
    if other.startswith(_SECURED) and not url.startswith(_SECURED):
        settings = replace(settings, tls_ca=None, tls_cert=None, tls_key=None, tls_server_name=None)
    return client_options(settings, url) if url.startswith(_LWP) else _others(url, settings)


def _others(url: str, settings: Settings) -> dict[str, Any]:
    if settings.tls_server_name is not None:
        raise click.UsageError("--tls-server-name is for lances:// URLs")
    found: dict[str, Any] = {} if settings.timeout is None else {"timeout": settings.timeout}
    files = {name: getattr(settings, f"tls_{name}") for name in _FILES}
    if not url.startswith(_SECURED):
        if said := [name for name, file in files.items() if file is not None]:
            raise click.UsageError(f"--tls-{said[0]} is for URLs with TLS, and {url} has none")
        return found
    files = {name: files[name] or os.environ.get(f"LANCE_TLS_{name.upper()}") for name in files}
    if any(files.values()):
        from lance_sdk._io.tls import TlsSettings  # noqa: PLC0415 - loads TLS when it is needed

        found["tls"] = TlsSettings(**files).load()
    return found


def _warn(error: LanceError) -> None:
    tell(f"warning: {describe(error)[0]} (going on after what was noted)")


def _summarize(meter: Meter, state: CopyState, settings: Settings) -> None:
    if settings.json:
        places = {str(number): each.following for number, each in state.places.items()}
        print_json({"records": meter.records, "seconds": meter.elapsed, "places": places})
    elif not settings.quiet:
        tell(f"copied {meter.summary()}")
