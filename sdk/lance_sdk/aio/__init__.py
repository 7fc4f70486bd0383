"""The async API classes, on asyncio and trio; same names and parameters as the sync ones."""
