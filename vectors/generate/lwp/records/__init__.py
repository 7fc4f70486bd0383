"""Families of LWP's records and of what they are compressed in."""
