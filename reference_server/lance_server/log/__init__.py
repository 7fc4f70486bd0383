"""The log: topics, their segments on disk, and what becomes durable when."""
