"""Producers and consumers of several topics."""
