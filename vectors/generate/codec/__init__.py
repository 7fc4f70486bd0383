"""The bytes, written down a second time: what reads, writes and spoils them for every family."""
