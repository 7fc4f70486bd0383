"""Dry runs: the frames that a run would send, which the golden server gets instead of a target."""

from collections.abc import Iterator

from lance_conformance.engine.report.reading import Told, transcript
from lance_conformance.engine.report.style import Style

INDENT = "      "


def dry(run: Told, style: Style) -> Iterator[str]:
    """Each case with the frames that the kit sends for it.

    Args:
        run: The golden server's answers to the cases.
        style: How to mark.
    """
    suite = run.suite
    anatomy = suite.anatomy(suite.presets[run.header["dialect"]])
    for name, case in run.cases.items():
        yield f"{style.strong(name)}  {case['title']}"
        chunks = [chunk for chunk in transcript(case) if chunk.direction == "sent"]
        for connection in sorted({chunk.connection for chunk in chunks}):
            mine = [chunk for chunk in chunks if chunk.connection == connection]
            stream = b"".join(chunk.data for chunk in mine)
            fault = next((chunk.fault for chunk in mine if chunk.fault), None)
            frames = anatomy.frames(stream)
            yield style.faint(f"  connection {connection}, {len(frames)} frames")
            for frame in frames:
                # The fault is in the stimulus, and the stimulus is the last frame.
                wrong = fault if frame is frames[-1] else None
                yield from (f"{INDENT}{row}" for row in anatomy.rows(frame, "sent", wrong))
