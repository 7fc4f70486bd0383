"""Segments: data files, their sidecars and indexes, compaction."""
