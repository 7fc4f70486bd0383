"""Flow control of one connection: heartbeats, limits on reading, a disk that stalls."""
