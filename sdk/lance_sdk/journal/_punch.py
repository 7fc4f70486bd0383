"""Giving blocks back to the file system: ``fallocate(2)`` with ``FALLOC_FL_PUNCH_HOLE``.

Python has no call for it. The wrapper is optional: where the C library, the kernel or the file
system lacks it, `punch` says why and nothing else changes.
"""

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Final

_KEEP_SIZE: Final = 0x01
_PUNCH_HOLE: Final = 0x02


def punch(fd: int, offset: int, length: int) -> None:
    """Make ``length`` bytes from ``offset`` read as zeros and free the blocks below them.

    Raises:
        OSError: it is not possible here; the file's content did not change.
    """
    _fallocate()(fd, _PUNCH_HOLE | _KEEP_SIZE, offset, length)


@cache
def _fallocate() -> Callable[[int, int, int, int], None]:
    if not sys.platform.startswith("linux"):
        return _absent
    library = ctypes.CDLL(None, use_errno=True)
    function = getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
    if function is None:
        return _absent
    function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    function.restype = ctypes.c_int

    def call(fd: int, mode: int, offset: int, length: int) -> None:
        if function(fd, mode, offset, length) != 0:
            code = ctypes.get_errno()
            raise OSError(code, f"hole punching: {os.strerror(code)}")

    return call


def _absent(fd: int, mode: int, offset: int, length: int) -> None:
    del fd, mode, offset, length
    raise OSError(errno.EOPNOTSUPP, "hole punching: this system has no fallocate(2)")
