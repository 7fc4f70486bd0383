"""LWP as bytes: no sockets, no clock, bytes in and values out."""
