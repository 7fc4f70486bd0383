"""Families of Fluvio."""
