"""Codecs generated from the grammar: `lwp` crosses connections, `engine` lies on disk."""
