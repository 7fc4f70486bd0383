"""The bytes behind a verdict: what was sent and what came back, annotated."""

from collections.abc import Iterator, Sequence

from lance_conformance.engine.report.run import Run
from lance_conformance.engine.report.style import Style
from lance_conformance.engine.run.verdict import Result
from lance_conformance.engine.suite import FrameFormatter
from lance_conformance.engine.transcript import Chunk, Direction, Transcript

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
    yield from _direction(run, f"  sent      (connection {connection})", "sent", stream, fault)
    yield from _direction(run, "  came back", "received", received, None)
    yield from _ending(chunks, result.transcript)
    if run.suite.by_hand and 0 < len(stream) <= SMALL:
        target = run.conditions.target
        host, port = result.transcript.elsewhere.get(connection, (target.host, target.port))
        yield style.faint(
            f"  by hand   {by_hand(host, port, stream, tls=run.conditions.access.tls is not None)}"
        )


def _direction(
    run: Run, title: str, direction: Direction, stream: bytes, fault: str | None
) -> Iterator[str]:
    anatomy = run.suite.anatomy(run.conditions.dialect)
    frames = anatomy.frames(stream)
    if not frames:
        yield f"{title}: nothing"
        return
    shown = frames[-FRAMES_SHOWN:]
    left_out = len(frames) - len(shown)
    yield f"{title}, the last {len(shown)} of {len(frames)} frames" if left_out else title
    for frame in shown:
        # The fault is in the stimulus, and the stimulus is the last frame of its connection.
        yield from _frame(anatomy, frame, direction, fault if frame is shown[-1] else None)


def _frame(
    anatomy: FrameFormatter, frame: bytes, direction: Direction, fault: str | None
) -> Iterator[str]:
    for row in anatomy.rows(frame, direction, fault):
        yield f"{INDENT}{row}"
    text = anatomy.text(frame, direction)
    if text is not None:
        yield f"{INDENT}      {text}"


def _ending(chunks: Sequence[Chunk], transcript: Transcript) -> Iterator[str]:
    end = next((chunk for chunk in chunks if chunk.direction == "closed"), None)
    if end is not None:
        yield f"{INDENT}closed by the target ({end.note.upper()}) after {end.at * 1000:.1f} ms"
    elif transcript.chunks:
        yield f"{INDENT}the connection stayed open"


def by_hand(host: str, port: int, stream: bytes, *, tls: bool = False) -> str:
    """A shell command that sends the same bytes."""
    octal = "".join(f"\\{byte:03o}" for byte in stream)
    if tls:
        return f"printf '{octal}' | openssl s_client -quiet -connect {host}:{port} | xxd"
    return f"printf '{octal}' | nc -w 2 {host} {port} | xxd"
