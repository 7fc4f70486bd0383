"""Ctrl-C ends what the main thread of ``lwp`` waits for, however unluckily it comes."""

import signal
import subprocess
import sys
import textwrap

from tests.platforms.systems import needs_posix

pytestmark = needs_posix("no signal is sent to a thread there")

PROGRAM = """
    import os, signal, threading
    from lance_sdk.cli.console.sigint import nudge_main_thread

    def strike():
        # Another thread gets the signal: it is noted, and the main thread's wait goes on.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    nudge_main_thread()
    threading.Timer(0.1, strike).start()
    os.read(os.pipe()[0], 1)
"""


def test_a_wait_for_ever_ends() -> None:
    """As for a line of stdin, or for a job that runs elsewhere."""
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == -signal.SIGINT, process.stderr
    assert "KeyboardInterrupt" in process.stderr
