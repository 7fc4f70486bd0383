"""Servers that are wrong about reading."""
