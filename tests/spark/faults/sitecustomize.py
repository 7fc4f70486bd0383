"""Kills what reaches a step of a sink, where a test asks for it; Spark's Pythons find it by path.

The environment variable ``LWP_FAULT`` names a file with the step and what is to be killed there:
``process``, Spark's Python at work; ``executor``, the Java process that it works for. It happens
once: the file goes first.
"""

import importlib.abc
import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import Any

FAULT = Path(os.environ.get("LWP_FAULT", "/nonexistent"))


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def reach(step: str) -> None:
    """Die here, if that is wanted."""
    try:
        wanted, what = FAULT.read_text().split()
    except FileNotFoundError:
        return
    if wanted == step:
        FAULT.unlink()
        if what == "executor":
            os.kill(_parent(os.getppid()), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def _around(owner: Any, name: str, before: str | None, after: str | None) -> None:
    work = getattr(owner, name)

    def stepwise(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            reach(before)
        found = work(*args, **kwargs)
        if after is not None:
            reach(after)
        return found

    setattr(owner, name, stepwise)


def _install(sinks: Any) -> None:
    from lance_sdk.spark.writing import commit_log  # noqa: PLC0415 - an extra

    _around(commit_log, "_encode", None, "staging")
    _around(commit_log.CommitLog, "stage", None, "staged")
    _around(commit_log.CommitLog, "_frozen", "freezing", "frozen")
    _around(commit_log.CommitLog, "_mark_tried", None, "tried")
    _around(commit_log.CommitLog, "_sweep", "done", "swept")
    _around(commit_log, "_send", None, "sent")
    _around(sinks.FrameSender, "send_frame", None, "sending")
    _around(sinks.DirectSink, "write", None, "written")
    _around(sinks.DirectSink, "commit", "committing", "committed")


def _install_reader(server_split: Any) -> None:
    _around(server_split.ServerSplit, "read", "reading", None)


STEPS = {
    "lance_sdk.spark.writing.sinks": _install,
    "lance_sdk.spark.logs.server_split": _install_reader,
}
"""What puts steps into a module once it is imported; most of Spark's Pythons import none."""


class _Finder(importlib.abc.MetaPathFinder):
    """Puts the steps into the modules that have some."""

    def __init__(self) -> None:
        self._left = dict(STEPS)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Return the specification of such a module, whose loader does it."""
        del path, target
        install = self._left.pop(name, None)
        if install is None:
            return None
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            load(module)
            install(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if "LWP_FAULT" in os.environ:
    sys.meta_path.insert(0, _Finder())
