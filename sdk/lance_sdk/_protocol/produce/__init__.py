"""Producing: batches, their delivery, and the journal that takes what the server does not."""
