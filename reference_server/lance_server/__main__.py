"""``python -m lance_server`` is ``lance-server``."""

from lance_server.cli import main

main()
