"""Fluvio's protocol."""
