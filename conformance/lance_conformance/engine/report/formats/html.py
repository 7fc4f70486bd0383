"""A run as one HTML file: everything in it, nothing fetched from anywhere."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from lance_conformance.engine.report.reading import Told, transcript
from lance_conformance.engine.run.verdict import Verdict
from lance_conformance.engine.suite import FrameFormatter
from lance_conformance.engine.transcript import Chunk, Direction

FRAMES_SHOWN = 8
"""Frames of each direction of a connection that are shown where something went wrong, the last."""
FRAMES_OF_A_PASS = 4
"""The same where nothing did, so that a page of hundreds of passes stays small."""
_BROKEN = (Verdict.FAIL.value, Verdict.ERROR.value)
_QUIET = (Verdict.PASS.value, Verdict.SKIP.value, Verdict.INFO.value)


def html(
    run: Told, golden: Told | None = None, kills: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Return the page.

    Args:
        run: the run to show.
        golden: the same cases put to the golden server, to show what good looks like.
        kills: which broken servers each case is known to fail on.
    """
    source = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    footer, header = run.footer, run.header
    parts = {
        "protocol": escape(run.suite.title),
        "title": escape(run.title),
        "verdict": escape(footer["verdict"]),
        "good": "good" if footer["exit_code"] == 0 else "bad",
        "facts": "".join(_facts(run)),
        "areas": "".join(_areas(run)),
        "levels": "".join(_choices("level", Counter(c["level"] for c in run.cases.values()))),
        "verdicts": "".join(_choices("verdict", _verdicts(run))),
        "cases": "".join(_groups(run, golden, kills or {})),
        "kit": escape(str(header["kit"])),
    }
    for name, value in parts.items():
        source = source.replace(f"<!--{name}-->", value)
    return source


def _by_area(run: Told) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """The cases of each area, and the areas themselves, what went wrong first.

    Areas that the kit has no more come last among their like.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {area: [] for area in run.suite.areas}
    for name, case in run.cases.items():
        groups.setdefault(name.partition("/")[0], []).append(case)
    places = {case.id: number for number, case in enumerate(run.suite.cases)}
    for cases in groups.values():
        cases.sort(key=lambda case: (_severity(case), places.get(case["id"], len(places))))
    worst = sorted(groups, key=lambda area: min(map(_severity, groups[area]), default=0))
    return {area: groups[area] for area in worst if groups[area]}


def _quiet(case: Mapping[str, Any]) -> bool:
    return case["verdict"] in _QUIET


def _severity(case: Mapping[str, Any]) -> int:
    """0 for what is broken, 1 for what may be or could not be proven, 2 for the rest."""
    return 0 if case["verdict"] in _BROKEN else 1 + _quiet(case)


def _verdicts(run: Told) -> Mapping[str, int]:
    counts = Counter(case["verdict"] for case in run.cases.values())
    return {verdict.value: counts[verdict.value] for verdict in Verdict if counts[verdict.value]}


def _facts(run: Told) -> Iterator[str]:
    header, footer = run.header, run.footer
    facts = {
        "protocol": run.suite.title,
        "target": header["target"],
        "dialect": f"{header['dialect']} (asked: {header['dialect_asked']})",
        "found": run.suite.in_words(header["axes"]),
        "cases": f"{footer['cases']} in {footer['seconds']:.2f} s, {header['profile']} profile",
        "seed": header["seed"],
        "kit": header["kit"],
    }
    for name, value in facts.items():
        yield f"<div><dt>{name}</dt><dd>{escape(str(value))}</dd></div>"


def _areas(run: Told) -> Iterator[str]:
    """A button for each area, with its verdicts as a bar."""
    for area, cases in _by_area(run).items():
        rows = [case["verdict"] for case in cases]
        yield (
            f'<button type="button" data-area="{escape(area)}" aria-pressed="false">'
            f"<span>{escape(run.suite.areas.get(area, area))}</span>"
            f"<small>{_counts(rows)}</small>{_bar(rows)}</button>"
        )


def _counts(rows: Sequence[str]) -> str:
    return " ".join(
        f'<b class="v-{each.value.lower()}">{rows.count(each.value)} {each.value}</b>'
        for each in Verdict
        if each.value in rows
    )


def _bar(rows: Sequence[str]) -> str:
    shares = "".join(
        f'<i class="v-{each.value.lower()}" style="flex:{rows.count(each.value)}"></i>'
        for each in Verdict
        if each.value in rows
    )
    return f'<span class="bar" aria-hidden="true">{shares}</span>'


def _choices(name: str, values: Mapping[str, int]) -> Iterator[str]:
    for value, count in values.items():
        shown = escape(value)
        yield (
            f'<label class="{name[0]}-{shown.lower()}"><input type="checkbox" name="{name}" '
            f'value="{shown}" checked>{shown} <small>{count}</small></label>'
        )


def _groups(run: Told, golden: Told | None, kills: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The cases, area by area; areas where nothing went wrong are closed."""
    for area, cases in _by_area(run).items():
        opened = "" if all(map(_quiet, cases)) else " open"
        yield (
            f'<details class="area" data-area="{escape(area)}"{opened}><summary>'
            f"<h2>{escape(run.suite.areas.get(area, area))}</h2><code>{escape(area)}</code>"
            f"<small>{_counts([case['verdict'] for case in cases])}</small></summary>"
        )
        yield from (_case(case, run, golden, kills.get(case["id"], ())) for case in cases)
        yield "</details>"


