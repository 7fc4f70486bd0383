"""Fluvio's two servers over the same log: what its clients write and read are records of topics.

They need the extra ``fluvio``; import `lance_server.listeners.fluvio` only where they are wanted.
"""

from lance_server.listeners.fluvio.cluster import Cluster
from lance_server.listeners.fluvio.listener import FluvioListener, fluvio_listeners
from lance_server.listeners.fluvio.options import FluvioOptions

__all__ = ["Cluster", "FluvioListener", "FluvioOptions", "fluvio_listeners"]
