"""The ``lance-conformance`` command."""

import signal
import sys
from io import TextIOWrapper


def main() -> None:
    """Run the command; without click say what to install and exit with 2."""
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:  # while modules load there is nothing to unwind
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from lance_conformance.app import run_app  # noqa: PLC0415 - click is optional
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write("lance-conformance needs click: pip install 'lance-sdk[conformance]'\n")
        sys.exit(2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a report may have characters a terminal lacks
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGINT, interrupt)
    sys.exit(run_app(sys.argv[1:]))
