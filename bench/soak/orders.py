"""How the soak has its processes come to rest: by lines on their standard input.

``rest`` is answered with ``resting`` once the process has nothing to do and has given the memory
that it does not use back to the system; ``go`` ends the rest, and the end of the input ends all.
"""

import ctypes
import gc
import sys
from threading import Event, Thread


def give_back() -> None:
    """Give free memory back to the system, where the C library knows how (glibc)."""
    gc.collect()
    if hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)


class Orders:
    """What standard input said last.

    Args:
        working: the process works of its own accord, and says when it is `quiet`; another one
            rests as soon as nobody asks it for anything.

    Attributes:
        stop: the input ended.
        rest: rest.
        go: go on, or stop.
        quiet: all is done, and nothing is begun before ``go``.
    """

    def __init__(self, *, working: bool) -> None:
        self._working = working
        self.stop, self.rest, self.go, self.quiet = Event(), Event(), Event(), Event()
        if not working:
            self.quiet.set()
        Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for line in sys.stdin:
            if line == "rest\n":
                self._rest()
            else:
                self._go()
        self.stop.set()
        self._go()

    def _rest(self) -> None:
        self.go.clear()
        self.rest.set()
        self.quiet.wait()
        give_back()
        print("resting", flush=True)

    def _go(self) -> None:
        self.rest.clear()
        if self._working:
            self.quiet.clear()
        self.go.set()
