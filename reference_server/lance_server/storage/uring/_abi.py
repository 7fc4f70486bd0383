# mypy: disable-error-code="unreachable"
# On another system than Linux no code after a refusal is reached.
"""The kernel's side of io_uring: numbers, structures and the three system calls.

From ``include/uapi/linux/io_uring.h``; the numbers of the calls are the same on every 64-bit
architecture that Linux runs on.
"""

import ctypes
import errno
import os
import sys
from enum import IntEnum
from struct import Struct
from typing import Final

SETUP: Final = 425
ENTER: Final = 426
REGISTER: Final = 427

SQ_RING: Final = 0
CQ_RING: Final = 0x8000000
ENTRIES: Final = 0x10000000

SINGLE_MAP: Final = 1
POPULATED: Final = 0x8000
"""Flag of a map whose pages are there at once."""
DURABLE: Final = 0x2
"""Operation flags of a write that is complete when its bytes are durable."""

SUBMISSION: Final = Struct("<BBHiQQIIQHHiQQ")
"""opcode, flags, priority, file, offset, address, length, operation flags, user data, buffer
index, personality, and what no operation used here reads."""
COMPLETION: Final = Struct("<QiI")
"""user data, result, flags."""


class Operation(IntEnum):
    """What can be submitted."""

    WRITE_FIXED = 5
    WRITE = 23


class Register(IntEnum):
    """What can be registered."""

    BUFFERS = 0
    EVENT = 4
    PROBE = 8


class _SubmissionOffsets(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("head", "tail", "mask", "entries")),
        *((name, ctypes.c_uint32) for name in ("flags", "dropped", "array", "reserved")),
        ("user_address", ctypes.c_uint64),
    ]


class _CompletionOffsets(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("head", "tail", "mask", "entries")),
        *((name, ctypes.c_uint32) for name in ("overflow", "entries_at", "flags", "reserved")),
        ("user_address", ctypes.c_uint64),
    ]


class Parameters(ctypes.Structure):
    """What the kernel is told, and tells, when a ring is set up."""

    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("sq_entries", "cq_entries", "flags")),
        *((name, ctypes.c_uint32) for name in ("poll_cpu", "poll_idle", "features", "pool")),
        ("reserved", ctypes.c_uint32 * 3),
        ("sq", _SubmissionOffsets),
        ("cq", _CompletionOffsets),
    ]


class Vector(ctypes.Structure):
    """A registered buffer: ``struct iovec``."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc["syscall"]
_syscall.restype = ctypes.c_long
_syscall.argtypes = [ctypes.c_long] * 7
_registered = _libc["syscall"]
_registered.restype = ctypes.c_long
_registered.argtypes = [*[ctypes.c_long] * 3, ctypes.c_void_p, ctypes.c_long]


def set_up(entries: int, parameters: Parameters) -> int:
    """Return the descriptor of a new ring; the kernel fills the parameters in.

    Raises:
        OSError: there is no io_uring, or not for this process.
    """
    if sys.platform != "linux":  # the number is another call there
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    place = ctypes.addressof(parameters)
    return _checked(_syscall(SETUP, entries, place, 0, 0, 0, 0))


def register(ring: int, what: Register, argument: object, count: int) -> None:
    """Register something with a ring.

    Raises:
        OSError: the kernel refused.
    """
    _checked(_registered(REGISTER, ring, int(what), ctypes.byref(argument), count))  # type: ignore[arg-type]


def enter(ring: int, submitted: int) -> int:
    """Submit operations; return how many the kernel took. Other threads run meanwhile.

    Raises:
        OSError: it took none.
    """
    while (result := _syscall(ENTER, ring, submitted, 0, 0, 0, 0)) < 0:
        if ctypes.get_errno() != errno.EINTR:
            break
    return _checked(result)


def _checked(result: int) -> int:
    if result < 0:
        problem = ctypes.get_errno()
        raise OSError(problem, os.strerror(problem))
    return result


def open_event() -> int:
    """Return a descriptor on which the kernel announces completions.

    Raises:
        OSError: there are no more descriptors, or the system is not Linux.
    """
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return os.eventfd(0, os.EFD_CLOEXEC)


def await_event(descriptor: int) -> None:
    """Wait until something was announced since the last wait.

    Raises:
        OSError: the descriptor is closed, or the system is not Linux.
    """
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    os.eventfd_read(descriptor)
