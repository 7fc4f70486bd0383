"""``python -m bench.raw FILE``: answers each request with the next part of a file, and no more.

The least a server can do: ``recv``, ``pread``, ``send``. A request is any `REQUEST` bytes whose
last eight are the offset and the size wanted, four bytes each.
"""

import os
import socket
import struct
import sys

REQUEST = 60
_WANTED = struct.Struct("<LL")


def request(offset: int, size: int) -> bytes:
    """Return a request as long as an LWP Fetch frame."""
    return bytes(REQUEST - _WANTED.size) + _WANTED.pack(offset, size)


def serve(path: str) -> None:
    """Serve one connection after the other until killed."""
    handle = os.open(path, os.O_RDONLY)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"127.0.0.1:{listener.getsockname()[1]}", flush=True)
        while True:
            with listener.accept()[0] as peer:
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _answer(peer, handle)


def _answer(peer: socket.socket, handle: int) -> None:
    held = b""
    while received := peer.recv(65536):
        held += received
        while len(held) >= REQUEST:
            offset, size = _WANTED.unpack_from(held, REQUEST - _WANTED.size)
            peer.sendall(os.pread(handle, size, offset))
            held = held[REQUEST:]


if __name__ == "__main__":
    serve(sys.argv[1])
