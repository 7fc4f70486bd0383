"""Fluvio's protocol: its numbers and errors, batches and records."""
