"""The Lance Wire Protocol."""
