"""A flame graph as a small picture: stacks from py-spy in, SVG out.

Width is time; callees stand below their callers. Of compiled code only the function where a
sample ended is kept, and what only starts the program is left out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape

_WIDTH, _ROW, _TOP = 1000, 17, 24
_LEAST = 0.003
"""Boxes of a smaller share of the time are left out: nobody could see them."""
_LETTER = 6.3
"""Width of a letter in a box."""
_PYTHON = re.compile(r"(?P<name>.+) \((?P<file>[^()]+\.py|<frozen [a-z.]+>)(:\d+)?\)$")
_NATIVE = re.compile(r"(?P<name>\S+) \((?P<file>[^()]+?)(:\d+)?\)$")
_ENTRY = re.compile(
    r"<frozen runpy>|click/|asyncio/|threading\.py|functools\.py|contextlib\.py|__main__\.py"
    r"|lance_server/(cli|server_command|runtime/process)\.py|bench/|<string>"
)
"""Files whose functions only lead to the work."""
_IDLE = re.compile(
    r"SimpleQueue_get|acquire_lock|lock_PyThread|pthread_cond_(timed)?wait"
    r"|epoll_p?wait|^poll |futex"
)
_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" '
    'font-family="monospace" font-size="10.5">'
)
_OURS, _OTHERS, _COMPILED = "#9cc3ee", "#c9ced4", "#f2bd84"


@dataclass(slots=True)
class _Box:
    """A function called from one place, with the samples in it."""

    samples: int = 0
    callees: dict[str, "_Box"] = field(default_factory=dict)


def svg(lines: Iterable[str], title: str) -> str:
    """Return the picture.

    Args:
        lines: ``frame;frame;… samples``, as ``py-spy record --format raw`` writes them.
        title: what was recorded.

    Raises:
        ValueError: no sample is of a program at work.
    """
    root = _tree(lines)
    if not root.samples:
        raise ValueError(f"{title}: nothing was recorded")
    boxes = list(_boxes(root, 0, 0.0, root.samples))
    height = _TOP + _ROW * (1 + max(depth for depth, *_ in boxes))
    parts = [
        _HEAD.format(_WIDTH, height),
        f'<text x="2" y="15" fill="#7f8790" font-size="12">{escape(title)}</text>',
        *(_drawn(*box, root.samples) for box in boxes),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def shares(lines: Iterable[str]) -> dict[str, float]:
    """Return the share of the time that was spent in each function and what it calls."""
    counted: Counter[str] = Counter()
    total = 0
    for stack, samples in _stacks(lines):
        total += samples
        counted.update(dict.fromkeys(stack, samples))
    return {name: samples / total for name, samples in counted.most_common()}


def _tree(lines: Iterable[str]) -> _Box:
    root = _Box()
    for stack, samples in _stacks(lines):
        box = root
        box.samples += samples
        for name in stack:
            box = box.callees.setdefault(name, _Box())
            box.samples += samples
    return root


def _stacks(lines: Iterable[str]) -> Iterator[tuple[list[str], int]]:
    """Yield what is shown of each stack that is not waiting, and its samples."""
    for line in lines:
        text, _, samples = line.strip().rpartition(" ")
        frames = text.split(";")
        if any(_IDLE.search(frame) for frame in frames[-4:]):
            continue
        stack = [frame for frame in frames if _PYTHON.match(frame) and not _ENTRY.search(frame)]
        if frames and not _PYTHON.match(frames[-1]):
            stack.append(_compiled(frames))
        if stack:
            yield stack, int(samples)


def _compiled(frames: list[str]) -> str:
    """Return the innermost compiled function that has a name, with its library."""
    for frame in reversed(frames):
        found = _NATIVE.match(frame)
        if _PYTHON.match(frame):
            break
        if found and not found["name"].startswith("0x"):
            return f"{found['name']} ({found['file'].split('.cpython')[0].split('/')[-1]})"
    return "(compiled)"


def _boxes(box: _Box, depth: int, left: float, total: int) -> Iterator[tuple[int, float, str, int]]:
    """Yield depth, left edge, function and samples of all that can be seen."""
    for name, callee in sorted(box.callees.items()):
        if callee.samples >= _LEAST * total:
            yield depth, left, name, callee.samples
            yield from _boxes(callee, depth + 1, left, total)
        left += callee.samples / total


def _drawn(depth: int, left: float, name: str, samples: int, total: int) -> str:
    share = samples / total
    x, y, width = left * _WIDTH, _TOP + depth * _ROW, share * _WIDTH
    found = _PYTHON.match(name)
    label = found["name"] if found else name.partition(" (")[0]
    ours = found is not None and found["file"].startswith("lance_")
    colour = _OURS if ours else _OTHERS if found else _COMPILED
    room = int((width - 4) / _LETTER)
    text = label if len(label) <= room else label[: room - 1] + "…" if room >= 4 else ""
    written = f'<text x="{x + 2:.1f}" y="{y + 12}">{escape(text)}</text>' if text else ""
    return (
        f"<g><title>{escape(name)}: {share:.1%}</title>"
        f'<rect x="{x:.1f}" y="{y}" width="{max(width - 0.6, 0.4):.1f}" height="{_ROW - 1}" '
        f'fill="{colour}"/>{written}</g>'
    )
