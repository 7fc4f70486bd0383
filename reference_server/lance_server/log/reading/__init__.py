"""Reading a topic: Fetch, open segments, lookup by record number."""
