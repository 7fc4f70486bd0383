"""Moved to `lance_spec.qwp.gorilla`."""

from lance_spec._moved import moved

__getattr__ = moved(__name__, "lance_spec.qwp.gorilla")
