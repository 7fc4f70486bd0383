"""RustLog's broker over the same log: what its clients write and read are records of topics."""

from lance_server.listeners.rustlog.listener import RustlogListener
from lance_server.listeners.rustlog.options import RustlogOptions

__all__ = ["RustlogListener", "RustlogOptions"]
