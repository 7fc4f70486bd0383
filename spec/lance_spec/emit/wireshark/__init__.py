"""Dissectors for Wireshark, in Lua."""
