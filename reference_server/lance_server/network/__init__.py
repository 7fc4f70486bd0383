"""Sockets and connections: binding, admission, TLS handshakes, writing, timeouts, fair turns."""
