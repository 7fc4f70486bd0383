"""The ``lance-server`` command."""

import sys


def main() -> None:
    """Run the command; without click say what to install and exit with 2."""
    try:
        from lance_server.command import command  # noqa: PLC0415 - click is optional
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write("lance-server needs click: pip install 'lance-sdk[server]'\n")
        sys.exit(2)
    command()