def _case(case: Mapping[str, Any], run: Told, golden: Told | None, kills: Sequence[str]) -> str:
    name, verdict, level = escape(case["id"]), case["verdict"], case["level"]
    opened = "" if _severity(case) else " open"
    return (
        f'<details class="case" id="{name}" data-level="{level}" '
        f'data-verdict="{verdict}"{opened}>'
        f'<summary><b class="v-{verdict.lower()}">{verdict}</b><code>{name}</code>'
        f'<span>{escape(case["title"])}</span><em class="l-{level.lower()}">{level}</em>'
        f"</summary>{''.join(_body(case, run, golden, kills))}</details>"
    )


def _body(
    case: Mapping[str, Any], run: Told, golden: Told | None, kills: Sequence[str]
) -> Iterator[str]:
    register = f" · {', '.join(case['register'])}" if case["register"] else ""
    yield (
        f'<p class="clause"><b>{case["level"]}</b> {escape(case["clause"])} '
        f"(section {escape(case['section'])}, {escape(case['basis'])}{escape(register)})<br>"
        f"<q>{escape(case['rule'])}</q></p>"
    )
    if case["expected"]:
        options = "<br>or ".join(escape(each) for each in case["expected"])
        yield f"<dl><dt>expected</dt><dd>{options}</dd>"
        yield f"<dt>received</dt><dd>{escape(str(case['received']))}</dd></dl>"
    elif case["message"]:
        yield f"<p>{escape(case['reason'])}: {escape(case['message'])}</p>"
    yield from _beside(case, run, golden)
    if kills:
        yield f'<p class="kills">Proven able to fail by {len(kills)} broken servers: '
        yield f"{escape(', '.join(kills))}</p>"


def _beside(case: Mapping[str, Any], run: Told, golden: Told | None) -> Iterator[str]:
    """What went over the wire, beside the same with a golden server.

    What was sent to both is shown once where nothing went wrong.
    """
    anatomy = run.suite.anatomy(run.suite.presets[run.header["dialect"]])
    most = FRAMES_OF_A_PASS if _quiet(case) else FRAMES_SHOWN
    ours = "".join(_conversation(transcript(case), case["connection"], anatomy, most))
    reference = golden.cases.get(case["id"]) if golden else None
    if not ours:
        return
    theirs = ""
    if reference is not None and reference["verdict"] == Verdict.PASS.value:
        chunks = transcript(reference)
        shown = [c for c in chunks if c.direction != "sent"] if _quiet(case) else chunks
        theirs = "".join(_conversation(shown, _same(chunks, case["connection"]), anatomy, most))
    title = "a golden server answers" if _quiet(case) else "a golden server"
    column = f"<section><h4>{title}</h4>{theirs}</section>" if theirs else ""
    yield f'<div class="beside"><section><h4>this target</h4>{ours}</section>{column}</div>'


def _same(chunks: Sequence[Chunk], connection: int | None) -> int | None:
    """Return the connection to show beside another: that of the same number, or the last one."""
    numbers = [chunk.connection for chunk in chunks]
    return connection if connection in numbers else next(reversed(numbers), None)


def _conversation(
    chunks: Sequence[Chunk], connection: int | None, anatomy: FrameFormatter, most: int
) -> Iterator[str]:
    """Show what went over the connection that decided, direction by direction, in order."""
    streams: list[tuple[Direction, bytes, str | None]] = []
    for chunk in chunks:
        if chunk.connection != (connection or chunk.connection):
            continue
        if chunk.direction == "closed":
            streams.append(("closed", b"", chunk.note))
        elif streams and streams[-1][0] == chunk.direction:
            direction, data, fault = streams[-1]
            streams[-1] = (direction, data + chunk.data, chunk.fault or fault)
        else:
            streams.append((chunk.direction, chunk.data, chunk.fault))
    for direction, data, note in streams:
        if direction == "closed":
            yield f'<p class="closed">closed by the target ({escape(str(note).upper())})</p>'
        else:
            yield from _stream(direction, data, note, anatomy, most)


def _stream(
    direction: Direction, data: bytes, fault: str | None, anatomy: FrameFormatter, most: int
) -> Iterator[str]:
    frames = anatomy.frames(data)
    shown = frames[-most:]
    if len(shown) < len(frames):
        yield f"<p>{len(frames) - len(shown)} frames before these are left out</p>"
    for frame in shown:
        last = frame is shown[-1]
        rows = "".join(
            f"<tr{' class=fault' if row.fault else ''}><td>{row.offset:04x}"
            f"<td>{row.data.hex(' ')}<td>{escape(row.field)}"
            f"<td>{escape(row.meaning)}{' ← FAULT, on purpose' if row.fault else ''}"
            for row in anatomy.rows(frame, direction, fault if last else None)
        )
        text = anatomy.text(frame, direction)
        told = f'<tr><td colspan="4">{escape(text)}' if text else ""
        arrow = "→" if direction == "sent" else "←"
        caption = f"<caption>{arrow} {direction}</caption>"
        yield f'<table class="{direction}">{caption}{rows}{told}</table>'
