"""Servers that are wrong about what is stored."""
