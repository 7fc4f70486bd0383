"""The journal in memory: segments, appends, reads, and the two workers."""
