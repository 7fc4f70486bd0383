"""Hosting some shards of a cluster: topics that others serve, and shards that a node leaves."""
