"""Fluvio's protocol: its numbers and errors, batches, records, and how keys choose partitions."""
