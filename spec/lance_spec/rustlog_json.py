"""Moved to `lance_spec.rustlog.json_messages`."""

from lance_spec._moved import moved

__getattr__ = moved(__name__, "lance_spec.rustlog.json_messages")
