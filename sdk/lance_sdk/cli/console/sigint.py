"""Ctrl-C that comes a moment before the main thread begins to wait, for whatever it waits.

The interpreter looks for signals between two steps of a program, and a signal interrupts a wait
that has begun. One that comes in between does neither: it is seen when the wait ends, and a wait
for a line of stdin, or for a job of Spark, may last for ever. A thread that hears of every signal
interrupts the main thread's wait shortly afterwards.
"""

import signal
import socket
import threading
import time
from typing import Final

from lance_sdk._io.platform import interrupt_wait, interrupting_signal

_DELAYS: Final = (0.1, 0.4)
"""Seconds before each nudge; the second is for a first that came a moment too early as well."""
_HEEDED: Final = {signal.SIGINT, signal.SIGTERM}


def nudge_main_thread() -> None:
    """Have Ctrl-C and SIGTERM end every wait of the main thread, which has to call this."""
    nudge = interrupting_signal()
    if nudge is None:
        return
    heard, told = socket.socketpair()
    told.setblocking(False)
    signal.signal(nudge, _do_nothing)
    signal.set_wakeup_fd(told.detach(), warn_on_full_buffer=False)
    main = threading.get_ident()
    arguments = (heard, main, nudge)
    threading.Thread(target=_listen, args=arguments, name="lwp-signals", daemon=True).start()


def _do_nothing(_signal: int, _frame: object) -> None:
    """Interrupt a wait, which is what any handler does."""


def _listen(heard: socket.socket, main: int, nudge: int) -> None:
    while numbers := heard.recv(64):
        if _HEEDED.isdisjoint(numbers):
            continue  # the nudge itself, for example
        for delay in _DELAYS:
            time.sleep(delay)
            interrupt_wait(main, nudge)
