"""``lwp sf export``: what waits in a slot, as JSON lines."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import common_options, current_settings
from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.output import Output
from lance_sdk.cli.console.streams import tell
from lance_sdk.cli.journal.commands import fail_if_lost, slot_argument


@click.command(cls=Command)
@slot_argument
@click.option(
    "--acked", is_flag=True, help="Also print acknowledged frames that are still on the disk."
)
@click.option(
    "--dead-letters", is_flag=True, help="Print the dead-letter file instead of the frames."
)
@common_options
@click.pass_context
def export(ctx: click.Context, slot: Path, acked: bool, dead_letters: bool) -> None:
    """Print the waiting frames of SLOT as JSON lines, and change nothing.

    There is one line for each record of an LWP slot, with fsn, topic, timestamp_ns, type and value,
    and one line for each frame of a QWP slot, with fsn and payload. Bytes are in base64. The exit
    code is 1 when a frame is lost.
    """
    output, lines, frames = Output(), 0, set()
    for each in _letters(slot) if dead_letters else _waiting(slot, acked=acked):
        output.write(json.dumps(each, ensure_ascii=False).encode() + b"\n")
        frames.add(each["fsn"])
        lines += 1
    if not current_settings().quiet:
        tell(
            f"{number_format.count(lines, 'line')} from {number_format.count(len(frames), 'frame')}"
        )
    if not dead_letters:
        fail_if_lost(ctx, _lost(slot))


def _lost(slot: Path) -> int:
    from lance_sdk.journal import inspect  # noqa: PLC0415 - loaded when it is needed
    from lance_sdk.journal.tools import kind_of  # noqa: PLC0415 - likewise

    return inspect(slot, kind_of(slot)).damaged


def _waiting(slot: Path, *, acked: bool) -> Iterator[dict[str, Any]]:
    from lance_sdk.journal import SlotKind  # noqa: PLC0415 - loaded when it is needed
    from lance_sdk.journal.tools import frames_of, kind_of  # noqa: PLC0415 - likewise

    records = _topics(slot) if kind_of(slot) is SlotKind.LWP else None
    for fsn, payload in frames_of(slot, acked=acked):
        if records is None:
            yield {"fsn": fsn, "payload": _text(payload)}
        else:
            yield from _records(fsn, payload, records)


def _letters(slot: Path) -> Iterator[dict[str, Any]]:
    from lance_sdk.journal import read_dead_letters  # noqa: PLC0415 - loaded when it is needed
    from lance_sdk.journal.tools import kind_of  # noqa: PLC0415 - likewise

    topics = _topics(slot) if kind_of(slot).suffix == ".sfl" else None
    for letter in read_dead_letters(slot):
        why = {"category": letter.rejection.category.value, "message": letter.rejection.message}
        fsn = letter.rejection.first_fsn
        if topics is None:
            yield {"fsn": fsn, "payload": _text(letter.payload), **why}
        else:
            for each in _records(fsn, letter.payload, topics):
                yield {**each, **why}


def _topics(slot: Path) -> dict[int, str]:
    from lance_sdk.journal.lwp.metadata import SlotMetadata  # noqa: PLC0415 - when needed

    topics = SlotMetadata(slot).topics
    return {each.topic_number: each.name.decode(errors="replace") for each in topics}


def _records(fsn: int, payload: bytes, topics: dict[int, str]) -> Iterator[dict[str, Any]]:
    """Yield the records of a stored batch; one that cannot be read comes as it is."""
    from lance_spec.errors import DecodeError  # noqa: PLC0415 - loaded when it is needed
    from lance_spec.messages.store_forward import StoredBatch  # noqa: PLC0415 - likewise
    from lance_spec.records import decode_records  # noqa: PLC0415 - likewise

    try:
        batch = StoredBatch.decode(payload)
        records = decode_records(batch.records)
    except DecodeError as error:
        yield {"fsn": fsn, "problem": str(error), "payload": _text(payload)}
        return
    topic = topics.get(batch.topic_number)
    for kind, value in records:
        yield {
            "fsn": fsn,
            "topic": topic,
            "timestamp_ns": batch.timestamp_ns,
            "type": kind,
            "value": _text(value),
        }


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
