"""The number of bytes that wait in a socket, if the system reports it."""

import socket
import sys

if sys.platform == "win32":

    def unread_bytes(connection: socket.socket) -> int:
        """Return how many bytes came and wait in a socket; 0 where the system does not tell."""
        del connection
        return 0

else:
    import fcntl
    import termios

    def unread_bytes(connection: socket.socket) -> int:
        """Return how many bytes came and wait in a socket; 0 where the system does not tell."""
        count = bytearray(4)
        fcntl.ioctl(connection.fileno(), termios.FIONREAD, count)
        return int.from_bytes(count, sys.byteorder)
