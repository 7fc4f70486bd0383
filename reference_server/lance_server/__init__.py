"""The LANCE reference server: a durable log on one node, in every dialect of LWP.

Run it as ``lance-server --data-dir D``, or inside a program::

    from lance_server import running

    with running() as server:
        print(server.url)
"""

from lance_server.config import Address, ServerConfig
from lance_server.embedded import EmbeddedServer, running

__all__ = ["Address", "EmbeddedServer", "ServerConfig", "running"]
