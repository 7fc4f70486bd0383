"""Retention: which segments a topic need not keep, and how they go."""
