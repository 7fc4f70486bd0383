"""Families of RustLog."""
