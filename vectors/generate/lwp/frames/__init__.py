"""Families of LWP's frames and their checksums."""
