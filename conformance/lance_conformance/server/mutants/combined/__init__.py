"""Servers that are wrong after something, beside something, or in a field that is rarely told."""
