"""Python as the packages see it on another system than Linux; `tox run -e windows,macos` uses it.

The interpreter imports this module when it starts. Modules of the SDK, the grammar and the kit
then find neither the functions and modules that the other system lacks nor ``/proc``, and
``sys.platform`` says its name; all other modules, the reference server's among them, see Linux.
"""

import builtins
import errno
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any

_PACKAGES = ("lance_sdk", "lance_spec", "lance_conformance")
_LINUX = {
    "os": """
        copy_file_range eventfd eventfd_read eventfd_write fdatasync memfd_create pidfd_open
        posix_fadvise posix_fallocate preadv pwritev sched_getaffinity sched_setaffinity
        EFD_CLOEXEC EFD_NONBLOCK O_DIRECT O_PATH O_TMPFILE RWF_DSYNC RWF_NOWAIT SEEK_DATA SEEK_HOLE
        setns splice unshare getrandom
    """,
    "select": "epoll",
    "signal": "pidfd_send_signal sigtimedwait sigwaitinfo",
    "socket": "AF_NETLINK AF_PACKET SO_BINDTODEVICE SO_REUSEPORT TCP_QUICKACK TCP_USER_TIMEOUT",
    "time": "CLOCK_BOOTTIME",
}
_POSIX = {
    "os": """
        chown chroot ctermid fchdir fchmod fchown fork forkpty fpathconf fstatvfs getegid geteuid
        getgid getgroups getloadavg getpgid getpgrp getpriority getresuid getsid getuid killpg
        lchown lockf mkfifo mknod nice openpty pathconf pipe2 posix_spawn posix_spawnp pread pwrite
        readv register_at_fork sendfile set_blocking setpgid setpriority setsid setuid statvfs sync
        sysconf uname wait3 wait4 waitid waitpid writev WNOHANG O_CLOEXEC O_DIRECTORY O_NOFOLLOW
        O_NONBLOCK O_SYNC O_DSYNC
    """,
    "select": "poll",
    "signal": """
        SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGURG SIGUSR1 SIGUSR2 alarm
        pthread_kill pthread_sigmask sigwait siginterrupt setitimer
    """,
    "socket": "AF_UNIX SCM_RIGHTS send_fds recv_fds",
    "time": "CLOCK_MONOTONIC CLOCK_REALTIME clock_gettime clock_gettime_ns clock_getres tzset",
}
_POSIX_MODULES = frozenset({"fcntl", "grp", "pwd", "pty", "resource", "syslog", "termios", "tty"})


def _names(*tables: Mapping[str, str]) -> dict[str, frozenset[str]]:
    modules = {module for table in tables for module in table}
    return {
        module: frozenset(" ".join(table.get(module, "") for table in tables).split())
        for module in modules
    }


class _Module(ModuleType):
    """A module without some of its names."""

    def __init__(self, whole: ModuleType, without: frozenset[str], **other: object) -> None:
        super().__init__(whole.__name__)
        self.__dict__.update(_whole=whole, _without=without, _other=other)

    def __getattr__(self, name: str) -> Any:
        if name in self._without:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} here")
        return self._other[name] if name in self._other else getattr(self._whole, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._whole, name, value)


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs a module's source with an ``import`` statement of its own."""

    world: dict[str, Any]

    def exec_module(self, module: ModuleType) -> None:
        code = self.get_code(module.__name__)
        assert isinstance(code, CodeType)
        vars(module)["__builtins__"] = self.world
        exec(code, vars(module))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the packages' own modules."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in _PACKAGES:
            return None
        others = (each for each in sys.meta_path if each is not self)
        found = (each.find_spec(name, path, target) for each in others)
        spec = next((each for each in found if each is not None), None)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def _msvcrt() -> ModuleType:
    """Return the locks of Windows, made of those of Linux."""
    import fcntl  # noqa: PLC0415 - where this runs there is one

    def locking(fd: int, how: int, length: int) -> None:
        del length
        try:
            fcntl.flock(fd, fcntl.LOCK_UN if how == 0 else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    module = ModuleType("msvcrt")
    vars(module).update(locking=locking, LK_UNLCK=0, LK_NBLCK=2)
    return module


def _hide_proc(event: str, arguments: tuple[object, ...]) -> None:
    """Refuse files of ``/proc`` to the packages, who may ask through a module of Python's own."""
    if event != "open" or not str(arguments[0]).startswith("/proc"):
        return
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals["__name__"].partition(".")[0] in {"io", "pathlib"}:
        frame = frame.f_back
    if frame.f_globals["__name__"].partition(".")[0] in _PACKAGES:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(arguments[0]))


def install(system: str) -> None:
    """Show the packages ``windows`` or ``macos``."""
    windows = system == "windows"
    hidden = _names(_LINUX, _POSIX) if windows else _names(_LINUX)
    absent = _POSIX_MODULES if windows else frozenset[str]()
    shown: dict[str, ModuleType] = {
        module: _Module(__import__(module), without) for module, without in hidden.items()
    }
    shown["sys"] = _Module(sys, frozenset(), platform="win32" if windows else "darwin")
    if windows:
        shown["msvcrt"] = _msvcrt()
    else:
        import fcntl  # noqa: PLC0415 - as above

        full = {"F_FULLFSYNC": 51, "fcntl": _fcntl}
        shown["fcntl"] = _Module(fcntl, frozenset(), **full)

    def limited(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the interpreter's name
        locals: Mapping[str, object] | None = None,  # noqa: A002 - the interpreter's name
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if level == 0 and name in absent:
            raise ModuleNotFoundError(f"No module named {name!r} here", name=name)
        if level == 0 and (name in shown or (not fromlist and name.partition(".")[0] in shown)):
            return shown[name.partition(".")[0]] if not fromlist else shown[name]
        return builtins.__import__(name, globals, locals, fromlist or (), level)

    _Loader.world = {**vars(builtins), "__import__": limited}
    sys.meta_path.insert(0, _Finder())
    sys.addaudithook(_hide_proc)


def _fcntl(fd: int, command: int, argument: int = 0) -> object:
    import fcntl  # noqa: PLC0415 - as above

    if command == 51:
        return os.fsync(fd)
    return fcntl.fcntl(fd, command, argument)


# A test also reads this file for its tables; a second finder and the first would ask each other.
if __name__ == "sitecustomize" and (system := os.environ.get("LANCE_PLATFORM")):
    install(system)
