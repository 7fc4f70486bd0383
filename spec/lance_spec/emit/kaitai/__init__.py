"""Kaitai Struct descriptions."""
