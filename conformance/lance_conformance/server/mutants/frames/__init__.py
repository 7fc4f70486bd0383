"""Servers that are wrong about frames, whatever they carry."""
