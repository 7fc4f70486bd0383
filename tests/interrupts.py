"""Ctrl-C at every step of a piece of work, one after the other.

A signal's handler runs where a Python function begins, and where a call of compiled code has
returned. The interpreter's profiler is called there, too, and raises the signal.
"""

import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from types import FrameType
from typing import Final

_CALLBACKS: Final = "_weakrefset.py"
"""Its functions are called where an object goes; Python passes over what they raise."""


def is_step(frame: FrameType, event: str) -> bool:
    """Whether an exception of a signal's handler may come up here."""
    return event in {"call", "c_return"} and not frame.f_code.co_filename.endswith(_CALLBACKS)


class Strike:
    """Does a piece of work, with a signal at one step of it.

    Args:
        step: which one; the first has the number 1.
        number: of the signal.
        within: a part of the paths of the modules whose steps count.

    Attributes:
        hit: whether there was such a step.
    """

    def __init__(self, step: int, number: int, within: str) -> None:
        self._left = step
        self._number = number
        self._within = within
        self.hit = False

    def __repr__(self) -> str:
        return f"<Strike hit={self.hit}>"

    def __call__(self, work: Callable[[], object]) -> None:
        """Do the work as far as it comes."""
        sys.setprofile(self._step)
        try:
            work()
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)

    def _step(self, frame: FrameType, event: str, _argument: object) -> None:
        if not is_step(frame, event) or self._within not in frame.f_code.co_filename:
            return
        self._left -= 1
        if not self._left:
            sys.setprofile(None)
            self.hit = True
            signal.raise_signal(self._number)


def strikes(number: int = signal.SIGINT, within: str = "") -> Iterator[Strike]:
    """Yield a strike at the first step, at the second, and so on, until the work has no more."""
    for step in count(1):
        strike = Strike(step, number, within)
        yield strike
        if not strike.hit:
            return
