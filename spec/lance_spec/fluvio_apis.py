"""Moved to `lance_spec.fluvio.apis`."""

from lance_spec._moved import moved

__getattr__ = moved(__name__, "lance_spec.fluvio.apis")
