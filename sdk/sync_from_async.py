"""Writes the sync API of the clients whose source is the async one.

    python sdk/sync_from_async.py [--check]

The sync modules are committed, so that they can be read and debugged; a test holds the two
together. What differs in more than words stands in modules that both use: the steps of a request,
and one connection (`_driver`, `_async_driver`).
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

_SDK: Final = Path(__file__).parent / "lance_sdk"
_MEMBER: Final = _SDK / "groups" / "_member"
_WRITTEN: Final = (
    {
        _SDK / "fluvio" / "aio" / f"{name}.py": _SDK / "fluvio" / f"{name}.py"
        for name in ("client", "connections", "consumer", "producer")
    }
    | {
        _SDK / "aio" / f"{source}.py": _SDK / "topics" / f"{written}.py"
        for source, written in (
            ("partition_watch", "partition_watch"),
            ("partitions", "partitioned"),
            ("topics_producer", "producer"),
        )
    }
    | {
        _MEMBER / "aio_reader.py": _MEMBER / "reader.py",
        _SDK / "rustlog" / "aio.py": _SDK / "rustlog" / "client.py",
    }
)
_LINES: Final = (
    r"^import anyio\n",
    r"^ +# noqa: ASYNC\d+ .*\n",
    r"^ +@closing\n",
    r"^# ruff: noqa: ASYNC\d+ .*\n",
)
"""What the sync side has not."""
_WORDS: Final = (
    (r"  # noqa: ASYNC\d+ - [^\n]*", ""),
    (r"lance_sdk\.fluvio\.aio\.", "lance_sdk.fluvio."),
    (r"lance_sdk\.aio\.partitions\b", "lance_sdk.topics.partitioned"),
    (r"lance_sdk\.aio\.partition_watch\b", "lance_sdk.topics.partition_watch"),
    (r"lance_sdk\.aio\._lifecycle\b", "lance_sdk._api.lifecycle"),
    (r"lance_sdk\.aio\.(client|delivery|producer)\b", r"lance_sdk.\1"),
    (r"\basync with\b", "with"),
    (r"\basync for\b", "for"),
    (r"\basync def\b", "def"),
    (r"\bawait ", ""),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"__aiter__", "__iter__"),
    (r"\bAwaitable\[T\]", "T"),
    (r", Awaitable\b", ""),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"_async_(connection|driver)\b", r"_\1"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\banyio\.Lock\(\)", "threading.Lock()"),
    (r"\banyio\.sleep\(", "pause("),
    (r"\ban ``with``", "a ``with``"),
    (r"\bTasks may share it", "Threads may share it"),
    (r"\btasks may share it", "threads may share it"),
    (r"\bof another task\b", "of another thread"),
    (r"\bfor record in batch\.records:\n +yield record\n", "yield from batch.records\n"),
    (r"The client for tasks, on asyncio and trio\.", "The client for programs with threads."),
    (r"\bnumber of tasks may", "number of threads may"),
    (r", for tasks\b", ""),
    (r"\bhave its tasks look\b", "have its thread look"),
    (r"\bA handle to await\b", "A handle to wait on"),
    (r"The async client, on asyncio and trio\.", "The sync client."),
    (r"for the async client\.", "for the sync client."),
)
_HEAD: Final = "# Written by sdk/sync_from_async.py from {source}: change that one.\n"


def sync_of(source: Path) -> str:
    """Return the sync module that belongs to an async one."""
    text = source.read_text()
    for pattern in _LINES:
        text = re.sub(pattern, "", text, flags=re.MULTILINE)
    for pattern, word in _WORDS:
        text = re.sub(pattern, word, text)
    for name, line in (
        ("threading.", "import threading"),
        ("pause(", "from lance_sdk._api.interruptible import pause"),
    ):
        if name in text:
            text = re.sub(r"^(from |import )", f"{line}\n\\1", text, count=1, flags=re.MULTILINE)
    written = _HEAD.format(source=source.relative_to(_SDK.parent).as_posix()) + text
    return formatted(formatted(written, "check", "--fix-only", "--select", "I,F401"), "format")


def formatted(text: str, *arguments: str) -> str:
    """Return a module's text as a command of ruff leaves it."""
    ruff = [sys.executable, "-m", "ruff", *arguments, "--quiet", "--stdin-filename"]
    name = str(_SDK / "fluvio" / "_written.py")
    command = [*ruff, name, "-"]
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=True)  # noqa: S603
    return run.stdout


def keep_current(texts: dict[Path, str]) -> int:
    """Write the modules that differ from their texts, or with ``--check`` name them.

    Returns:
        The exit code.
    """
    stale = [path for path, text in texts.items() if path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            sys.stderr.write(f"{path} is not current: run {Path(sys.argv[0]).name}\n")
        return bool(stale)
    for path in stale:
        path.write_text(texts[path])
    return 0


if __name__ == "__main__":
    sys.exit(keep_current({path: sync_of(source) for source, path in _WRITTEN.items()}))
