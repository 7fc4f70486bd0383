"""The ``lance-server`` command."""

import signal
import sys


def main() -> None:
    """Run the command; without click say what to install and exit with 2."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Until the server handles it in order there is nothing to unwind: a start that is
        # interrupted is as good as one that was killed.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from lance_server.offline.commands import NAMES, offline  # noqa: PLC0415 - as above
        from lance_server.server_command import command  # noqa: PLC0415 - click is optional
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write("lance-server needs click: pip install 'lance-sdk[server]'\n")
        sys.exit(2)
    (offline if sys.argv[1:2] and sys.argv[1] in NAMES else command)()
