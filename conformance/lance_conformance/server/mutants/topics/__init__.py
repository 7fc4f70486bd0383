"""Servers that are wrong about topics, their names and their retention."""
