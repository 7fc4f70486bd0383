"""The bytes behind a verdict: what was sent and what came back, annotated."""

from collections.abc import Iterator, Sequence

from lance_conformance.peer.transcript import Chunk, Transcript
from lance_conformance.report.run import Run
from lance_conformance.report.style import Style
from lance_conformance.run.verdict import Result
from lance_conformance.wire.annotate import annotate, readable_payload, split_frames
from lance_conformance.wire.frame import HEADER_SIZE, Flag

FRAMES_SHOWN = 2
"""Frames shown of each direction, the last ones; the run file has them all."""
INDENT = " " * 12
SMALL = 256
"""Bytes of a stimulus up to which it is printed as a shell command, too."""


def evidence(run: Run, result: Result, style: Style) -> Iterator[str]:
    """What went over the connection on which it went wrong."""
    connection = result.connection
    if result.transcript is None or connection is None:
        return
    chunks = list(result.transcript.of(connection))
    sent = [chunk for chunk in chunks if chunk.direction == "sent"]
    received = b"".join(chunk.data for chunk in chunks if chunk.direction == "received")
    fault = next((chunk.fault for chunk in sent if chunk.fault), None)
    stream = b"".join(chunk.data for chunk in sent)
    yield from _direction(run, f"  sent      (connection {connection})", stream, fault)
    yield from _direction(run, "  came back", received, None)
    yield from _ending(chunks, result.transcript)
    if 0 < len(stream) <= SMALL:
        yield style.faint(f"  by hand   {by_hand(run, stream)}")


def _direction(run: Run, title: str, stream: bytes, fault: str | None) -> Iterator[str]:
    frames = split_frames(stream)
    if not frames:
        yield f"{title}: nothing"
        return
    shown = frames[-FRAMES_SHOWN:]
    left_out = len(frames) - len(shown)
    yield f"{title}, the last {len(shown)} of {len(frames)} frames" if left_out else title
    for frame in shown:
        # The fault is in the stimulus, and the stimulus is the last frame of its connection.
        yield from _frame(run, frame, fault if frame is shown[-1] else None)


def _frame(run: Run, frame: bytes, fault: str | None) -> Iterator[str]:
    for row in annotate(frame, run.conditions.dialect.compute, fault):
        yield f"{INDENT}{row}"
    text = _text(frame)
    if text is not None:
        yield f"{INDENT}      {text}"


def _text(frame: bytes) -> str | None:
    if len(frame) <= HEADER_SIZE or not frame[5] & Flag.CONTROL:
        return None
    return readable_payload(int.from_bytes(frame[12:20], "little"), frame[HEADER_SIZE:])


def _ending(chunks: Sequence[Chunk], transcript: Transcript) -> Iterator[str]:
    end = next((chunk for chunk in chunks if chunk.direction == "closed"), None)
    if end is not None:
        yield f"{INDENT}closed by the target ({end.note.upper()}) after {end.at * 1000:.1f} ms"
    elif transcript.chunks:
        yield f"{INDENT}the connection stayed open"


def by_hand(run: Run, stream: bytes) -> str:
    """A shell command that sends the same bytes."""
    target = run.conditions.target
    octal = "".join(f"\\{byte:03o}" for byte in stream)
    return f"printf '{octal}' | nc -w 2 {target.host} {target.port} | xxd"
