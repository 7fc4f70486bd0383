"""``lwp explain``: what bytes from the wire mean."""

import re
import sys
from pathlib import Path
from typing import BinaryIO, Final

import click

from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import common_options, current_settings
from lance_sdk.cli.console.exit_codes import Failure
from lance_sdk.cli.console.output import print_json, print_line
from lance_spec.limits import HEADER_SIZE, MAX_PAYLOAD

_LIMIT: Final = 8 * (HEADER_SIZE + MAX_PAYLOAD)
"""Bytes read at most: some of the largest frames, or a segment or capture of 128 MiB."""

_NOISE: Final = re.compile(r"0x|[\s:,_]", re.IGNORECASE)
"""What people leave in hexadecimal dumps."""


_EXAMPLES: Final = """\b
Examples:
  lwp explain 4c414e43012000000b8ba2a3...
  lwp explain @capture.pcapng
  lwp explain @segments/7/0_1795278838277183039.batches
  lwp explain --as groups.GroupSync 0167016d...
  xxd -p frame.bin | lwp explain -
"""


@click.command(cls=Command, epilog=_EXAMPLES)
@click.argument("source", nargs=-1, required=True, metavar="HEX...|@FILE|-")
@click.option(
    "--as",
    "form",
    default="",
    metavar="FORM",
    help="Type of the bytes, if they do not show it: a protocol (lwp, fluvio, rustlog, "
    "qwp), a file (sidecar, log, wal, ...), or a message (SidecarEntry, "
    "fluvio.ProduceRequest). An unknown name lists them all.",
)
@click.option(
    "--version-of-protocol",
    "version",
    type=click.IntRange(0, 32767),
    default=0,
    show_default=True,
    help="Protocol version of a Fluvio message.",
)
@common_options
def explain(source: tuple[str, ...], form: str, version: int) -> None:
    """Explain bytes from the wire or from files, field by field.

    The command shows values, checksums, records and faults, and names the first broken field first.
    The bytes are given as hexadecimal digits (0x, spaces, colons and commas between them are
    ignored), or come from a file or from stdin, where they may also be binary. The command
    recognises frames, records, captures (pcap, pcapng), segments, sidecars, indexes, and the files
    of store-and-forward slots.
    """
    given = " ".join(source)
    data = _bytes(given)
    if not data:
        raise click.UsageError("there are no bytes to explain")
    from lance_spec.explain import UnknownFormError, explain_any  # noqa: PLC0415 - only this needs it

    name = Path(given[1:]).name if given.startswith("@") else ""
    try:
        explanation = explain_any(data, file_name=name, form=form, version=version)
    except UnknownFormError as error:
        raise click.BadParameter(str(error), param_hint="--as") from None
    if current_settings().json:
        print_json(explanation.to_json())
    else:
        print_line(str(explanation))


def _bytes(source: str) -> bytes:
    if source == "-":
        return _guess(_limited(sys.stdin.buffer, "stdin"))
    if source.startswith("@"):
        return _of_file(Path(source[1:]))
    return _from_hex(source)


def _of_file(path: Path) -> bytes:
    """Read a file; one whose name says what it is holds no hexadecimal dump."""
    from lance_spec.explain import is_known_name  # noqa: PLC0415 - only this command needs it

    data = _read_file(path)
    return data if is_known_name(path.name) else _guess(data)


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _limited(file, str(path))
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror}") from None


def _limited(stream: BinaryIO, name: str) -> bytes:
    data = stream.read(2 * _LIMIT + 1)
    if len(data) > 2 * _LIMIT:
        raise Failure(f"{name} holds more than {2 * _LIMIT} bytes; cut out the frames in question")
    return data


def _guess(data: bytes) -> bytes:
    """Decode hexadecimal text; a binary frame begins with ``LANC``, which is not hexadecimal."""
    try:
        return bytes.fromhex(_NOISE.sub("", data.decode("ascii")))
    except ValueError:
        return data


def _from_hex(text: str) -> bytes:
    digits = _NOISE.sub("", text)
    wrong = re.search(r"[^0-9A-Fa-f]", digits)
    if wrong is not None:
        raise click.UsageError(
            f"{wrong[0]!r} is not a hexadecimal digit; to read a file, write @{text}"
            if Path(text).is_file()
            else f"{wrong[0]!r} is not a hexadecimal digit; to read a file, write @FILE"
        )
    if len(digits) % 2:
        raise click.UsageError(f"{len(digits)} hexadecimal digits are not a whole number of bytes")
    return bytes.fromhex(digits)
