"""Servers that are wrong as a whole: connections, tokens, other nodes, restarts."""
